"""Queries on randomized releases: exact when nothing is distorted, unbiased with honest intervals when it is.

Inversion alone: queries of several randomized columns are answered by plausible tables unless engine := 'closed'.
"""

import duckdb
import numpy as np
import pytest

from duckdb_anon.rewrite.comparison import Wanted, comparison
from tests.reference.rewrite_tables import seen

RUNS = 25
QUERIES = {
    "count": "select count(*) from people where sex = 'f' and age < 40",
    "sum": "select sum(cost) from people where disease in ('flu', 'gout') or age >= 60",
    "distorted sum": "select sum(age) from people where sex = 'm'",
    "distorted mean": "select avg(age) from people where disease <> 'hiv'",
    "group": "select disease, count(*) from people where age < 60 group by disease",
    "group by an exact column": "select place, sum(age) from people where sex = 'f' group by place",
    "cube": "select sex, disease, count(*) from people where age <> 30 group by cube(sex, disease)",
    "rollup over an exact column": "select place, age, avg(cost) from people group by rollup(place, age)",
    "expression": "select age // 20 as decades, sum(age) from people group by all",
    "expression of two columns": "select age >= 40 and sex = 'f' as x, disease, count(*) from people group by all",
    "mixed with an exact column": "select count(*) from people where age < 5 * cost",
    "join": "select season, count(*), sum(age) from people join seasons on disease = name group by season",
    "late filter": "select age, count(*) filter (where disease = 'flu' or age > 30) from people group by age",
    "all beside some": "select count(*), count(*) filter (where age > 30 and sex = 'f'), sum(cost) filter (where age > 30) "
    "from people",
}
CELLS = 4 + 3 + 2 + 3 * 4 + 11 + 3 + 2 * 3 + 1 + 2 * 3 + 4 + 3


@pytest.fixture
def people(con):
    con.execute("""
        create table people as
        select 20 + 10 * (i * i % 6) as age, ['f', 'm'][1 + (i // 2) % 2] as sex, ['a', 'b'][1 + (i // 5) % 2] as place,
            ['flu', 'gout', 'hiv', 'flu'][1 + (i * 7 // 3) % 4] as disease, 5.0 + i % 11 as cost
        from range(400) t(i);
        comment on column people.age is 'anon: quasi';
        comment on column people.sex is 'anon: quasi';
        comment on column people.disease is 'anon: sensitive';
        comment on column people.cost is 'anon: insensitive';
        comment on column people.place is 'anon: insensitive';
        create table seasons as
        from (values ('flu', 'winter'), ('gout', 'none'), ('hiv', 'none'), ('flu', 'autumn')) t(name, season);
    """)
    return con


@pytest.mark.campaign
def test_estimates_are_unbiased_and_intervals_are_as_wide_as_the_errors(people):
    people.execute("create table r as from rr_distort('people', p := 0.75)")
    tables = [seen(people, name) for name in ("people", "r")]
    others = [seen(people, "seasons")]
    texts = {name: comparison(query, *tables, others, Wanted(spread="uniform")) for name, query in QUERIES.items()}
    standard: dict[tuple[str, str], list[float]] = {}
    columns = "keys::varchar || measure, estimate - original, (high - low) / 2 / 1.96"
    for seed in range(RUNS):
        people.execute(f"create or replace table r as from rr_distort('people', p := 0.75, seed := {seed})")
        for name, text in texts.items():
            for keys, error, deviation in people.execute(f"select {columns} from ({text})").fetchall():
                if deviation is None:  # a group of less than half a record in this release, which is left out
                    continue
                assert deviation >= 0
                if error is not None:  # the mean of no rows at all has no truth to compare with
                    standard.setdefault((name, keys), []).append(error / deviation if deviation > 1e-3 else 1e3 * error)
    # what is left out of some releases is an estimate of the others only
    standard = {key: errors for key, errors in standard.items() if len(errors) == RUNS}
    assert len(standard) > 0.8 * CELLS
    within = [abs(error) < 1.96 for errors in standard.values() for error in errors]
    assert np.mean(within) == pytest.approx(0.95, abs=0.01)
    assert np.mean([np.var(errors) for errors in standard.values()]) == pytest.approx(1.0, abs=0.15)
    for key, errors in standard.items():
        assert abs(np.mean(errors)) < 4 / np.sqrt(RUNS), key


def test_a_cube_is_the_sum_of_its_cells(people):
    people.execute("create table r as from rr_distort('people', p := 0.75, seed := 4)")
    query = "select sex, disease, age, count(*) from people group by cube(sex, disease, age)"
    found = people.execute(
        "select estimate, low, high from relative_error(?, 'people', 'r', engine := 'closed')", [query]
    ).fetchall()
    assert sum(estimate for estimate, _, _ in found) == pytest.approx(2**3 * 400)
    assert all(low <= estimate <= high for estimate, low, high in found)
    assert next(high - low for estimate, low, high in found if estimate == pytest.approx(400)) == pytest.approx(
        0, abs=1e-3
    )


def test_what_was_not_randomized_is_known_exactly(people):
    people.execute("create table r as from rr_distort('people', p := 0.75, seed := 4)")
    query = "select place, count(*), sum(cost) from people group by rollup(place)"
    found = people.execute("select original, low, high, confidence from relative_error(?, 'people', 'r')", [query])
    assert all(low == original == high and confidence == 1 for original, low, high, confidence in found.fetchall())


def test_a_copy_that_lost_its_types_is_refused(people, tmp_path):
    people.execute("create table r as from rr_distort('people', p := 0.75)")
    people.execute(f"copy r to '{tmp_path}/r.csv'")
    with pytest.raises(duckdb.Error, match="is a VARCHAR, not the channels of a randomized release"):
        people.execute(f"from relative_error('select count(*) from people', 'people', '{tmp_path}/r.csv')")


def test_squares_of_large_whole_numbers_do_not_run_over(people):
    people.execute("alter table people alter cost type integer using (cost * 100000)::integer")
    people.execute("create table r as from rr_distort('people', p := 0.75, seed := 4)")
    for query in (
        "select sum(cost) from people where sex = 'f'",
        "select disease, avg(cost) from people group by disease",
    ):
        found = people.execute(
            "select low < estimate and estimate < high from relative_error(?, 'people', 'r')", [query]
        )
        assert all(between for (between,) in found.fetchall())


@pytest.mark.parametrize("aggregate", ["median(cost)", "quantile_disc(cost, 0.25)", "quantile_cont(cost, 0.9)"])
def test_quantiles_of_exact_columns_tell_the_values_of_a_randomized_group_apart(people, aggregate):
    people.execute("alter table people add column far double; update people set far = cost + if(sex = 'f', 0, 100)")
    people.execute("comment on column people.far is 'anon: insensitive'")
    people.execute("create table r as from rr_distort('people', p := 0.9, seed := 4)")
    statement = aggregate.replace("cost", "far")
    for query in (
        f"select sex, {statement} from people group by sex order by sex",
        f"select sex, {statement} from people where age < 60 group by sex order by sex",
    ):
        text = people.execute("select rewrite_query(?, 'people', 'r', spread := 'uniform')", [query]).fetchone()[0]
        truth, found = people.execute(query).fetchall(), people.execute(text).fetchall()
        assert [sex for sex, _ in found] == ["f", "m"]
        for (_, real), (_, estimate) in zip(truth, found, strict=True):
            assert estimate == pytest.approx(real, abs=4)  # the values of a group lie 10 apart at most, groups 100


def test_sums_of_randomized_amounts_are_inverted_where_rows_are_many(people):
    people.execute("create table few as from rr_distort('people', p := 0.8, scope := 'both', seed := 1)")
    people.execute("create table many as select f.* from few as f, range(13)")
    amount, other = "sum(age) as x from people where sex = 'f'", "avg(age) as x from people where sex = 'f'"
    for release, query, method in (
        ("few", amount, "imputed"), ("many", amount, "closed form"), ("many", other, "imputed"),
        ("many", "sum(cost) as x from people where sex = 'f' and age < 40", "imputed"),
    ):  # fmt: skip
        asked = people.execute(
            "select method from estimate($1, $2, original := 'people', bounds := 'none')", [f"select {query}", release]
        )
        assert asked.fetchall() == [(method,)], (release, query)
