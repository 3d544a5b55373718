"""Keeps a worker running: starts it, ends it when it must, starts it again, later each time it fails soon.

Nothing here needs memory of the worker's or an answer from it: how long a statement takes is timed in the front, and
ending the worker is a signal it cannot refuse.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from duckdb_anon.answering.original_names import Answering
from duckdb_anon.model.errors import AnonError
from duckdb_anon.serve.isolation import without_network
from duckdb_anon.serve.limits import LOOPBACK, ServingLimits

_START = 60.0  # seconds a worker may take to start
_DRAW = 1200.0  # seconds it may take to start where it draws plausible tables first
_CLOSE = 15.0  # seconds a worker may take to close
_SOON = 10.0  # a worker that lives for less has failed soon
_LONGEST_PAUSE = 2.0
# Memory that a query has given back goes to the system at once: the limit speaks of what queries take, and allocators
# (DuckDB's jemalloc, the system's) by default keep maps that nobody uses, until nothing is left of it.
_LEAN = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "DUCKDB_JE_MALLOC_CONF": "retain:false,dirty_decay_ms:0,muzzy_decay_ms:0,narenas:4,tcache_max:1024",
    "MALLOC_ARENA_MAX": "4",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
}


@dataclass(frozen=True)
class Worker:
    """A running worker: its place and the token only its supervisor knows."""

    generation: int
    port: int
    token: bytes
    process: asyncio.subprocess.Process

    def has_ended(self) -> bool:
        """Whether its process has ended."""
        return self.process.returncode is not None

    def kill(self) -> None:
        """End its process."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()


class Supervisor:
    """One worker at a time for one database."""

    def __init__(self, role: str, database: str, limits: ServingLimits, answering: Answering) -> None:
        """Say what is served to 'analyst', 'researcher' or 'curator'; `answering` has the release of each original."""
        self.role, self.database, self.limits, self.answer = role, database, limits, dict(answering.releases)
        self.bounds = answering.bounds
        self.report: Callable[[dict[str, Any]], None] = lambda facts: None  # takes what workers report of statements
        self._seed = secrets.randbits(62)  # one for all workers: a client that pulls rows again gets the same
        self._alone = [] if role == "curator" else without_network()
        self._generation = 0
        self._worker: Worker | None = None
        self._ended: Worker | None = None
        self._ready = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start the first worker."""
        self._worker = await self._launch()
        self._ready.set()
        self._tasks.add(asyncio.create_task(self._keep(self._worker)))

    async def worker(self, patience: float) -> Worker:
        """The worker, once there is one; a TimeoutError when there is none for `patience` seconds."""
        async with asyncio.timeout(patience):
            await self._ready.wait()
        if self._worker is None:
            raise TimeoutError
        return self._worker

    def replace(self, worker: Worker, reason: str) -> None:
        """End `worker`, unless it is gone already; another is started."""
        if self._worker is worker and self._ready.is_set():
            _say(f"{reason}; ending it and starting again")
            self._ready.clear()
            self._ended = worker
            worker.kill()

    def tell(self, generation: int, do: str, session: bytes) -> None:
        """Have a worker do something with a session, unless it has ended: drop, cancel or close, see `Statements`."""
        worker = self._worker
        if worker is None or worker.generation != generation:
            return
        if worker.process.stdin is not None and not worker.has_ended():
            line = json.dumps({"do": do, "session": session.decode()})
            worker.process.stdin.write(f"{line}\n".encode())

    async def close(self) -> None:
        """End the worker and start no other; one that writes its file is given time."""
        for task in self._tasks:
            task.cancel()
        worker = self._worker
        if worker is not None and not worker.has_ended():
            if self.role != "analyst":  # the file is left clean
                worker.process.send_signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(worker.process.wait(), _CLOSE)
            worker.kill()
            await worker.process.wait()

    async def _keep(self, worker: Worker) -> None:
        """Watch the worker; when it ends, start the next; the pause before doubles while workers fail by themselves."""
        pause = 0.0
        while True:
            since = time.monotonic()
            await worker.process.wait()
            if self._ready.is_set():
                _say(f"the {self.role}'s process ended (exit code {worker.process.returncode}); starting again")
            self._ready.clear()
            # the next one of a worker that was ended here, for what a query took, is awaited by everybody else
            failed = worker is not self._ended and time.monotonic() - since < _SOON
            while not self._ready.is_set():
                pause = min(2 * pause, _LONGEST_PAUSE) or 0.25 if failed else 0.0
                await asyncio.sleep(pause)
                try:
                    self._worker = worker = await self._launch()
                    self._ready.set()
                except AnonError as error:
                    _say(str(error))
                    failed = True
            _say("the endpoint is there again")

    async def _launch(self) -> Worker:
        self._generation += 1
        patience = _DRAW if self.answer else _START
        listening = socket.create_server((LOOPBACK, 0), backlog=self.limits.connections)
        port, passed = int(listening.getsockname()[1]), listening.fileno() if self._alone else None
        if not self._alone:
            listening.close()  # the worker listens there itself
        token = secrets.token_urlsafe(24)
        process = await asyncio.create_subprocess_exec(
            *self._alone, sys.executable, "-P", "-m", "duckdb_anon.serve.worker",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env={**os.environ, **_LEAN},
            pass_fds=(passed,) if passed is not None else (),
        )  # fmt: skip
        listening.close()
        if process.stdin is None or process.stdout is None:
            raise AnonError("serve: the worker has no standard input or output")
        job = {
            "role": self.role, "database": self.database, "port": port, "token": token, "answer": self.answer,
            "bounds": self.bounds,
            "limits": asdict(self.limits), "seed": self._seed, "socket": passed,
            "by_root": hasattr(os, "geteuid") and os.geteuid() == 0,
        }  # fmt: skip
        worker = Worker(self._generation, port, token.encode(), process)
        try:
            process.stdin.write(json.dumps(job).encode() + b"\n")
            hello = json.loads(await asyncio.wait_for(process.stdout.readline(), patience) or b"{}")
        except (TimeoutError, OSError) as error:
            worker.kill()
            raise AnonError(f"serve: the worker did not start within {patience:g} s") from error
        if "ready" not in hello:
            await process.wait()
            raise AnonError(hello.get("error", f"serve: the worker ended with exit code {process.returncode}"))
        if self._generation == 1:
            bounds = "" if hello["bounded"] else "this system does not enforce --memory; only DuckDB's accounting does"
            _say("\n".join(filter(None, (hello["isolation"], bounds))))
        task = asyncio.create_task(self._read_reports(process.stdout))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return worker

    async def _read_reports(self, output: asyncio.StreamReader) -> None:
        """Pass on what the worker reports, a line per statement, until it ends."""
        while line := await output.readline():
            with contextlib.suppress(json.JSONDecodeError):
                self.report(json.loads(line))


def _say(line: str) -> None:
    if line:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
