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
from collections.abc import Mapping
from typing import Any, TextIO

import duckdb

from duckdb_anon.model.errors import AnonError, of_function
from duckdb_anon.serve.isolation import bound_this_process, give_up_rights, pass_on
from duckdb_anon.serve.limits import LOOPBACK, ServingLimits
from duckdb_anon.serve.researcher import Researcher
from duckdb_anon.serve.server import Analyst, Checked, Curator, listen

_SAYING = threading.Lock()
_ANSWER = 30.0  # seconds a server may take to answer for the first time


def main() -> int:
    """Serve until told to end."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    job = json.loads(sys.stdin.readline())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print, a progress bar among it, is no answer
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: ended.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a key pressed at the terminal is the supervisor's to answer
    try:
        served, report = _serve(job, answers, ended)
    except (AnonError, duckdb.Error) as error:
        _say(answers, {"error": of_function("serve", error)})
        return 1
    _say(answers, report)
    ended.wait()
    served.close()
    return 0


def _serve(job: dict[str, Any], answers: TextIO, ended: threading.Event) -> tuple[Curator | Checked, dict[str, object]]:
    """Open and serve what the supervisor names; what is reported of it."""
    limits, address = ServingLimits(**job["limits"]), f"{LOOPBACK}:{job['port']}"
    role, database = job["role"], job["database"]
    served: Curator | Checked
    if role == "curator":
        served = Curator(database)
    elif role == "researcher":
        served = Researcher(database, limits)
    else:
        served = Analyst(database, limits, job["answer"], job["seed"], job["bounds"])
    listen(served, address, job["token"], lambda facts: _say(answers, facts))
    if job["socket"] is not None:
        pass_on(socket.socket(fileno=job["socket"]), job["port"])
    _wait_for_answer(job["port"])
    # before the process is bounded, and before the first statement can take what there is
    threading.Thread(target=_follow_supervisor, args=(ended, served), daemon=True).start()
    if role == "curator":
        return served, {"ready": True, "bounded": True, "isolation": ""}
    bounded = bound_this_process(limits.memory)
    isolation = give_up_rights(job["socket"] is None, job["by_root"], role == "researcher")
    return served, {"ready": True, "bounded": bounded, "isolation": isolation}


def _wait_for_answer(port: int) -> None:
    """Return once the server answers, so that all its threads are there before memory is bounded.

    Quack says that it serves before it has made them; one that finds no room for its stack ends its server, and
    connections are then accepted by the system and answered by nobody.
    """
    try:
        with socket.create_connection((LOOPBACK, port), timeout=_ANSWER) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            reply = connection.recv(1)
    except OSError:
        reply = b""
    if not reply:
        raise AnonError(f"serve: Quack does not answer at port {port}; is it the version for this DuckDB?")


def _follow_supervisor(ended: threading.Event, served: Checked | Curator) -> None:
    """Do what the supervisor's lines say of sessions; end when it does."""
    for line in sys.stdin:
        if isinstance(served, Checked):
            event = json.loads(line)
            act = getattr(served.statements, event["do"])
            threading.Thread(target=act, args=[event["session"]], daemon=True).start()
    if isinstance(served, Curator):
        ended.set()  # its file is left clean
    else:
        os._exit(0)


def _say(answers: TextIO, line: Mapping[str, object]) -> None:
    with _SAYING:
        answers.write(json.dumps(line) + "\n")
        answers.flush()


if __name__ == "__main__":
    sys.exit(main())
