"""The decisions of ACRO 1.0.2 (its defaults, suppress=False) on tables of census: as figures, and where it is installed."""

import itertools

import pytest

import duckdb_anon
from tests.unit.outputs.test_rules import alone, made

BY_RACE = {2: [1], 3: [1], 4: [1, 2, 7, 8], 5: [1, 2, 3, 6, 7, 8], 6: [1, 2, 3, 4, 6, 7, 8, 9],
           7: [1, 2, 3, 4, 6, 7, 8, 9], 8: [1, 2], 10: [1, 2]}  # fmt: skip
BY_MARST = {2: [6], 3: [6], 4: [6], 5: [6], 6: [1, 2, 6], 7: [1, 2, 6], 8: [1, 6], 10: [6]}
"""Cells that pass, by EDUC."""


@pytest.fixture(scope="module")
def policied(shared_data):
    con = duckdb_anon.connect()
    con.execute(f"create table census as from read_csv('{shared_data / 'census.csv'}')")
    for column in ("AGE", "RACE", "MARST", "EDUC"):
        con.execute(f"comment on column census.{column} is 'anon: quasi'")
    con.execute("comment on column census.INCWAGE is 'anon: sensitive'; comment on table census is 'anon: outputs()'")
    yield con
    con.close()


@pytest.mark.parametrize(
    ("aggregate", "key", "passed"),
    [("count(*)", "RACE", BY_RACE), ("avg(INCWAGE)", "RACE", BY_RACE), ("sum(INCWAGE)", "MARST", BY_MARST)],
)
def test_counts_means_and_sums_pass_where_acro_passes_them(policied, aggregate, key, passed):
    query = f"select EDUC, {key}, {aggregate} from census where AGE < 22 group by all"
    found = policied.execute("select cell from check_output(?) where rule is null", [query]).fetchall()
    assert {cell for (cell,) in found} == {f"EDUC={e}, {key}={k}" for e, others in passed.items() for k in others}


def test_a_regression_passes_with_ten_degrees_of_freedom_as_in_acro(con):
    for individuals, is_answered in ((11, False), (12, True)):  # ACRO's ols with a constant: 9 fails, 10 passes
        con = made(con, [("a", "f", float(k * k)) for k in range(individuals)], policy="")
        assert (alone(con, "select regr_slope(x, x) from t")[0][0] is not None) == is_answered


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore")  # of ACRO's use of pandas
@pytest.mark.parametrize("keys", [*itertools.combinations(("EDUC", "RACE", "MARST"), 2)])
@pytest.mark.parametrize("function", ["count", "sum", "mean"])
def test_every_cell_is_decided_as_acro_decides_it_zeros_included(policied, keys, function):
    acro = pytest.importorskip("acro").ACRO(suppress=False)
    people = policied.execute("select * from census where AGE < 22").df()
    given = {} if function == "count" else {"values": people.INCWAGE, "aggfunc": function}
    acro.crosstab(*(people[key] for key in keys), **given)
    outcome = list(acro.results.results.values())[-1].outcome
    theirs = {(a, b) for a in outcome.index for b in outcome.columns if outcome.loc[a, b].strip() == "ok"}
    aggregate = {"count": "count(*)", "sum": "sum(INCWAGE)", "mean": "avg(INCWAGE)"}[function]
    query = "select {}, {}, {} from census where AGE < 22 group by all".format(*keys, aggregate)
    found = policied.execute("select cell, rule is null from check_output(?)", [query]).fetchall()
    ours = {tuple(int(part.split("=")[1]) for part in cell.split(", ")): is_answered for cell, is_answered in found}
    assert {cell for cell, is_answered in ours.items() if is_answered} == theirs
    a, b = next((a, b) for a in outcome.index for b in outcome.columns if (a, b) not in ours)
    zero = f"select count(*) from census where AGE < 22 and {keys[0]} = {a} and {keys[1]} = {b}"
    for zeros, is_answered in (("safe", True), ("disclosive", False)):
        policied.execute(f"comment on table census is 'anon: outputs(zeros := ''{zeros}'')'")
        assert policied.execute("select rule is null from check_output(?)", [zero]).fetchall() == [(is_answered,)]
