"""Numbers, moments and truths that the original does not have: nothing is certain of what reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import duckdb_anon

ROLES = "qi := 'age', sensitive := 'x'"
REFUSED = r"rewrite_query: 1 distinct value\(s\) of 'x' in r are not in people .*bounds := 'none'"

VALUES = {
    "integer": ("1 + i % 3", "99", "3"),
    "wider integer": ("(1 + i % 3)::tinyint", "99::bigint", "3"),
    "decimal": ("(1 + i % 3)::decimal(9, 2) / 2", "99.25::decimal(9, 2)", "1.5"),
    "double": ("(1 + i % 3) / 2", "'nan'::double", "1.5"),
    "date": ("date '2020-01-01' + (i % 3)::int", "date '2021-01-01'", "date '2020-01-03'"),
    "timestamp": ("timestamp '2020-01-01' + to_days((i % 3)::int)", "timestamp '2020-01-03 00:00:01'", "'2020-01-03'"),
    "time": ("time '10:00' + to_hours(i % 3)", "time '23:00'", "time '12:00'"),
    "truth": ("i % 3 = 5", "true", "false"),
    "null": ("1 + i % 3", "null", "3"),
}
CELLS = {
    "values": "{}",
    "sets": "[{}]",
    "counts": "map([{}], [1::bigint])",
}
CASES = [(cell, value) for cell in CELLS for value in VALUES if (cell, value) != ("counts", "null")]
"""Counts have no key that is NULL."""
OF_SETS = "qi := ['age', 'x']"


def ask(con: duckdb.DuckDBPyConnection, condition: str, bounds: str, roles: str = ROLES) -> list[tuple[object, ...]]:
    call = f"select rewrite_query($1, 'people', 'r', bounds := $2, {roles})"
    ((text,),) = con.execute(call, [f"select count(*) from people where {condition}", bounds]).fetchall()
    return con.execute(text).fetchall()


def releases(con: duckdb.DuckDBPyConnection, shown: str, kind_of_value: str) -> Callable[[str], str]:
    """Make the original; what makes its release, with an expression over x in the place of x."""
    con.execute(f"create table people as select 20 + i % 9 as age, {VALUES[kind_of_value][0]} as x from range(90) r(i)")
    numbered = ", row_number() over () as bucket" if shown == "counts" else ""

    def release_with(x: str) -> str:
        cells = f"{{'lower': age - 1, 'upper': age + 1}} as age, {CELLS[shown].format(x)} as x{numbered}"
        return f"create or replace table r as select {cells} from people"

    return release_with


@pytest.mark.parametrize(("shown", "kind_of_value"), CASES)
def test_a_value_that_the_original_does_not_have_takes_what_is_certain_away(
    con: duckdb.DuckDBPyConnection, shown: str, kind_of_value: str
) -> None:
    """As of values that were coarsened or suppressed by hand: `x = 3` counted too few, and said so for certain."""
    _, other, asked = VALUES[kind_of_value]
    release_with = releases(con, shown, kind_of_value)
    con.execute(release_with("x"))
    condition = f"x = {asked}"
    ((truth,),) = con.execute(f"select count(*) from people where {condition}").fetchall()
    roles = OF_SETS if shown == "sets" else ROLES
    ((estimate, low, high),) = ask(con, condition, "sure", roles)
    assert low <= truth <= high
    con.execute(release_with(f"case when x <> {asked} then x else {other} end"))
    assert ask(con, condition, "none", roles) != [(estimate,)]
    with pytest.raises(duckdb.InvalidInputException, match=REFUSED):
        ask(con, condition, "sure", roles)
    assert ask(con, "age > 25", "sure", roles)  # which reads none of them
    con.execute(f"comment on column r.x is 'anon: {'quasi' if shown == 'sets' else 'sensitive'}'")
    assert ask(con, condition, "sure", roles)


@pytest.mark.parametrize(("shown", "kind_of_value"), CASES)
def test_a_text_that_is_kept_holds_of_no_other_values(
    con: duckdb.DuckDBPyConnection, shown: str, kind_of_value: str
) -> None:
    _, other, asked = VALUES[kind_of_value]
    release_with = releases(con, shown, kind_of_value)
    con.execute(release_with("x"))
    call = f"select rewrite_query($1, 'people', 'r', bounds := 'sure', {OF_SETS if shown == 'sets' else ROLES})"
    query = f"select count(*) from people where x = {asked}"
    ((text,),) = con.execute(call, [query]).fetchall()
    ((unread,),) = con.execute(call, ["select count(*) from people where age > 25"]).fetchall()
    before = con.execute(text).fetchall(), con.execute(unread).fetchall()
    changed = release_with(f"case when x <> {asked} then x else {other} end")
    for ended in ("rollback", "commit"):
        con.execute("begin").execute(changed)
        assert con.execute(unread).fetchall() == before[1]
        with pytest.raises(duckdb.InvalidInputException, match=r"the (values|texts) of 'x' in r are not those"):
            con.execute(text)
        con.execute(ended)
        if ended == "rollback":
            assert con.execute(text).fetchall() == before[0]
    con.execute(f"{release_with('x')} order by random()")
    assert con.execute(text).fetchall() == before[0]


@pytest.mark.parametrize("value", ["x", "'v' || x"])
@pytest.mark.parametrize("short", ["map([]::{0}[], []::bigint[])", "map([x::{0}], [0::bigint])", "null"])
def test_counts_that_were_taken_away_are_no_nulls(con: duckdb.DuckDBPyConnection, value: str, short: str) -> None:
    """As of rare values: buckets without counts were NULL, and that was called certain."""
    con.execute(
        f"create table people as select age, {value} as x from (select 20 + i % 9 as age, i % 3 as x from range(90) r(i))"
    )
    kind = con.execute("select typeof(x) from people limit 1").fetchall()[0][0]
    one = "row_number() over () as bucket, age, {} as x from people"
    con.execute(f"create table r as select {one.format('map([x], [1::bigint])')}")
    asked = f"x = {con.execute('select max(x) from people').fetchall()[0][0]!r}"
    assert ask(con, asked, "sure") == [(30, 30, 30)]
    changed = f"case when {asked} then {short.format(kind)} else map([x], [1::bigint]) end"
    con.execute(f"create or replace table r as select {one.format(changed)}")
    with pytest.raises(
        duckdb.InvalidInputException, match=r"(counts of 'x' are of fewer rows|1 distinct (text|value))"
    ):
        ask(con, asked, "sure")
    con.execute("insert into people values (20, null)")  # now there may be some
    assert ask(con, asked, "sure")


@pytest.mark.parametrize("tree", ["('1', '*'), ('2', '*'), ('3', '*')", "('1', '*'), ('2', '*'), ('3', '99')"])
def test_a_number_beside_a_tree_is_a_number(con: duckdb.DuckDBPyConnection, tree: str) -> None:
    con.execute("create table people as select 20 + i % 9 as age, 1 + i % 3 as x from range(90) r(i)")
    con.execute("create table r as select {'lower': age, 'upper': age} as age, if(x = 3, 99, x) as x from people")
    con.execute(f"create table tree as from (values {tree}) as t(leaf, root)")
    with pytest.raises(duckdb.InvalidInputException, match=REFUSED):
        ask(con, "x = 3", "sure", "qi := ['age', 'x'], hierarchies := {'x': 'tree'}")


def test_lists_of_persons_are_of_their_own_values(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table people as select 20 + i % 9 as age, [i % 3, 7] as x from range(90) r(i)")
    con.execute("create table r as select {'lower': age, 'upper': age} as age, x from people")
    query = "list_contains(x, 2)"
    assert ask(con, query, "sure") == [(30, 30, 30)]
    con.execute("update r set x = [if(x[1] = 2, 9, x[1]), 7]")
    with pytest.raises(duckdb.InvalidInputException, match=REFUSED):
        ask(con, query, "sure")


def test_what_slices_make_up_is_null(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table people as select i % 9 as age, i % 3 as x, i % 2 as kept from range(90) r(i)")
    roles = f"{ROLES}, keep := 'kept'"
    con.execute(f"create table r as from merging('people', 2, fake := 2, {roles})")
    con.execute("update r set kept = null where rowid < 3")
    call = (
        f"select rewrite_query('select count(*) from people where kept = 1', 'people', 'r', bounds := 'sure', {roles})"
    )
    assert con.execute(call).fetchall()


MADE = {
    "microaggregate": "microaggregate('people', 4, qi := ['age', 'x'])",
    "rank_swap": "rank_swap('people', 10, qi := ['age', 'x'])",
    "muco": "muco('people', .2, qi := ['age'], sensitive := 'x')",
    "rr_distort": "rr_distort('people', p := .8, scope := 'both', qi := 'age', sensitive := 'x')",
    "mondrian": "mondrian('people', 4, qi := 'age', sensitive := 'x')",
    "anatomy": "anatomy('people', 2, qi := 'age', sensitive := 'x')",
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize("described", [False, True])
def test_releases_of_ours_are_answered(con: duckdb.DuckDBPyConnection, made: str, described: bool) -> None:
    """Numbers that microaggregation or a channel drew are not the original's, and nothing is certain of these."""
    con.execute("create table people as select 20 + (i * 7) % 31 as age, (i * i) % 5 as x from range(300) r(i)")
    con.execute(f"create table r as from {made}")
    if described:
        con.execute(f"comment on table r is 'anon: release of people by {made.split('(')[0]}()'")
    for condition in ("x = 3", "age > 30 and x < 2"):
        ((truth,),) = con.execute(f"select count(*) from people where {condition}").fetchall()
        ((_, *ends),) = ask(con, condition, "hard")
        assert not ends or ends[0] <= truth <= ends[1]


OF_FLU = "select count(*) from o where s = ''flu''"


def _wards(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """24 persons of which 8 have the flu, a column `name` among theirs, with roles."""
    con.execute(
        f'create table o as select (20 + i)::int as a, 1 + (i // 3)::int as "{name}", '
        "(['flu', 'cold', 'acne'])[1 + (i * 7) % 3] as s from range(24) t(i)"
    )
    for column, role in (("a", "quasi"), (name, "quasi"), ("s", "sensitive")):
        con.execute(f"comment on column o.\"{column}\" is 'anon: {role}'")


@pytest.mark.parametrize("name", ["bucket_", "BUCKET__", "ward"])
def test_a_column_of_the_original_is_no_bucket(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Its name was taken for the bucket's, so that counts were held against other rows: 1 for 8, and refusals."""
    _wards(con, name)
    con.execute("create table r as from anatomy('o', 3, seed := 1)")
    (found,) = con.execute(f"select original, low, high from relative_error('{OF_FLU}', 'o', 'r')").fetchall()
    assert found == (8, 8, 8)
    con.execute("update r set bucket = 1")
    with pytest.raises(duckdb.InvalidInputException, match="counts of 's' are of fewer rows than the bucket has"):
        con.execute(f"from relative_error('{OF_FLU}', 'o', 'r')")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("bucket = 1", "fewer rows"),
        ("bucket = null", "fewer rows"),
        ("bucket = bucket % 2", "fewer rows"),
        ("s = map(['flu'], [8])", "not those of its rows"),
        ("s = map(['flu'], [-1])", "not those of its rows"),
        ("s = map(['flu'], [3]) where rowid % 3 = 0", "not those of its rows"),
        ("s = null where rowid % 3 = 0", "not those of its rows"),
    ],
)
@pytest.mark.parametrize("described", [True, False])
def test_counts_of_other_rows_are_not_certain(
    con: duckdb.DuckDBPyConnection, change: str, told: str, described: bool
) -> None:
    """A release that says how it was made may have been changed since: 1 for 8 was called certain, and 50 to 10."""
    _wards(con, "ward")
    if described:
        duckdb_anon.release(con, "r", "anatomy('o', 3)")
    else:
        con.execute("create table r as from anatomy('o', 3)")
    asked = f"select estimate, low, high from estimate('{OF_FLU} and a < 30', 'r', original := 'o', bounds := '{{}}')"
    assert con.execute(asked.format("sure")).fetchall()
    con.execute(f"update r set {change}")
    with pytest.raises(duckdb.InvalidInputException, match=told):
        con.execute(asked.format("sure"))
    assert con.execute(asked.format("none")).fetchall()


def test_counts_may_stand_in_another_order(con: duckdb.DuckDBPyConnection) -> None:
    _wards(con, "ward")
    con.execute("create table r as from anatomy('o', 3)")
    con.execute("update r set s = map_from_entries(list_reverse(map_entries(s))) where rowid % 2 = 0")
    (found,) = con.execute(f"select estimate, low, high from relative_error('{OF_FLU}', 'o', 'r')").fetchall()
    assert found == (pytest.approx(8), 8, 8)


def test_of_two_columns_that_may_be_the_bucket_none_is_taken(con: duckdb.DuckDBPyConnection) -> None:
    _wards(con, "ward")
    duckdb_anon.release(con, "r", "anatomy('o', 3)")
    con.execute("alter table r add column bucket_ integer default 1")
    for bounds in ("none", "sure"):
        with pytest.raises(duckdb.InvalidInputException, match="bucket, bucket_ of r may each tell the bucket"):
            con.execute(f"from estimate('{OF_FLU}', 'r', bounds := '{bounds}')")
    con.execute("alter table r drop column bucket")  # one is left
    with pytest.raises(duckdb.InvalidInputException, match="counts of 's'"):
        con.execute(f"from estimate('{OF_FLU}', 'r', bounds := 'sure')")


@pytest.mark.parametrize("bounds", ["none", "sure"])
@pytest.mark.parametrize(
    "weight", ["suppressed integer default -3", "sampling_rate double default 0", "sampling_rate double default 1.5"]
)
def test_rows_that_stand_for_no_number_of_rows_are_refused(
    con: duckdb.DuckDBPyConnection, weight: str, bounds: str
) -> None:
    _wards(con, "ward")
    con.execute("create table r as from mondrian('o', 3)")
    con.execute(f"alter table r add column {weight}")
    with pytest.raises(duckdb.InvalidInputException, match=rf"column {weight.split()[0]} of the release is .* it goes"):
        con.execute(f"select rewrite_query('{OF_FLU}', 'o', 'r', bounds := '{bounds}')")
    with pytest.raises(duckdb.InvalidInputException, match="it goes from"):
        con.execute("from information_loss('o', 'r')")


def test_a_hierarchy_that_is_not_there_is_named(con: duckdb.DuckDBPyConnection) -> None:
    _wards(con, "ward")
    con.execute("create table r as from mondrian('o', 3); create table trees as select '1' as leaf, '*' as root")
    told = r"the hierarchy of 'a' is 'tree', which is not a committed table \(did you mean 'trees'\?\); there are: o, r"
    with pytest.raises(duckdb.InvalidInputException, match=told):
        con.execute(f"from relative_error('{OF_FLU}', 'o', 'r', hierarchies := {{'a': 'tree'}})")


@pytest.mark.parametrize("kind", ["{'q': {'p': i, 'domain': ['x']}}", "{'lower': i, 'upper': i}"])
def test_a_person_is_one_value(con: duckdb.DuckDBPyConnection, kind: str) -> None:
    con.execute(f"create table o as select i % 3 as a, i % 4 as g, {kind} as who from range(12) t(i)")
    with pytest.raises(
        duckdb.InvalidInputException, match=r"column 'who' is STRUCT.*a person is a number, a date or a"
    ):
        con.execute("from correlation('o', qi := ['a', 'g'], person := 'who')")


def test_a_file_is_not_told_to_be_commented(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    _wards(con, "ward")
    con.execute("create table r as from microaggregate('o', 3); update r set s = s || 'x'")
    for kind in ("csv", "parquet"):
        con.execute(f"copy r to '{tmp_path}/r.{kind}'")
        with pytest.raises(
            duckdb.InvalidInputException, match=r"hierarchies := \{'s': 'TREE'\}; CSV and JSON lose"
        ) as e:
            con.execute(f"select rewrite_query('{OF_FLU}', 'o', '{tmp_path}/r.{kind}')")
        assert "COMMENT" not in str(e.value)
