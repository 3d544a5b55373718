"""Every way to name a table, and column roles from comments and arguments."""

from itertools import pairwise

import duckdb
import pandas as pd
import pytest

ROWS = "select range % 40 as age, range % 2 as sex, range % 9 as disease, 'n' || range as name from range(360)"
ROLES = "qi := ['age', 'sex'], sensitive := 'disease'"


def count(con: duckdb.DuckDBPyConnection, table: str, more: str = ROLES) -> int:
    found = con.execute(f"select count(*) from muco({table}, 0.2, {more})").fetchone()
    return int(found[0])


def columns(con: duckdb.DuckDBPyConnection, call: str) -> list[str]:
    return [row[0] for row in con.execute(f"describe from {call}").fetchall()]


def label(con: duckdb.DuckDBPyConnection, table: str = "people") -> None:
    for column, role in (("age", "quasi"), ("sex", "quasi"), ("disease", "sensitive"), ("name", "identifier")):
        con.execute(f"comment on column {table}.{column} is 'anon: {role}'")


@pytest.mark.parametrize("table", ["people", "main.people", "memory.main.people", '"people"', "PEOPLE"])
def test_table_names_of_any_spelling(con, table):
    con.execute(f"create table people as {ROWS}")
    label(con)
    assert count(con, f"'{table}'", "seed := 1") == 360


def test_table_in_another_schema_and_database(con):
    con.execute("attach ':memory:' as other")
    con.execute("create schema other.ward")
    con.execute(f"create table other.ward.people as {ROWS}")
    label(con, "other.ward.people")
    assert count(con, "'other.ward.people'", "seed := 1") == 360
    con.execute("use other.ward")
    assert count(con, "'people'", "seed := 1") == 360


def test_names_that_need_quotes(con):
    con.execute(f'create table "my ""odd"" täble" as {ROWS}')
    con.execute('alter table "my ""odd"" täble" rename column age to "a ""b"""')
    con.execute('alter table "my ""odd"" täble" rename column sex to "select"')
    con.execute('alter table "my ""odd"" täble" rename column disease to "Krankheit ü"')
    more = """qi := ['a "b"', 'select'], sensitive := 'Krankheit ü'"""
    assert count(con, """'my "odd" täble'""", more) == 360
    assert count(con, """'"my ""odd"" täble"'""", more) == 360


def test_view(con):
    con.execute(f"create view people as {ROWS}")
    label(con)
    assert count(con, "'people'", "seed := 1") == 360


def test_temporary_table_with_named_columns(con):
    con.execute(f"create temp table people as {ROWS}")
    assert count(con, "'people'") == 360


def test_temporary_table_becomes_boxes(con):
    con.execute(f"create temp table people as select *, 'c' || age % 3 as city from ({ROWS})")
    call = "mondrian('people', 5, qi := ['age', 'city']"
    con.execute(f"create table release as from {call}, categorical := ['city'])")
    assert con.execute("select typeof(age.lower), typeof(city) from release limit 1").fetchone() == (
        "BIGINT",
        "VARCHAR[]",
    )
    with pytest.raises(duckdb.Error) as caught:
        con.execute(f"from {call})")
    assert "categorical := ['city']" in str(caught.value)


def test_temporary_table_without_named_columns_says_what_to_do(con):
    con.execute(f"create temp table people as {ROWS}")
    with pytest.raises(duckdb.Error, match="temporary table, a CTE, a DataFrame") as caught:
        count(con, "'people'", "seed := 1")
    assert "qi := ['...']" in str(caught.value)


def test_common_table_expression(con):
    found = con.execute(f"with people as ({ROWS}) select count(*) from muco('people', 0.2, {ROLES})").fetchone()
    assert found == (360,)


def test_registered_and_local_data_frames(con):
    frame = con.execute(ROWS).df()
    assert isinstance(frame, pd.DataFrame)
    con.register("registered", frame)
    assert count(con, "'registered'") == 360


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_file(con, tmp_path, suffix):
    path = tmp_path / f"people.{suffix}"
    con.execute(f"copy ({ROWS}) to '{path}'")
    assert count(con, f"'{path}'") == 360


def test_select_in_parentheses(con):
    con.execute(f"create table people as {ROWS}")
    assert count(con, "'(select * from people where age < 20)'") == 180
    assert count(con, "'(from people)'") == 360


def test_arguments_override_comments(con):
    con.execute(f"create table people as {ROWS}")
    label(con)
    assert columns(con, "muco('people', 0.2, qi := ['sex'])") == ["sex", "disease"]
    assert columns(con, "muco('people', 0.2, sensitive := 'age')") == ["sex", "age"]
    with pytest.raises(duckdb.Error, match="keep names name, labelled identifier"):
        columns(con, "muco('people', 0.2, keep := ['name'])")
    assert columns(con, "muco('people', 0.2, keep := ['name'], force := true)") == ["age", "sex", "disease", "name"]


def test_rows_come_out_shuffled(con):
    con.execute(f"create table people as {ROWS}")
    for more in ("", ", keep := ['name']"):
        ids = con.execute(f"select row_id from muco('people', 0.2, {ROLES}, row_id := true{more})").fetchall()
        order = [i for (i,) in ids]
        assert sorted(order) == list(range(360))
        in_place = sum(i == at for at, i in enumerate(order))
        rising = sum(a < b for a, b in pairwise(order))
        assert in_place < 20
        assert 120 < rising < 240


def test_seed_repeats_and_its_absence_does_not(con):
    con.execute(f"create table people as {ROWS}")

    def release(more: str) -> list[tuple[object, ...]]:
        return con.execute(f"from muco('people', 0.2, {ROLES}{more})").fetchall()

    assert release(", seed := 5") == release(", seed := 5")
    assert release(", seed := 5") != release(", seed := 6")
    assert release("") != release("")


def test_seed_does_not_depend_on_threads_or_row_order(con):
    con.execute("create table people as select hash(range) % 40 as age, range % 2 as sex, range % 9 as disease "
                "from range(5000)")  # fmt: skip
    con.execute("create table turned as select * from people order by hash(rowid)")
    call = "from muco('{}', 0.2, {}, seed := 5) order by all"
    con.execute("set threads = 1")
    first = con.execute(call.format("people", ROLES)).fetchall()
    con.execute("set threads = 4")
    assert con.execute(call.format("people", ROLES)).fetchall() == first
    assert con.execute(call.format("turned", ROLES)).fetchall() == first
