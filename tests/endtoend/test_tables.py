"""Every way to name a table, and column roles from comments and arguments."""

from itertools import pairwise

import duckdb
import pytest

ROWS = "select range % 40 as age, range % 2 as sex, range % 9 as disease, 'n' || range as name from range(360)"
ROLES = "qi := ['age', 'sex'], sensitive := 'disease'"


def count(con: duckdb.DuckDBPyConnection, table: str, more: str = ROLES) -> int:
    return int(con.execute(f"select count(*) from muco('{table}', 0.2, {more})").fetchall()[0][0])


def columns(con: duckdb.DuckDBPyConnection, call: str) -> list[str]:
    return [row[0] for row in con.execute(f"describe from {call}").fetchall()]


def label(con: duckdb.DuckDBPyConnection, table: str = "people") -> None:
    for column, role in (("age", "quasi"), ("sex", "quasi"), ("disease", "sensitive"), ("name", "identifier")):
        con.execute(f"comment on column {table}.{column} is 'anon: {role}'")


@pytest.mark.parametrize("table", ["people", "main.people", "memory.main.people", '"people"', "PEOPLE", "seen"])
def test_table_names_of_any_spelling(con, table):
    con.execute(f"create table people as {ROWS}; create view seen as from people")
    label(con)
    label(con, "seen")
    assert count(con, table, "seed := 1") == 360


def test_table_in_another_schema_and_database(con):
    con.execute(f"attach ':memory:' as other; create schema other.ward; create table other.ward.people as {ROWS}")
    label(con, "other.ward.people")
    assert count(con, "other.ward.people", "seed := 1") == 360
    con.execute("use other.ward")
    assert count(con, "people", "seed := 1") == 360


def test_names_that_need_quotes(con):
    con.execute(f'''create table "my ""odd"" täble" as
        select age as "a ""b""", sex as "select", disease as "Krankheit ü" from ({ROWS})''')
    for name in ('my "odd" täble', '"my ""odd"" täble"'):
        assert count(con, name, """qi := ['a "b"', 'select'], sensitive := 'Krankheit ü'""") == 360


def test_temporary_table_becomes_boxes(con):
    con.execute(f"create temp table people as select *, 'c' || age % 3 as city from ({ROWS})")
    call = "mondrian('people', 5, qi := ['age', 'city']"
    con.execute(f"create table release as from {call}, categorical := ['city'])")
    kinds = con.execute("select typeof(age.lower), typeof(city) from release limit 1").fetchall()
    assert kinds == [("BIGINT", "VARCHAR[]")]
    with pytest.raises(duckdb.Error, match=r"categorical := \['city'\]"):
        con.execute(f"from {call})")


def test_temporary_table_needs_its_columns_named(con):
    con.execute(f"create temp table people as {ROWS}")
    assert count(con, "people") == 360
    with pytest.raises(duckdb.Error, match=r"(?s)temporary table, a CTE, a DataFrame.*qi := \['...'\]"):
        count(con, "people", "seed := 1")


def test_common_table_expressions_data_frames_files_and_selects(con, tmp_path):
    found = con.execute(f"with people as ({ROWS}) select count(*) from muco('people', 0.2, {ROLES})").fetchall()
    assert found == [(360,)]
    con.register("registered", con.execute(ROWS).df())
    con.execute(f"create table people as {ROWS}")
    for suffix in ("parquet", "csv"):
        con.execute(f"copy people to '{tmp_path / 'people'}.{suffix}'")
    for source in ("registered", f"{tmp_path}/people.parquet", f"{tmp_path}/people.csv", "(from people)"):
        assert count(con, source) == 360
    assert count(con, "(select * from people where age < 20)") == 180


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
        assert sum(i == at for at, i in enumerate(order)) < 20
        assert 120 < sum(a < b for a, b in pairwise(order)) < 240


def test_a_seed_repeats_on_any_number_of_threads_and_order_of_rows_and_its_absence_does_not(con):
    con.execute(
        "create table people as select hash(range) % 40 as age, range % 2 as sex, range % 9 as disease from range(5000)"
    )
    con.execute("create table turned as select * from people order by hash(rowid)")

    def release(more: str, table: str = "people") -> list[tuple[object, ...]]:
        return con.execute(f"from muco('{table}', 0.2, {ROLES}{more})").fetchall()

    con.execute("set threads = 1")
    first = release(", seed := 5")
    assert first != release(", seed := 6") and release("") != release("")
    con.execute("set threads = 4")
    for table in ("people", "turned"):
        assert sorted(release(", seed := 5", table)) == sorted(first)
