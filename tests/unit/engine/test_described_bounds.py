"""Low and high are given for releases that hold the rows their description was written for, and for no others."""

import duckdb
import pytest

import duckdb_anon

OF_FLU = "select count(*) from o where s = ''flu''"
UNDESCRIBED = "no bounds: r is not described with its rows. Write it with duckdb_anon.release(), "
CHANGED = "no bounds: the rows of r are not those that its description was written for"


def patients(con: duckdb.DuckDBPyConnection, name: str = "ward") -> None:
    """24 persons of which 8 have the flu, with roles."""
    con.execute(f"""create table o as select (20 + i)::int as a, 1 + (i // 3)::int as "{name}",
        (['flu', 'cold', 'acne'])[1 + (i * 7) % 3] as s from range(24) t(i)""")
    for column, role in (("a", "quasi"), (name, "quasi"), ("s", "sensitive")):
        con.execute(f"comment on column o.\"{column}\" is 'anon: {role}'")


def ends(con: duckdb.DuckDBPyConnection, release: str = "r", query: str = OF_FLU) -> tuple[object, ...]:
    call = f"select low, high, confidence, coalesce(note, '') from relative_error('{query}', 'o', '{release}')"
    (found,) = con.execute(call).fetchall()
    return tuple(found)


@pytest.mark.parametrize("call", ["mondrian('o', 3)", "anatomy('o', 3)"])
def test_a_described_release_has_bounds_and_a_table_of_the_same_rows_has_none(con, call):
    patients(con)
    duckdb_anon.release(con, "r", call, independent=True)
    low, high, confidence, _ = ends(con)
    assert low <= 8 <= high and confidence is not None
    con.execute("create table plain as from r")
    assert ends(con, "plain") == (
        None, None, None, UNDESCRIBED.replace(" r ", " plain ") + "anon_release or duckdb-anon release",
    )  # fmt: skip
    con.execute("comment on table plain is 'anon: release of o by anatomy(l := 3) on 2026-01-01 with duckdb-anon 1'")
    assert ends(con, "plain")[:3] == (None, None, None)


@pytest.mark.parametrize(
    "change",
    [
        "update r set bucket = 1 where bucket = 2", "insert into r from r limit 1",
        "alter table r rename column ward to station", "alter table r alter column a type bigint",
    ],
)  # fmt: skip
def test_a_release_that_was_changed_has_estimates_alone(con, change):
    patients(con)
    duckdb_anon.release(con, "r", "anatomy('o', 3)", independent=True)
    assert ends(con)[:2] == (8, 8)
    con.execute("create table kept as from r")
    con.execute(change)
    assert ends(con)[:3] == (None, None, None)
    assert CHANGED in ends(con)[3]
    (estimate,) = con.execute(f"select estimate, low, note from estimate('{OF_FLU}', 'r')").fetchall()
    assert estimate[0] is not None and estimate[1] is None and CHANGED in estimate[2]
    text = con.execute(f"select rewrite_query('{OF_FLU}', 'o', 'r', bounds := 'sure')").fetchall()[0][0]
    assert len(con.execute(text).description) == 1


def test_rows_in_another_order_and_in_a_file_are_the_same(con, tmp_path):
    patients(con)
    said = duckdb_anon.release(con, "r", "anatomy('o', 3)", independent=True)
    con.execute("create table turned as from r order by hash(a)")
    con.execute(f"comment on table turned is '{said}'")
    assert ends(con, "turned")[:2] == (8, 8)
    file = tmp_path / "r.parquet"
    duckdb_anon.write_parquet(con, "r", str(file))
    assert ends(con, str(file))[:2] == (8, 8)
    duckdb_anon.release(con, str(tmp_path / "straight.parquet"), "anatomy('o', 3)", independent=True)
    assert ends(con, str(tmp_path / "straight.parquet"))[:2] == (8, 8)
    duckdb_anon.release(con, "parts", "anatomy('o', 3)", part_rows=1000, independent=True)
    assert ends(con, "parts")[:2] == (8, 8)
    duckdb_anon.release(con, str(tmp_path / "parts.parquet"), "anatomy('o', 3)", part_rows=1000, independent=True)
    assert ends(con, str(tmp_path / "parts.parquet"))[:2] == (8, 8)


@pytest.mark.parametrize("name", ["bucket_", "BUCKET__"])
def test_a_column_of_the_original_is_no_bucket(con, name):
    patients(con, name)
    duckdb_anon.release(con, "r", "anatomy('o', 3)", independent=True)
    assert ends(con)[:2] == (8, 8)


def test_a_hierarchy_that_is_not_there_is_named(con):
    patients(con)
    con.execute("create table r as from mondrian('o', 3); create table trees as select '1' as leaf, '*' as root")
    named = (
        r"the hierarchy of 'a' is 'tree', which is not a committed table \(did you mean 'trees'\?\). There are: o, r"
    )
    with pytest.raises(duckdb.InvalidInputException, match=named):
        con.execute(f"from relative_error('{OF_FLU}', 'o', 'r', hierarchies := {{'a': 'tree'}})")


def test_the_remedy_for_a_file_is_no_comment(con, tmp_path):
    patients(con)
    con.execute("create table r as from microaggregate('o', 3); update r set s = s || 'x'")
    for kind in ("csv", "parquet"):
        con.execute(f"copy r to '{tmp_path}/r.{kind}'")
        with pytest.raises(duckdb.InvalidInputException, match=r"hierarchies := \{'s': 'TREE'\}") as error:
            con.execute(f"select rewrite_query('{OF_FLU}', 'o', '{tmp_path}/r.{kind}')")
        assert "COMMENT" not in str(error.value)


INSIDE = {
    "json": "to_json({v})", "struct(x varchar)": "{{'x': {v}}}", "blob": "({v})::blob",
    "map(varchar, varchar)": "map([{v}], [{v}])", "uuid": "md5({v})::uuid",
}  # fmt: skip


@pytest.mark.parametrize("value", INSIDE.values(), ids=INSIDE)
def test_texts_inside_of_other_types_are_compared_too(con, value):
    some, node = value.format(v="'v' || i % 3"), value.format(v="'node'")
    con.execute(f"create table people as select 20 + i % 9 as age, {some} as g from range(60) r(i)")
    con.execute("create table r as select {'lower': age, 'upper': age} as age, g from people")
    least = con.execute("select min(g::varchar) from people").fetchall()[0][0].replace("'", "''")
    query = f"select count(*) from people where g::varchar = '{least}'"
    call = "select rewrite_query($1, 'people', 'r', qi := 'age', keep := 'g')"
    assert con.execute(con.execute(call, [query]).fetchall()[0][0]).fetchall() == [(20,)]
    con.execute(f"update r set g = {node}")
    with pytest.raises(duckdb.InvalidInputException, match="1 distinct text"):
        con.execute(call, [query])
