"""Work in the background: one process at a time, its progress, its end, and results that outlive this process.

Results are kept beside the plan in a file that its owner alone reads, each with a digest of what it was made from: one
of other roles, another cleaning or another table says that it is out of date.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from duckdb_anon.engine.records.private_files import draft_of
from duckdb_anon.model.errors import AnonError

_PATIENCE = 5.0  # seconds that a process has to end by itself


@dataclass
class Job:
    """One piece of work under way."""

    kind: str
    of: str  # digest of what it is made from
    process: subprocess.Popen[str]
    text: str = "starting"
    share: float | None = None
    error: str = ""
    stopped: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """Interrupt it, and end it where that does not help."""
        self.stopped = True
        self.process.send_signal(signal.SIGINT)
        threading.Timer(_PATIENCE, self.process.kill).start()


class Jobs:
    """The work of one plan."""

    def __init__(self, plan: Path, table: str) -> None:
        """Results of earlier processes are there."""
        self.plan, self.table = plan, table
        self.file = plan.with_name(f".{plan.name}.work.json")
        self.last: Job | None = None
        self._lock = threading.Lock()

    @property
    def running(self) -> Job | None:
        """The work under way, None for none."""
        return self.last if self.last is not None and not self.last.ended.is_set() else None

    def start(self, kind: str, of: str) -> Job:
        """Begin a piece of work."""
        with self._lock:
            if self.running is not None:
                raise AnonError("workbench: other work is under way. Wait until it has ended, or stop it")
            command = [sys.executable, "-m", "duckdb_anon.workbench.work", kind, str(self.plan), self.table]
            process = subprocess.Popen(  # noqa: S603 - this package's own module
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
            )
            self.last = Job(kind, of, process)
        threading.Thread(target=self._follow, args=(self.last,), daemon=True).start()
        return self.last

    def _follow(self, job: Job) -> None:
        """Read what a process says until it ends."""
        with job.process:
            for line in job.process.stdout or ():
                message = json.loads(line)
                job.text, job.share = message.get("progress", job.text), message.get("share")
                job.error = message.get("error", "")
                if "result" in message:
                    self._keep(job, message["result"])
        if job.process.returncode not in (0, 1) and not job.stopped:
            job.error = "workbench: the work ended before it was done. Start it again"
        job.ended.set()

    def _keep(self, job: Job, result: object) -> None:
        with self._lock:
            kept = {**self._kept(), job.kind: {"of": job.of, "result": result}}
            with draft_of(self.file, mode=0o600) as draft:
                draft.write_text(json.dumps(kept), encoding="utf-8")

    def _kept(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found

    def result(self, kind: str, of: str) -> tuple[Any, bool]:
        """The last result of a kind, None for none, and whether it was made from what there is now."""
        kept = self._kept().get(kind)
        return (None, False) if kept is None else (kept["result"], kept["of"] == of)
