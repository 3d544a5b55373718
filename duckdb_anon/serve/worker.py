"""The process behind an endpoint that holds the database: `python -m duckdb_anon.serve.worker`.

Its supervisor writes one line of JSON to its standard input and reads one from its output: ready, or what is
wrong. The token it listens with is known to the supervisor alone, so nobody on the machine passes the front by.
When the supervisor goes, for whatever reason, standard input ends and this process ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from types import FrameType
from typing import TextIO

import duckdb

from duckdb_anon.model.errors import AnonError
from duckdb_anon.serve.limits import ServingLimits, bound_this_process, resident
from duckdb_anon.serve.server import Analyst, Curator, listen

_SAYING = threading.Lock()
_ANSWER = 30.0  # seconds a server may take to answer for the first time


@dataclass(frozen=True)
class Job:
    """What a worker is to serve, as the supervisor tells it."""

    role: str
    database: str
    address: str
    token: str
    memory: str
    threads: int | None
    answer: dict[str, str]
    seed: int


def main() -> int:
    """Serve until told to end."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    job = Job(**json.loads(sys.stdin.readline()))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print, a progress bar among it, is no answer
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a key pressed at the terminal is the supervisor's to answer
    try:
        served = _open(job)
        listen(served, job.address, job.token, lambda facts: _say(answers, facts))
        _wait_for_answer(job.address)
        # before the process is bounded, and before the first statement can take what there is
        threading.Thread(target=_end_with_supervisor, args=(ended, job.role), daemon=True).start()
        bounded = job.role == "curator" or bound_this_process(ServingLimits(job.memory).memory_bytes)
    except (AnonError, duckdb.Error) as error:
        _say(answers, {"error": str(error)})
        return 1
    _say(answers, {"ready": True, "bounded": bounded, "resident": resident(os.getpid()) or 0})
    ended.wait()
    served.close()
    return 0


def _open(job: Job) -> Analyst | Curator:
    if job.role == "curator":
        return Curator(job.database)
    return Analyst(job.database, ServingLimits(job.memory, job.threads), job.answer, job.seed)


def _wait_for_answer(address: str) -> None:
    """Return once the server answers, so that all its threads are there before memory is bounded.

    Quack says that it serves before it has made them; one that finds no room for its stack ends its server, and
    connections are then accepted by the system and answered by nobody.

    Raises:
        AnonError: when it answers nothing.
    """
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), timeout=_ANSWER) as asked:
            asked.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answered = asked.recv(1)
    except OSError:
        answered = b""
    if not answered:
        raise AnonError(f"serve: Quack does not answer at {address}; is it the version for this DuckDB?")


def _end_with_supervisor(ended: threading.Event, role: str) -> None:
    sys.stdin.read()
    if role == "curator":
        ended.set()  # its file is left clean
    else:
        os._exit(0)


def _say(answers: TextIO, line: dict[str, object]) -> None:
    with _SAYING:
        answers.write(json.dumps(line) + "\n")
        answers.flush()


if __name__ == "__main__":
    sys.exit(main())
