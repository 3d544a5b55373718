"""Both endpoints, served by processes of their own, with DuckDB's stock shell as the client.

Needs DuckDB 1.5 with the Quack extension and the shell from PyPI: duckdb-extension-quack, duckdb-extension-httpfs
and duckdb-cli (extra 'serve' and duckdb-cli); .ci/extra-clients runs it so. Elsewhere what needs them is skipped.
"""

import csv
import importlib.util
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.serve.publish import publish
from tests.reference.ports import free_port

SHELL = Path(sys.executable).parent / "duckdb"
TOKEN = "a-token-for-the-test-only"
NEEDED = ("duckdb_extension_quack", "duckdb_extension_httpfs")
TABLES = """
create table patients as
  select 'name ' || i as name, 20 + i % 50 as age, case i % 3 when 0 then 'f' else 'm' end as sex, i * 7 % 900 as cost,
         'd' || (i % 7) as disease, (['a', 'b'])[1 + i % 2]::enum('a', 'b', 'nobody') as ward from range(2000) t(i);
comment on column patients.name is 'anon: identifier';
comment on column patients.age is 'anon: quasi';
comment on column patients.sex is 'anon: quasi';
comment on column patients.disease is 'anon: sensitive';
comment on column patients.cost is 'anon: insensitive';
comment on column patients.ward is 'anon: insensitive';
create table notes as select 'top secret' as note;
"""


@dataclass
class Endpoint:
    """A running server, and the stock shell as its client."""

    uri: str
    process: subprocess.Popen[str]
    said: str = ""  # on standard error, once it has ended

    def attached(self, script: str, from_file: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a script in the stock shell, attached to the server as r."""
        return stock_shell(f"attach '{self.uri}' as r (type quack, token '{TOKEN}');\n{script};", from_file)

    def attached_rows(self, script: str) -> list[list[str]]:
        """The rows that such a script ends with."""
        return rows_of(self.attached(script))

    def ask(self, query: str, token: str = TOKEN, patience: float = 60) -> subprocess.CompletedProcess[str]:
        """Send one query to the server through the stock shell, which waits `patience` seconds."""
        text = f"from quack_query('{self.uri}', $text${query}$text$, token := '{token}');"
        return stock_shell(text, patience=patience)

    def asked_from_a_file(self, query: str) -> subprocess.CompletedProcess[str]:
        """Send a query that is too long for a command line."""
        text = f"from quack_query('{self.uri}', $text${query}$text$, token := '{TOKEN}');"
        return stock_shell(text, True, patience=180)  # the client reads it slowly, too

    def rows(self, query: str) -> list[list[str]]:
        """The rows of a query's answer."""
        return rows_of(self.ask(query))


def loading() -> list[str]:
    """Statements that load the Quack extension, which clients install from DuckDB's own repository otherwise."""
    statements = []
    for name in ("httpfs", "quack"):
        spec = importlib.util.find_spec(f"duckdb_extension_{name}")
        assert spec is not None and spec.submodule_search_locations is not None
        path = Path(spec.submodule_search_locations[0]) / "extensions" / f"v{duckdb.__version__}"
        statements.append(f"load '{path / name}.duckdb_extension'")
    return statements


Run = Callable[[str], list[tuple[Any, ...]]]


@contextmanager
def quack_client(library: str = "duckdb") -> Iterator[Run]:
    """What runs statements in this process with the Quack extension: duckdb, adbc or sqlalchemy."""
    config = {"allow_unsigned_extensions": "true"}
    with ExitStack() as stack:
        run: Run
        if library == "sqlalchemy":
            sa = pytest.importorskip("sqlalchemy")
            pytest.importorskip("duckdb_engine")
            engine = sa.create_engine("duckdb:///:memory:")
            stack.callback(engine.dispose)
            con = stack.enter_context(engine.connect())

            def run(statement: str) -> list[tuple[Any, ...]]:
                result = con.execute(sa.text(statement))
                return [tuple(row) for row in result.all()] if result.returns_rows else []

        elif library == "adbc":
            pytest.importorskip("adbc_driver_manager")
            import adbc_driver_duckdb
            from adbc_driver_manager import dbapi

            path = adbc_driver_duckdb.driver_path()
            made = stack.enter_context(dbapi.connect(driver=path, entrypoint="duckdb_adbc_init", db_kwargs=config))
            cursor = stack.enter_context(made.cursor())

            def run(statement: str) -> list[tuple[Any, ...]]:
                cursor.execute(statement)
                return cursor.fetchall()

        else:
            plain = stack.enter_context(duckdb.connect(config=config))

            def run(statement: str) -> list[tuple[Any, ...]]:
                return plain.execute(statement).fetchall()

        for statement in loading():
            run(statement)
        yield run


def stock_shell(script: str, from_file: bool = False, patience: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a script in the stock shell with the Quack extension loaded."""
    loads = ";\n".join([*loading(), ""])
    if from_file:
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write(loads + script)
            file.flush()
            return _run([str(SHELL), "-csv", "-bail", "-f", file.name], patience)
    return _run([str(SHELL), "-csv", "-c", loads + script], patience)


def _run(command: list[str], patience: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=patience, check=False)


def worker_of(endpoint: Endpoint) -> int:
    """Process number of the worker behind a front."""
    tasks = Path(f"/proc/{endpoint.process.pid}/task/{endpoint.process.pid}/children")
    return int(tasks.read_text().split()[0])


def rows_of(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    """The rows of an answer, without its header."""
    assert done.returncode == 0, done.stderr
    return list(csv.reader(io.StringIO(done.stdout)))[1:]


def make_tables(con: duckdb.DuckDBPyConnection) -> None:
    """Make the original and its releases."""
    con.execute(TABLES)
    duckdb_anon.release(con, "covered", "muco('patients', 0.2)", independent=True)
    duckdb_anon.release(con, "boxes", "mondrian('patients', 5)", independent=True)


@pytest.fixture(scope="session")
def tables() -> Callable[[duckdb.DuckDBPyConnection], None]:
    """What makes the original and its releases."""
    return make_tables


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with original.duckdb and, published from it, releases.duckdb."""
    place = tmp_path_factory.mktemp("served")
    con = duckdb_anon.connect(str(place / "original.duckdb"))
    make_tables(con)
    con.close()
    publish(str(place / "original.duckdb"), str(place / "releases.duckdb"), independent=True)
    return place


@contextmanager
def _served(file: Path, role: str, *options: str) -> Iterator[Endpoint]:
    port = free_port()
    command = [sys.executable, "-m", "duckdb_anon.cli", "serve", str(file), "--role", role, *options]
    process = subprocess.Popen(
        [*command, "--listen", f"localhost:{port}"], env={**os.environ, "DUCKDB_ANON_TOKEN": TOKEN},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    try:
        said = process.stdout.readline()
        assert said.startswith(f"{role} endpoint at "), process.stderr.read()
        endpoint = Endpoint(f"quack:localhost:{port}", process)
        yield endpoint
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        endpoint.said = process.stderr.read()
        process.stdout.close()
        process.stderr.close()


Serve = Callable[..., AbstractContextManager[Endpoint]]


@pytest.fixture(scope="session")
def serve() -> Serve:
    """Serves a file in a process of its own: serve(file, role, *options)."""
    if not SHELL.exists() or any(importlib.util.find_spec(name) is None for name in NEEDED):
        pytest.skip("needs duckdb-cli, duckdb-extension-quack and duckdb-extension-httpfs, for DuckDB 1.5")
    return _served


@pytest.fixture(scope="session")
def analyst(folder: Path, serve: Serve) -> Iterator[Endpoint]:
    """An analyst's endpoint."""
    with serve(folder / "releases.duckdb", "analyst") as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def curator(folder: Path, serve: Serve) -> Iterator[Endpoint]:
    """A curator's endpoint."""
    shutil.copy(folder / "original.duckdb", folder / "curated.duckdb")  # a served file is locked
    with serve(folder / "curated.duckdb", "curator") as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def run() -> Callable[..., tuple[int, str]]:
    """Runs the command line in a process of its own; gives exit code and stderr."""

    def command(*arguments: str) -> tuple[int, str]:
        line = [sys.executable, "-m", "duckdb_anon.cli", *arguments]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr

    return command
