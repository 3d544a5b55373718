"""Loading the functions: any number of times, any kind of database, any lifetime."""

import gc
import subprocess
import sys

import duckdb
import pytest

import duckdb_anon
from duckdb_anon import sql_functions

PEOPLE = "create table people as select range % 60 as age, range % 7 as secret from range(600)"
CALL = "select count(*) from muco('people', 0.2, qi := ['age'], sensitive := 'secret')"


@pytest.mark.parametrize("read_only", [False, True])
def test_a_loaded_connection_is_not_loaded_again(read_only, tmp_path, monkeypatch):
    duckdb.connect(str(tmp_path / "a.duckdb")).close()
    con = duckdb_anon.connect(str(tmp_path / "a.duckdb"), read_only=read_only)
    created: list[duckdb.DuckDBPyConnection] = []
    create = sql_functions._create

    def creating(loaded: duckdb.DuckDBPyConnection) -> None:
        created.append(loaded)
        create(loaded)

    monkeypatch.setattr(sql_functions, "_create", creating)
    con.execute("create temp macro mine(x) as x + 1")
    duckdb_anon.load(con)
    assert created == []
    cursor = duckdb_anon.load(con.cursor())
    assert created == [cursor]
    for statement in (
        "drop macro table anon_functions",
        "drop macro _anon_among",
        "create or replace temp macro muco(tbl, delta) as table select 1",
        "create or replace temp macro _anon_among(a, b) as true",
    ):
        con.execute(statement)
        created.clear()
        duckdb_anon.load(duckdb_anon.load(con))
        assert created == [con]
    assert con.execute("select count(*) > 50, mine(1) from anon_functions()").fetchall() == [(True, 2)]


def test_the_methods_of_duckdb_are_its_own():
    script = (
        "import duckdb\nold = dict(vars(duckdb.DuckDBPyConnection))\nimport duckdb_anon\n"
        "con = duckdb_anon.load(duckdb_anon.connect().cursor())\n"
        "print([name for name, method in vars(duckdb.DuckDBPyConnection).items() if old.get(name) is not method])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("read_only", [False, True])
def test_a_loaded_cursor_leaves_nothing_in_the_lists_nor_in_the_file(tmp_path, read_only):
    path = tmp_path / 'peo,ple "x".duckdb'
    with duckdb.connect(str(path)) as writer:
        writer.execute(PEOPLE)
    written = path.read_bytes()
    con = duckdb_anon.connect(str(path), read_only=read_only, enable_external_access=False)
    lists = [
        "show databases", "show all tables", "select database_name, schema_name from duckdb_schemas() order by all",
        "select current_schema()",
    ]  # fmt: skip
    before = [con.execute(q).fetchall() for q in lists]
    cursor = duckdb_anon.load(con.cursor())
    assert cursor.execute(CALL).fetchone() == (600,)
    assert cursor.execute("select k > 1 from k_anonymity('people', qi := ['age'])").fetchone() == (True,)
    for later in (con, cursor):
        assert [later.execute(q).fetchall() for q in lists] == before
    cursor.close()
    con.close()
    assert path.read_bytes() == written


def test_cursor_without_a_load_does_not_know_the_functions():
    with pytest.raises(duckdb.CatalogException, match="muco"):
        duckdb_anon.connect().cursor().execute("from muco('people', 0.2)")


def test_cursor_outlives_the_connection_that_loaded_first():
    con = duckdb_anon.connect()
    con.execute(PEOPLE)
    cursor = duckdb_anon.load(con.cursor())
    del con
    gc.collect()
    assert cursor.execute(CALL).fetchone() == (600,)


def test_closing_frees_the_file_which_opens_without_the_package_afterwards(tmp_path):
    path = tmp_path / "people.duckdb"
    con = duckdb_anon.connect(str(path))
    con.execute(PEOPLE)
    con.execute(f"create table release as {CALL}")
    con.execute(CALL)
    con.close()
    script = f"import duckdb; print(duckdb.connect({str(path)!r}).execute('create table t as from release').fetchone())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(1,)"


def test_a_prepared_statement_sees_later_rows_even_uncommitted_ones():
    con = duckdb_anon.connect()
    con.execute(PEOPLE)
    con.execute("prepare p as " + CALL)
    assert con.execute("execute p").fetchone() == (600,)
    con.execute("begin; insert into people select 30, range % 7 from range(10)")
    assert con.execute(CALL).fetchone() == con.execute("execute p").fetchone() == (610,)
    con.execute("rollback")


@pytest.mark.parametrize("statement", ["describe from {}", "explain from {}", "create or replace view v as from {}"])
def test_planning_alone_runs_nothing(statement):
    con = duckdb_anon.connect()
    con.execute("create table few as select 1 as age, 2 as secret")
    # the table is too small for delta 0.2, which only running it can find out
    call = "muco('few', 0.2, qi := ['age'], sensitive := 'secret')"
    con.execute(statement.format(call))
    with pytest.raises(duckdb.Error, match="carriers"):
        con.execute(f"from {call}")
