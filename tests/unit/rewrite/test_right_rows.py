"""An answer has the original query's rows: no group that does not exist, no row too many, whatever stands in a key."""

import duckdb
import pytest

import duckdb_anon
from tests.reference.seeded import seeded_release

ROLES = "qi := ['age', 'sex', 'hours'], sensitive := 'pay'"


@pytest.fixture(scope="module")
def con():
    """Records; boxes hides ages and hours, of which most are 40."""
    with duckdb_anon.connect() as con:
        con.execute(
            "create table p as select 20 + i % 30 as age, ['f', 'm'][1 + i % 2] as sex, "
            "case when i % 3 = 0 then 1 + i % 20 else 40 end as hours, 100 * (i % 7) as pay from range(240) as r(i)"
        )
        seeded_release(con, "boxes", f"mondrian('p', 10, {ROLES}, seed := 1)", independent=True)
        seeded_release(con, "levels", f"incognito('p', 100, {ROLES}, seed := 1)", independent=True)
        seeded_release(con, "rows", f"muco('p', 0.3, {ROLES}, seed := 1)", independent=True)
        seeded_release(con, "rr", f"rr_distort('p', p := 0.8, {ROLES}, seed := 1)", independent=True)
        yield con


def rows(con: duckdb.DuckDBPyConnection, query: str, release: str = "boxes") -> list[tuple[object, ...]]:
    text = con.execute(f"select rewrite_query($1, 'p', '{release}', {ROLES})", [query]).fetchall()[0][0]
    return con.execute(text).fetchall()


@pytest.mark.parametrize("release", ["boxes", "rr"])
@pytest.mark.parametrize(
    "query",
    [
        "select 'x' as k from (select count(*) from p)",
        "select 'x' as k from (select count(*) from p) union all select 'y' from (select sum(pay) from p)",
        "select 1 as k, count(*) as n from (select count(*) from p)",
        "select 'all' as k, count(*) as n from p group by k",
        "select n from (select 'all' as k, count(*) as n from p group by k)",
        "select n from (with recursive r as (select 1 as x union all select x + 1 from r where x < 3) "
        "select x, count(*) as n from r join p on true group by x)",
    ],
)
def test_constants_and_whole_counts_are_rows_as_in_the_original(con, query, release):
    assert sorted(rows(con, query, release)) == sorted(con.execute(query).fetchall())


@pytest.mark.parametrize(
    "query",
    [
        "select age >= (select avg(age) from p) as k, count(*) as n from p group by 1",
        "select age in (select age from p where hours = 40 group by age) as k, count(distinct sex) as n from p group by k",
        "select (select max(age) from p where sex = 'f') as k, max(pay) as n from p group by k",
    ],
)
def test_keys_may_read_the_original(con, query):
    assert {row[0] for row in rows(con, query)} and len(rows(con, query)) == len(con.execute(query).fetchall())


def test_groups_below_half_a_record_are_left_out_and_totals_hold(con):
    query = "select hours, sex, count(*) as n, sum(pay) as s from p group by all"
    estimates = con.execute(
        f"select measure, min(estimate), sum(estimate) from estimate($1, 'boxes', original := 'p', engine := 'closed', {ROLES}) "
        "group by measure",
        [query],
    ).fetchall()
    found = {measure: (least, total) for measure, least, total in estimates}
    assert found["n"][0] >= 0.5
    assert found["n"][1] == pytest.approx(240)
    assert found["s"][1] == pytest.approx(con.execute("select sum(pay) from p").fetchall()[0][0], rel=0.1)
    levels = "select sex, hours, count(*) as n, grouping(sex, hours) as l from p group by rollup(sex, hours)"
    text = f"select l, sum(n) from ({rewritten(con, levels)}) group by l"
    assert {total for _, total in con.execute(text).fetchall()} <= set(range(230, 251))


def rewritten(con: duckdb.DuckDBPyConnection, query: str) -> str:
    return str(con.execute(f"select rewrite_query($1, 'p', 'boxes', {ROLES})", [query]).fetchall()[0][0])


def test_windows_having_and_order_hold_of_the_groups_that_stay(con):
    query = (
        "select hours, count(*) as n, sum(count(*)) over () as t from p group by hours having count(*) > 2 "
        "order by count(*) desc, hours"
    )
    found = con.execute(rewritten(con, query)).fetchall()
    assert found and found == sorted(found, key=lambda row: (-row[1], row[0]))
    assert all(n >= 2 for _, n, _ in found) and {t for *_, t in found} == {found[0][2]}


def test_an_answer_whose_groups_are_mostly_unlikely_says_why(con):
    query = "select age, hours, pay, sum(pay) as s from p group by all order by s desc limit 5"
    with pytest.raises(duckdb.Error, match="which groups exist"):
        rows(con, query, "levels")


def test_a_scalar_subquery_has_one_row_in_every_draw(con):
    query = "select count(distinct age) as n, (select sex from p where pay = (select max(pay) from p) and age = 26) as k from p"
    assert len(rows(con, query)) == 1


@pytest.mark.parametrize("release", ["boxes", "rr"])
@pytest.mark.parametrize(
    "value",
    [
        "age > 30 or hours < 20",
        "hours or hours",
        "(hours - 40)::boolean",
        "case when age > 30 then sex = 'f' else false end",
        "coalesce(age > 30, false)",
        "starts_with(sex, 'f')",
        "not (age > 30 and sex = 'm')",
    ],
)
def test_booleans_are_added_up_as_ones(con, value, release):
    query = f"select sum({value}) as s, count(*) filter (where {value}) as n from p"
    found = con.execute(
        f"select original, estimate, low, high, confidence from relative_error($1, 'p', '{release}', {ROLES})", [query]
    ).fetchall()
    assert found[0][0] == found[1][0]
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-6)
    assert all(low - 1e-9 <= truth <= high + 1e-9 for truth, _, low, high, sure in found if sure == 1)


def test_the_mean_is_the_average_by_any_name(con):
    query = "select mean(age), avg(age), favg(age), count_star(), count(*), fsum(age), sum(age) from p where hours < 40"
    ((mean, avg, favg, stars, count, fsum, total),) = rows(con, query)
    assert mean == avg == favg and stars == count and fsum == pytest.approx(total, abs=0.5)


def test_values_and_names_of_several_lines_are_read_as_they_are():
    with duckdb_anon.connect() as con:
        con.execute(
            "create table t as select [E'a\nb', 'ab'][1 + i % 2] as \"c\nd\", i % 9 as age, i % 4 as ill from range(90) r(i)"
        )
        roles = "qi := [E'c\nd', 'age'], sensitive := 'ill'"
        seeded_release(con, "m", f"mondrian('t', 5, {roles}, seed := 1)", independent=True)
        query = 'select "c\nd" as k, count(*) as n from t where "c\nd" = E\'a\nb\' and age >= 0 group by 1'
        estimates = con.execute(
            f"select k, estimate from estimate($1, 'm', original := 't', {roles})", [query]
        ).fetchall()
        assert estimates == [("a\nb", 45)]
        text = con.execute(f"select rewrite_query($1, 't', 'm', {roles})", [query]).fetchall()[0][0]
        assert con.execute(text).fetchall() == [("a\nb", 45)]


@pytest.mark.parametrize("release", ["boxes", "rr"])
def test_answers_have_the_types_of_the_original(con, release):
    query = (
        "select sex, count(*) as n, count(*) + 1 as p, sum(pay) as s, avg(age) as a, sum(age) / 2 as h, max(hours) as m, "
        "sum((pay / 3)::decimal(9, 2)) as d, count(distinct age) as c from p where age < 40 group by sex"
    )
    text = con.execute(f"select rewrite_query($1, 'p', '{release}', {ROLES})", [query]).fetchall()[0][0]
    types = con.execute(f"select list(column_type) from (describe {text})").fetchall()
    assert types == con.execute(f"select list(column_type) from (describe {query})").fetchall()


def test_a_key_may_be_a_part_of_another(con):
    query = "select age // 10 as k, case when age // 10 < 3 then sex else 'old' end as j, count(*) as n from p group by rollup(1, 2)"
    assert {row[:2] for row in rows(con, query)} == {row[:2] for row in con.execute(query).fetchall()}


@pytest.mark.parametrize("release", ["boxes", "rr", "rows"])
@pytest.mark.parametrize(
    "query",
    [
        "pivot (select sex, hours > 20 as h, pay from p) on sex using count(*) group by h",
        "pivot (select sex, pay, hours > 30 as long, age > 30 as old from p) on sex, long using count(*), sum(pay) group by old",
        "pivot (from p where hours = 40) on sex using sum(pay) group by hours",
        "with q as (select sex, pay, hours = 40 as most from p) pivot q on sex using count(*) group by most",
        "select * from (pivot (select sex, hours > 30 as h from p) on sex using count(*)) where h",
    ],
)
def test_a_pivot_that_names_neither_values_nor_keys_has_those_of_the_release(con, query, release):
    text = con.execute(f"select rewrite_query($1, 'p', '{release}', {ROLES})", [query]).fetchall()[0][0]
    assert con.sql(text).columns == con.sql(query).columns
    assert len(con.execute(text).fetchall()) == len(con.execute(query).fetchall())
    asked = [f"estimate($1, '{release}', original := 'p', {ROLES})", f"relative_error($1, 'p', '{release}', {ROLES})"]
    estimates, compared = (con.execute(f"select count(*) from {call}", [query]).fetchall() for call in asked)
    assert estimates == compared


def test_a_pivot_of_too_many_values_is_refused(con):
    with pytest.raises(duckdb.Error, match=r"ON \(age \* 1000 .*cannot-estimate"):
        rows(con, "pivot p on (age * 1000 + pay + hours) using count(*) group by sex", "rows")


UNPIVOTED = {
    "unpivot p on age, hours": "select sex, pay, 'age' as name, age as value from p union all select sex, pay, 'hours', hours from p",
    "select k, count(*) as n, avg(v) as mean from p unpivot (v for k in (age, hours)) group by k": (
        "select k, count(*) as n, avg(v) as mean from (select 'age' as k, age as v from p union all select 'hours', hours from p) group by k"
    ),
    "with q as (select age, hours from p where sex = 'f') select name, sum(value) as s from (unpivot q on age, hours) group by all": (
        "select name, sum(value) as s from (select 'age' as name, age as value from p where sex = 'f' "
        "union all select 'hours', hours from p where sex = 'f') group by all"
    ),
}


@pytest.mark.parametrize("query", UNPIVOTED)
def test_unpivoted_columns_are_answered_by_plausible_tables_as_a_union_of_them_is(con, query):
    text = con.execute(f"select rewrite_query($1, 'p', 'boxes', {ROLES})", [query]).fetchall()[0][0]
    assert "impute(" in text and con.sql(text).columns == con.sql(query).columns
    found, same = (sorted(rows(con, one)) for one in (query, UNPIVOTED[query]))
    assert len(found) == len(con.execute(query).fetchall()) == len(same)
    for row, other in zip(found, same, strict=True):
        assert row == tuple(pytest.approx(value) if isinstance(value, float) else value for value in other)


def test_a_step_is_read_twice_in_a_correlated_query(con):
    query = (
        "with g as (select sex, hours, count(*) as n from p group by all) "
        "select sex, hours, n from g as a where n = (select max(n) from g as b where b.sex = a.sex)"
    )
    assert [row[:2] for row in sorted(rows(con, query))] == [("f", 40), ("m", 40)]
