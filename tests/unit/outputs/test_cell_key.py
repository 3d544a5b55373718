"""Noise by cell keys: its distribution, and that a population has the same in whatever query."""

import numpy as np
import pytest
from scipy.optimize import minimize

from duckdb_anon.model.errors import ParameterError
from duckdb_anon.outputs.cell_key import STEPS, count_table, probabilities, sum_table
from duckdb_anon.outputs.policy import policy_of
from tests.unit.outputs.test_rules import asked, made

KEYED = "threshold := 3, method := ''cell_key''"


@pytest.mark.parametrize(("variance", "deviation"), [(2.0, 5), (1.0, 2), (0.5, 1), (3.0, 10)])
def test_noise_is_unbiased_has_the_variance_and_never_makes_a_count_negative(variance, deviation):
    noise = np.arange(-deviation, deviation + 1)
    table = count_table(variance, deviation)
    assert table.sum(axis=1) == pytest.approx(1) and (table >= 0).all()
    assert table @ noise == pytest.approx(0, abs=1e-9)
    assert table[1:] @ noise**2 == pytest.approx(variance, abs=1e-6)
    assert not table[np.arange(deviation + 1)[:, None] + noise < 0].any()
    steps = np.arange(-deviation * STEPS, deviation * STEPS + 1) / STEPS
    assert sum_table(variance, deviation) @ steps**2 == pytest.approx(variance, abs=1e-6)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_no_distribution_with_these_moments_has_a_larger_entropy(count):
    """By a general program over the probabilities instead of the two parameters of the dual."""
    noise = np.arange(-count, 6.0)
    moments = [lambda p: p.sum() - 1, lambda p: p @ noise, lambda p: p @ noise**2 - 2]
    found = minimize(lambda p: float(p @ np.log(p)), np.full(len(noise), 1 / len(noise)), method="SLSQP",
                     bounds=[(1e-12, 1)] * len(noise), options={"maxiter": 1000, "ftol": 1e-14},
                     constraints=[{"type": "eq", "fun": each} for each in moments])  # fmt: skip
    assert probabilities(noise, 2.0) == pytest.approx(found.x, abs=1e-4)


@pytest.mark.parametrize("person", [False, True])
def test_the_same_population_has_the_same_noise_in_whatever_query(con, person):
    rng = np.random.default_rng(0)
    rows = [("abcd"[k % 4], "fm"[k % 2], float(x)) for k, x in enumerate(rng.lognormal(3, 1, 200).round(2))]
    con = made(con, [(k // 2, *row) for k, row in enumerate(rows)] if person else rows, policy=KEYED, person=person)
    ((count, total, mean, _),) = asked(con, "select count(*), sum(x), avg(x) from t where grp = 'a'")
    groups = {row[0]: row[1:] for row in asked(con, "select grp, count(*), sum(x) from t group by rollup (grp)")}
    assert groups["a"][:2] == (count, total) and mean == pytest.approx(total / count)
    query = "select count(*) filter (grp = 'a'), sum(x) filter (sex = 'f' and grp in ('a', 'b')) from t"
    assert asked(con, query)[0][:2] == (count, total)
    assert asked(con, "select count(*) from t where grp = 'a' and sex = 'f'") == [(count, None)]
    con.execute("insert into t by name select 'z' as grp, 'm' as sex, 1 as x" + ", 900 as pid" * person)
    assert asked(con, "select count(*), sum(x) from t where grp = 'a'")[0][:2] == (count, total)


def test_records_without_an_amount_do_not_give_a_sum_another_noise(con):
    rows = [("a", "f", float(k)) for k in range(1, 30)] + [("a", "m", 0.0)] * 9
    con = made(con, rows, policy=KEYED)
    assert asked(con, "select sum(x) from t") == asked(con, "select sum(x) from t where sex = 'f'")


def test_noise_of_many_cells_has_mean_zero_and_the_variance(con):
    con.execute("create table t as select range // 20 as grp, 'f' as sex, 100.0 as x, range as id from range(40000)")
    con.execute("comment on column t.grp is 'anon: quasi'; comment on column t.x is 'anon: sensitive'")
    con.execute("comment on table t is 'anon: outputs(method := ''cell_key'', variance := 3, deviation := 6)'")
    found = np.array([row[1:3] for row in asked(con, "select grp, count(*), sum(x) from t group by grp")], float)
    for noise, deviation, largest in ((found[:, 0] - 20, 3**0.5, 6), (found[:, 1] - 2000, 100 * 3**0.5, 600)):
        assert abs(noise.mean()) < 4 * deviation / 2000**0.5
        assert noise.std() == pytest.approx(deviation, rel=0.1)
        assert np.abs(noise).max() <= largest + 1e-6


def test_zero_stays_zero_a_sum_of_few_is_suppressed_and_other_statistics_are_refused(con):
    con = made(con, [("a", "f", 10.0)] * 20 + [("b", "f", 5.0)] * 2, policy=KEYED)
    assert asked(con, "select count(*) from t where grp = 'z'") == [(0, None)]
    assert asked(con, "select sum(x) from t where grp = 'b'") == [(None, "primary: threshold")]
    with pytest.raises(Exception, match="no-rule"):
        asked(con, "select median(x) from t")


@pytest.mark.parametrize("person", [False, True])
def test_a_sum_of_ones_and_a_count_of_rows_are_no_exact_counts(con, person):
    rows = [(*[k] * person, f"g{k % 30}", "f", 1.0) for k in range(900)]
    found = asked(made(con, rows, policy=KEYED, person=person), "select grp, sum(x), count(*) from t group by grp")
    assert np.abs(np.array([row[1] for row in found]) - 30).mean() > 0.5
    assert np.abs(np.array([row[2] for row in found]) - 30).mean() > 0.5


@pytest.mark.parametrize("arguments", ["variance := 6", "deviation := 0"])
def test_a_policy_without_such_noise_is_refused(arguments):
    with pytest.raises(ParameterError):
        policy_of("safe_output", "t", f"anon: outputs({arguments})")
