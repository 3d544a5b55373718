"""Both endpoints, served by processes of their own, with DuckDB's stock shell as the client.

Needs DuckDB 1.5 with the Quack extension and the shell from PyPI: duckdb-extension-quack, duckdb-extension-httpfs
and duckdb-cli (extra 'serve' and duckdb-cli); .ci/clients runs it so.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.errors import AnonError
from duckdb_anon.serve.publish import publish

SHELL = Path(sys.executable).parent / "duckdb"
TOKEN = "a-token-for-the-test-only"
NEEDED = ("duckdb_extension_quack", "duckdb_extension_httpfs")

needs_quack = pytest.mark.skipif(
    not SHELL.exists() or any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="needs duckdb-cli, duckdb-extension-quack and duckdb-extension-httpfs, for DuckDB 1.5",
)

TABLES = """
create table patients as
  select 'name ' || i as name, 20 + i % 50 as age, case i % 3 when 0 then 'f' else 'm' end as sex, i % 900 as cost,
         'd' || (i % 7) as disease, (['a', 'b'])[1 + i % 2]::enum('a', 'b', 'nobody') as ward from range(2000) t(i);
comment on column patients.name is 'anon: identifier';
comment on column patients.age is 'anon: quasi';
comment on column patients.sex is 'anon: quasi';
comment on column patients.disease is 'anon: sensitive';
comment on column patients.cost is 'anon: insensitive';
comment on column patients.ward is 'anon: insensitive';
create table covered as from muco('patients', 0.2);
create table boxes as from mondrian('patients', 5);
comment on table covered is 'anon: release';
comment on table boxes is 'anon: release';
create table notes as select 'top secret' as note;
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with original.duckdb and, published from it, releases.duckdb."""
    place = tmp_path_factory.mktemp("served")
    con = duckdb_anon.connect(str(place / "original.duckdb"))
    con.execute(TABLES)
    con.close()
    publish(str(place / "original.duckdb"), str(place / "releases.duckdb"), ["patients"])
    return place


@contextmanager
def served(file: Path, role: str) -> Iterator[str]:
    """Serve `file` in a process of its own; yield the URI."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "duckdb_anon.cli", "serve", str(file), "--role", role]
    process = subprocess.Popen(
        [*command, "--listen", f"localhost:{port}"], env={**os.environ, "DUCKDB_ANON_TOKEN": TOKEN},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    try:
        said = process.stdout.readline()
        assert said.startswith(f"{role} endpoint at "), process.stderr.read()
        yield f"quack:localhost:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        process.stdout.close()
        process.stderr.close()


@pytest.fixture(scope="module")
def analyst(folder: Path) -> Iterator[str]:
    """URI of an analyst's endpoint."""
    with served(folder / "releases.duckdb", "analyst") as uri:
        yield uri


@pytest.fixture(scope="module")
def curator(folder: Path) -> Iterator[str]:
    """URI of a curator's endpoint."""
    shutil.copy(folder / "original.duckdb", folder / "curated.duckdb")  # a served file is locked
    with served(folder / "curated.duckdb", "curator") as uri:
        yield uri


def shell(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in the stock shell with the Quack extension loaded."""
    loads = ""
    for name in ("httpfs", "quack"):
        spec = importlib.util.find_spec(f"duckdb_extension_{name}")
        assert spec is not None and spec.submodule_search_locations is not None
        path = Path(spec.submodule_search_locations[0]) / "extensions" / f"v{duckdb.__version__}"
        loads += f"load '{path / name}.duckdb_extension';\n"
    return subprocess.run(
        [str(SHELL), "-csv", "-c", loads + script], capture_output=True, text=True, timeout=60, check=False
    )


def ask(uri: str, query: str, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    """Send one query to a server through the stock shell."""
    return shell(f"from quack_query('{uri}', $text${query}$text$, token := '{token}');")


def rows(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    """The rows of an answer, without its header."""
    assert done.returncode == 0, done.stderr
    return list(csv.reader(io.StringIO(done.stdout)))[1:]


@needs_quack
def test_curator_anonymizes_and_measures_from_the_stock_shell(curator: str) -> None:
    made = ask(curator, "create or replace table mine as from muco('patients', 0.25, row_id := true)")
    assert rows(made) == [["2000"]]
    assert float(rows(ask(curator, "select identity from disclosure('patients', 'mine')"))[0][0]) < 0.05
    assert float(rows(ask(curator, "from k_anonymity('patients')"))[0][0]) >= 1
    assert rows(ask(curator, "select count(*) > 20 from anon_functions()")) == [["true"]]


@needs_quack
def test_curators_client_macro_hides_the_wire(curator: str) -> None:
    done = shell(
        f"attach '{curator}' as r (type quack, token '{TOKEN}');\n"
        "create macro muco(t, delta) as table from r.query(format($$from muco('{}', {})$$, t, delta));\n"
        "select count(*) from muco('patients', 0.2);"
    )
    assert rows(done) == [["2000"]]


@needs_quack
def test_serving_leaves_nothing_in_the_curators_file(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "plain.duckdb"
    con = duckdb.connect(str(file))
    con.execute("create table t as select 1 as a; create macro mine(x) as x + 1")
    con.close()
    with served(file, "curator") as uri:
        assert rows(ask(uri, "select mine(1), (select count(*) > 0 from anon_functions())")) == [["2", "true"]]
    con = duckdb.connect(str(file), read_only=True)
    assert con.execute("select function_name from duckdb_functions() where not internal").fetchall() == [("mine",)]
    con.close()


@needs_quack
def test_analyst_reads_releases_through_query_and_attach(analyst: str) -> None:
    assert rows(ask(analyst, "select count(*), min(age) >= 20 from covered where sex in ('f', 'm')")) == [
        ["2000", "true"]
    ]
    done = shell(
        f"attach '{analyst}' as r (type quack, token '{TOKEN}');\n"
        "select sex, count(*) > 0 from r.covered where age < 40 group by sex order by sex;"
    )
    assert rows(done) == [["f", "true"], ["m", "true"]]


@needs_quack
def test_analyst_has_queries_over_the_original_rewritten_and_runs_them(analyst: str, folder: Path) -> None:
    query = "select sex, sum(cost) as total from patients where age < 40 group by sex order by sex"
    text = rows(ask(analyst, f"select rewrite_query('{query}', 'patients', 'boxes')"))[0][0]
    estimate = {sex: float(total) for sex, total in rows(ask(analyst, text))}
    with duckdb.connect(str(folder / "releases.duckdb"), read_only=True) as con:
        assert estimate == pytest.approx(dict(con.execute(text).fetchall()))
    with duckdb.connect() as con:
        con.execute(TABLES.split("comment")[0])
        assert sum(estimate.values()) == pytest.approx(sum(t for _, t in con.execute(query).fetchall()), rel=0.1)


@needs_quack
def test_original_is_an_empty_table_for_the_analyst(analyst: str) -> None:
    assert rows(ask(analyst, "select count(*) from patients")) == [["0"]]
    assert "name" not in ask(analyst, "from patients").stdout


ATTEMPTS = [
    "from notes",
    "from duckdb_tables()",
    "from information_schema.columns",
    "from duckdb_databases",
    "from read_csv('{folder}/original.duckdb')",
    "select content from read_text('/etc/passwd')",
    "from '{folder}/original.duckdb'",
    "attach '{folder}/original.duckdb' as o",
    "attach '{folder}/original.duckdb' as o; from o.patients",
    "copy covered to '{folder}/out.csv'",
    "create view v as from duckdb_settings()",
    "create table memory.main.t as from range(10)",
    "with covered as (from read_blob('{folder}/original.duckdb')) from covered",
    "with duckdb_tables as (select 1) select * from duckdb_tables",
    "prepare p as from read_csv('/etc/passwd')",
    "select 1; from read_csv('/etc/passwd')",
    "from covered; drop view covered",
    "from \"read_csv\"('/etc/passwd')",
    'from "published"."main"."covered"',
    "select current_setting('temp_directory')",
    "select * from duckdb_settings()",
    "from query('from read_csv(''/etc/passwd'')')",
    "from query_table('notes')",
    "from query_table(['covered', 'boxes'])",
    "set lock_configuration = false",
    "set enable_external_access = true",
    "install httpfs",
    "load httpfs",
    "call quack_stop('quack:localhost')",
    "from quack_active_connections()",
    "select rewrite_query('from read_csv(''/etc/passwd'')', 'patients', 'boxes')",
    "select _anon_plan({{function: 'muco'}})",
    "from muco('(from read_csv(''/etc/passwd''))', 0.2)",
    "from glob('/*')",
    "explain analyze from read_csv('/etc/passwd')",
]


@needs_quack
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_attempt_to_reach_the_original_or_the_machine_is_refused(analyst: str, folder: Path, attempt: str) -> None:
    done = ask(analyst, attempt.format(folder=folder))
    assert (done.returncode, done.stdout) == (1, "")
    assert "Authorization failed" in done.stderr
    assert str(folder) not in done.stderr and "secret" not in done.stderr
    assert not (folder / "out.csv").exists()


@needs_quack
@pytest.mark.parametrize(
    "statement",
    [
        "insert into r.covered select * from r.covered limit 1",
        "update r.covered set age = 1",
        "delete from r.covered",
        "create table r.mine as select 1 as a",
        "drop view r.covered",
        "create view r.v as select 1 as a",
    ],
)
def test_attached_client_cannot_write(analyst: str, statement: str) -> None:
    done = shell(f"attach '{analyst}' as r (type quack, token '{TOKEN}');\n{statement};")
    assert done.returncode == 1
    assert rows(ask(analyst, "select count(*) from covered")) == [["2000"]]


@needs_quack
def test_wrong_token_is_refused(analyst: str, curator: str) -> None:
    for uri in (analyst, curator):
        done = ask(uri, "select 1", token="another-token-altogether")
        assert (done.returncode, done.stdout) == (1, "")


@needs_quack
def test_errors_of_allowed_statements_carry_no_path(analyst: str, folder: Path) -> None:
    done = ask(analyst, "select nowhere from covered")
    assert done.returncode == 1
    assert "nowhere" in done.stderr and str(folder) not in done.stderr and "site-packages" not in done.stderr


def run(*arguments: str) -> tuple[int, str]:
    """Run the command line in a process of its own; return exit code and stderr."""
    command = [sys.executable, "-m", "duckdb_anon.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


def test_database_with_originals_is_not_served_to_analysts(folder: Path) -> None:
    code, said = run("serve", str(folder / "original.duckdb"))
    assert code == 1
    assert "notes, patients" in said and "publish" in said


def test_address_others_can_reach_must_be_meant(folder: Path) -> None:
    code, said = run("serve", str(folder / "releases.duckdb"), "--listen", "0.0.0.0:9494")
    assert code == 1
    assert "--anywhere" in said


def test_published_file_holds_releases_and_the_originals_columns_only(folder: Path) -> None:
    con = duckdb.connect(str(folder / "releases.duckdb"), read_only=True)
    tables = dict(con.execute("select table_name, estimated_size from duckdb_tables()").fetchall())
    assert tables == {"boxes": 2000, "covered": 2000, "patients": 0}
    described = {name: kind for name, kind, *_ in con.execute("describe patients").fetchall()}
    assert described == {"age": "BIGINT", "sex": "VARCHAR", "cost": "BIGINT", "disease": "VARCHAR", "ward": "VARCHAR"}
    con.close()
    assert b"top secret" not in (folder / "releases.duckdb").read_bytes()
    assert b"name 1999" not in (folder / "releases.duckdb").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("create view v as from muco('patients', 0.5); comment on view v is 'anon: release'", "is a view"),
        (
            "create table r as from muco('patients', 0.5, row_id := true); comment on table r is 'anon: release'",
            "row_id",
        ),
        ("drop table covered; drop table boxes", "no table is declared a release"),
        (
            "create schema s; create table s.boxes as select 1 as a; comment on table s.boxes is 'anon: release'",
            "two releases",
        ),
    ],
)
def test_what_must_not_be_published_is_refused_and_nothing_is_written(
    tmp_path: Path, change: str, message: str
) -> None:
    con = duckdb_anon.connect(str(tmp_path / "o.duckdb"))
    con.execute(TABLES)
    con.execute(change)
    con.close()
    with pytest.raises(AnonError, match=message):
        publish(str(tmp_path / "o.duckdb"), str(tmp_path / "r.duckdb"))
    assert [path.name for path in tmp_path.iterdir()] == ["o.duckdb"]


def test_existing_file_is_replaced_only_when_asked(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "kept.duckdb"
    target.write_text("something else")
    with pytest.raises(AnonError, match="--replace"):
        publish(str(folder / "original.duckdb"), str(target))
    assert target.read_text() == "something else"
    assert publish(str(folder / "original.duckdb"), str(target), replace=True).releases == {
        "boxes": 2000,
        "covered": 2000,
    }


def test_original_that_does_not_exist_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(AnonError, match="did you mean 'patients'"):
        publish(str(folder / "original.duckdb"), str(tmp_path / "r.duckdb"), ["patient"])


def test_curators_own_macro_is_not_overwritten(tmp_path: Path) -> None:
    con = duckdb.connect(str(tmp_path / "own.duckdb"))
    con.execute("create macro muco(x) as table select x")
    con.close()
    code, said = run("serve", str(tmp_path / "own.duckdb"), "--role", "curator")
    assert code == 1
    assert "macros of its own called muco" in said
