"""What a shell shows: SQL that can be copied, headers or none, positions the user wrote."""

import io

import duckdb
import pytest

from duckdb_anon.shell.render import render
from duckdb_anon.shell.session import without_foreign_position

CALL = "muco('people', delta := 0.05, qi := ['age', 'gender', 'education'])"


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


def test_a_position_the_user_did_not_write_is_left_out() -> None:
    planned = "Conversion Error: no\n\nLINE 7: ) as _anon_row from\n     ^"
    assert without_foreign_position(planned, "FROM muco('people', 0.2)") == "Conversion Error: no"
    user_error = "Parser Error: syntax error\n\nLINE 1: selec 1\n        ^"
    assert without_foreign_position(user_error, "selec 1;") == user_error
