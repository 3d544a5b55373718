"""Intervals by replay: asked for with `bounds := 'likely'`, made once a release, and how many hold the truth."""

from typing import Any

import duckdb
import pytest

from duckdb_anon.engine.draws import replayed_tables
from duckdb_anon.measures.queries.replay import COVERAGE
from tests.reference.seeded import seeded_release

pytestmark = pytest.mark.campaign

MIDDLE = "select region, median(age) as middle from people where ill = 'flu' group by region"
COUNT = "select count(*) as n from people where age between 30 and 50 and ill = 'flu'"
SEED = f"seed := {2**64}"
CALLS = {
    "anatomy": f"anatomy('people', 2, {SEED})",
    "mondrian": f"mondrian('people', 5, {SEED})",
    "muco": f"muco('people', 0.2, {SEED})",
}


@pytest.fixture
def people(con):
    con.execute("create table places as from (values ('r0', 'north'), ('r1', 'south'), ('r2', 'south')) t(name, side)")
    fill(con, 400)
    return con


def fill(con: duckdb.DuckDBPyConnection, rows: int) -> None:
    """The table people, whose elder half has acne more often."""
    con.execute(f"""create or replace table people as select age, 'r' || hash(i, 2) % 3 as region,
        (hash(i, 3) % 500)::integer + 20 as cost,
        ['flu', 'cold', 'gout', 'acne'][1 + greatest(hash(i, 7) % 4, (age > 50)::integer * (hash(i, 8) % 4))::integer]
          as ill from (select i, (20 + hash(i, 5) % 60)::integer as age from range({rows}) as r(i))""")
    for column, role in (("age", "quasi"), ("region", "quasi"), ("cost", "insensitive"), ("ill", "sensitive")):
        con.execute(f"comment on column people.{column} is 'anon: {role}'")


def asked(con: duckdb.DuckDBPyConnection, query: str, bounds: str, engine: str = "imputed") -> list[tuple[Any, ...]]:
    return con.execute(
        "select original, estimate, low, high, confidence, method, note from "
        "relative_error($1, 'people', 'released', bounds := $2, engine := $3) order by keys::varchar",
        [query, bounds, engine],
    ).fetchall()


@pytest.mark.parametrize("method", CALLS)
def test_an_interval_is_around_the_estimate_and_has_the_measured_confidence(people, method):
    seeded_release(people, "released", CALLS[method])
    engine = "auto" if method == "muco" else "imputed"
    total = "select region, sum(cost) as s from people where ill = 'flu' and age between 30 and 50 group by region"
    for query, groups in ((total, 3), (COUNT, 1)):
        found = asked(people, query, "likely", engine)
        assert len(found) == groups
        for _, estimate, low, high, confidence, _, note in found:
            assert low <= estimate <= high and confidence == COVERAGE < 1
            assert "replay" in note
    assert any(high > low for _, _, low, high, *_ in asked(people, total, "likely", engine))


def test_nothing_is_replayed_unless_an_interval_is_asked_for_and_then_once(people, monkeypatch):
    made = []
    make = replayed_tables._made
    monkeypatch.setattr(replayed_tables, "_made", lambda *given: made.append(1) or make(*given))
    seeded_release(people, "released", CALLS["anatomy"])
    spread = "select stddev(cost) as s from people where ill = 'flu'"
    assert all(row[2:5] == (None, None, None) for row in asked(people, spread, "sure"))
    assert not made
    for query in (spread, COUNT, MIDDLE):
        assert all(0 < row[4] < 1 for row in asked(people, query, "likely"))
    assert made == [1]
    seeded_release(
        people, "released", CALLS["anatomy"].replace(SEED, f"seed := {2**64 + 1}"), replace=True, independent=True
    )
    asked(people, COUNT, "likely")
    assert made == [1, 1]  # another release


def test_what_cannot_be_replayed_has_no_interval_and_says_so(people):
    people.execute("create table released as from anatomy('people', 2, seed := 1)")
    assert all(row[4] is None and "not described" in row[6] for row in asked(people, MIDDLE, "likely"))


def test_an_interval_stays_inside_hard_bounds(people):
    seeded_release(people, "released", CALLS["mondrian"])
    [(_, _, least, most, sure, *_)] = asked(people, COUNT, "sure")
    [(_, _, low, high, *_)] = asked(people, COUNT, "likely")
    assert sure == 1 and least <= low <= high <= most


@pytest.mark.campaign
def test_most_intervals_hold_the_truth_and_are_not_wide(people):
    fill(people, 1500)
    queries = [
        f"select count(*) as n, avg(age) as m, median(age) as d from people where ill = '{ill}' and age between {ages}"
        for ill in ("flu", "cold", "gout", "acne")
        for ages in ("20 and 35", "30 and 55", "50 and 79")
    ]
    found = []
    for seed in range(5):
        call = CALLS["anatomy"].replace(SEED, f"seed := {2**64 + seed}")
        seeded_release(people, "released", call, replace=seed > 0, independent=seed > 0)
        found += [row for query in queries for row in asked(people, query, "likely")]
    found = [row for row in found if row[4] is not None and row[0]]
    assert len(found) >= 120
    assert sum(row[2] - 1e-9 <= row[0] <= row[3] + 1e-9 for row in found) >= 0.85 * len(found)
    assert sorted((row[3] - row[2]) / row[0] for row in found)[len(found) // 2] < 0.6


@pytest.mark.parametrize("kind", ["integer", "decimal(9, 2)", "date"])
def test_an_interval_covers_that_rare_amounts_are_released_as_their_mean(con, kind):
    pay = "round(200 * exp(hash(i, 3) % 1000 / 250))"
    amount = "date_diff('day', date '1900-01-01', pay)" if kind == "date" else "pay"
    pay = f"(date '1900-01-01' + {pay}::integer)" if kind == "date" else f"({pay} + i / 1000)::{kind}"
    con.execute(f"create table people as select (20 + hash(i, 5) % 60)::integer as age, (hash(i, 2) % 3)::integer as "
                f"region, {pay} as pay from range(1500) as r(i)")  # fmt: skip
    for column, role in (("age", "quasi"), ("region", "quasi"), ("pay", "sensitive")):
        con.execute(f"comment on column people.{column} is 'anon: {role}'")
    seeded_release(con, "released", f"slicing('people', 2, sensitive_column := 'alone', {SEED})")
    found = [
        asked(con, f"select quantile_disc({amount}, {part / 10}) as q from people", "likely")[0]
        for part in range(1, 10)
    ]
    joined = sum(original != estimate for original, estimate, *_ in found)
    assert joined >= 6  # the release has other amounts than the original
    assert all(low < high for _, _, low, high, *_ in found)
    assert sum(low <= original <= high for original, _, low, high, *_ in found) >= 0.8 * len(found)


def test_what_a_release_tells_exactly_keeps_its_hard_bounds(people):
    seeded_release(people, "released", CALLS["anatomy"])
    query = "select count(*) as n, median(cost) as m, sum(cost) as s from people where age < 40"
    for measure in ("n", "s"):
        found = people.execute(
            "select original, low, high, confidence from relative_error($1, 'people', 'released', bounds := 'likely') "
            "where measure = $2", [query, measure]).fetchall()  # fmt: skip
        truth = found[0][0]
        assert found == [(truth, truth, truth, 1.0)]


def test_measures_that_intervals_of_a_method_do_not_cover_have_none(people):
    seeded_release(people, "released", CALLS["muco"])
    assert all(row[2:5] == (None, None, None) for row in asked(people, MIDDLE, "likely", "auto"))


def test_single_values_of_continuous_cells_have_no_interval_and_parts_of_them_have(people):
    people.execute("alter table people alter age type double")
    seeded_release(people, "released", CALLS["mondrian"])
    without = (
        "select age, count(*) as n from people group by age",
        "select count(distinct age) as n from people",
        "select count(*) as n from (select age as years, region from people group by 1, 2 having count(*) > 1)",
        "select count(*) as n from people where age in (select age from people group by age limit 3)",
        "select max(n) as n from (select years, count(*) as n from (select age as years from people) group by years)",
    )
    for query in without:
        for row in asked(people, query, "likely"):
            assert row[4] is None and "continuous" in row[6], query
    for query in (
        "select floor(age / 10) as decade, count(*) as n from people group by 1 order by 2 desc limit 3",
        COUNT,
    ):
        assert all(row[4] == COVERAGE for row in asked(people, query, "likely"))
