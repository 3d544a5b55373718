"""What a shell shows: SQL that can be copied, lists broken at words, headers or none, positions the user wrote."""

import io
from collections.abc import Callable

import duckdb
import pytest

from duckdb_anon.shell.label import label
from duckdb_anon.shell.render import render
from duckdb_anon.shell.session import Session, without_foreign_position

CALL = "muco('people', delta := 0.05, width := 'range', subdivide := 'assign', qi := ['age', 'gender', 'education'])"


@pytest.mark.skipif(not hasattr(duckdb.DuckDBPyRelation, "materialize"), reason="DuckDB 1.5 keeps no rows to list")
def test_a_call_is_printed_on_a_separate_line_and_runs_once(con: duckdb.DuckDBPyConnection) -> None:
    runs: list[int] = []

    def counted(value: int) -> int:
        runs.append(value)
        return value

    con.create_function("counted", counted, ["BIGINT"], "BIGINT", side_effects=True)
    out = io.StringIO()
    quoted = CALL.replace("'", "''")
    render(con.sql(f"select counted(i) as step, '{quoted}' as call from range(3) t(i)"), "box", 40, out)
    assert out.getvalue().splitlines().count(CALL) == 3
    assert len(runs) == 3


@pytest.mark.skipif(not hasattr(duckdb.DuckDBPyRelation, "materialize"), reason="DuckDB 1.5 keeps no rows to list")
def test_a_select_that_cleans_a_table_is_printed_whole(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    con.execute(
        "create table t as select 'f' || repeat(' ', range % 2) as sex, range % 3 || ' ' as \"a b\" from range(50)"
    )
    out = io.StringIO()
    render(con.sql("from anon_dirt('t')"), "box", 40, out)
    (select,) = con.execute("select clean from anon_dirt('t') where column_name is null").fetchone() or ()
    assert select in out.getvalue().splitlines()
    con.execute(select)


def test_a_box_of_a_profile_shows_role_and_reason(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("stdnum", reason="the profile extra is not installed")
    monkeypatch.setenv("COLUMNS", "80")
    con.execute("create table people as from anon_sample('census', 100, seed := 1)")
    out = io.StringIO()
    render(con.sql("from anon_profile('people')"), "box", 40, out)
    names = out.getvalue().splitlines()[1].replace("│", " ").split()
    assert names[:3] == ["column_name", "role", "reason"]


@pytest.mark.parametrize("mode, rows", [("csv", "1,x\n"), ("list", "1|x\n"), ("tabs", "1\tx\n")])
def test_headers_can_be_left_out(con: duckdb.DuckDBPyConnection, mode: str, rows: str) -> None:
    with_names, without = io.StringIO(), io.StringIO()
    for out, header in ((with_names, True), (without, False)):
        render(con.sql("select 1 as a, 'x' as b"), mode, 40, out, header=header)
    assert without.getvalue() == rows
    assert with_names.getvalue().endswith(rows) and with_names.getvalue().startswith("a")


def test_every_function_is_listed_and_its_help_fits_the_terminal(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    names = [name for (name,) in con.execute('select "function" from anon_functions()').fetchall()]
    assert len(names) > 70

    def said(line: str) -> str:
        session = Session(con, max_rows=5)
        session.out = io.StringIO()
        session.feed(line)
        return session.out.getvalue()

    assert {line.split()[0] for line in said(".functions").splitlines() if line.strip() and line[0] != " "} == set(
        names
    )
    for name in names:
        output = said(f".functions {name}")
        wide = [line for line in output.splitlines() if len(line) > 72 and " " in line.strip()]
        assert not wide, name
        sql = 'select signature, coalesce(about, summary) from anon_functions() where "function" = ?'
        for text in con.execute(sql, [name]).fetchone() or ():
            assert " ".join(text.split()) in " ".join(output.split()), name


def test_a_position_the_user_did_not_write_is_left_out() -> None:
    planned = "Conversion Error: no\n\nLINE 7: ) as _anon_row from\n     ^"
    assert without_foreign_position(planned, "FROM muco('people', 0.2)") == "Conversion Error: no"
    user_error = "Parser Error: syntax error\n\nLINE 1: selec 1\n        ^"
    assert without_foreign_position(user_error, "selec 1;") == user_error


def answering(*answers: str) -> Callable[[str], str]:
    given = iter(answers)
    return lambda question: next(given)


@pytest.fixture
def table(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    pytest.importorskip("stdnum", reason="the profile extra is not installed")
    con.execute("""create table t as select i as id, i % 40 as age, i * 7 % 300 as salary, 'x' || i % 5 as b
        from range(300) t(i)""")
    return con


def comments(con: duckdb.DuckDBPyConnection) -> list[str | None]:
    con.execute("select comment from duckdb_columns() where table_name = 't' order by column_index")
    return [comment for (comment,) in con.fetchall()]


def test_label_writes_what_was_answered(table: duckdb.DuckDBPyConnection) -> None:
    out = io.StringIO()
    statements = label(table, "t", out, answering("", "maybe", "quasi", "sens", "s"))
    assert comments(table) == ["anon: identifier", "anon: quasi", "anon: sensitive", None]
    assert len(statements) == 3
    assert "maybe: no role" in out.getvalue()
    assert label(table, "t", out, answering("insensitive")) == ["COMMENT ON COLUMN t.\"b\" IS 'anon: insensitive';"]
    assert label(table, "t", out, None) == []


def test_leaving_halfway_or_a_script_writes_nothing(table: duckdb.DuckDBPyConnection) -> None:
    out = io.StringIO()
    assert label(table, "t", out, answering("", "q")) == []
    assert label(table, "t", out, None) == []
    assert comments(table) == [None] * 4
    assert "COMMENT ON COLUMN t.\"age\" IS 'anon: quasi';" in out.getvalue()
    assert "nothing was written" in out.getvalue()
