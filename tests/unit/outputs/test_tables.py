"""Answers with totals: what a reader derives from them by linear programs over the cells that are shown."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.unit.outputs.test_rules import asked, made

LEAST = 5


def derived(answers, cells, target):
    """The interval of the sum of some finest cells, from sums of others; None in an answer is hidden."""
    known = [(inside, value) for inside, value in answers if value is not None]
    equal, totals = np.array([inside for inside, _ in known]).reshape(-1, cells), [value for _, value in known]
    ends = []
    for side in (1, -1):
        found = linprog(side * target, A_eq=equal if known else None, b_eq=totals if known else None)
        ends.append(side * found.fun if found.status == 0 else -side * np.inf)
    return ends


@pytest.mark.parametrize("groups", ["cube (grp, sex)", "rollup (grp, sex)", "grouping sets ((grp), (sex), ())"])
def test_no_count_below_the_threshold_and_no_concentrated_sum_is_derived_from_totals(con, groups):
    rng = np.random.default_rng(len(groups))
    for _ in range(2):
        sizes = rng.choice([2, 3, 8, 14, 20], size=8)
        rows = [(key[0], key[1], float(x)) for key, size in zip(itertools.product("abcd", "fm"), sizes, strict=True)
                for x in rng.lognormal(3, 1.3, size).round(2)]  # fmt: skip
        con = made(con, rows, policy=f"threshold := {LEAST}")
        finest = list(itertools.product("abcd", "fm"))
        found = asked(con, f"select grp, sex, grouping(grp, sex), count(*), sum(x) from t group by {groups}")
        inside = {cell: np.array([all(k in (None, f) for k, f in zip(cell, each, strict=True)) for each in finest], float)
                  for cell in itertools.product([*"abcd", None], ["f", "m", None])}  # fmt: skip
        counts = [(inside[row[:2]], row[3]) for row in found]
        sums = [(inside[row[:2]], row[4]) for row in found]
        assert any(value is not None for _, value in sums)
        for at in [inside[row[:2]] for row in found]:
            amounts = sorted((x for *key, x in rows if at[finest.index(tuple(key))]), reverse=True)
            rest = sum(amounts[2:])
            if len(amounts) < LEAST:
                assert derived(counts, 8, at)[1] >= LEAST - 1
            if len(amounts) < LEAST or rest < 0.1 * amounts[0] or sum(amounts[:2]) > 0.9 * sum(amounts):
                assert derived(sums, 8, at)[1] >= sum(amounts) + 0.1 * amounts[0] * (1 - 1e-6)


def test_parts_of_a_group_and_the_group_do_not_give_a_part_away(con):
    rows = [("a", "f", 1.0)] * 20 + [("a", "m", 1.0)] * 3 + [("a", "x", 1.0)] * 9 + [("b", "f", 1.0)] * 30
    query = "select count(*), count(*) filter (sex = 'f'), count(*) filter (sex <> 'f') from t where grp = 'a'"
    con = made(con, rows, policy="threshold := 5")
    assert asked(con, query) == [(32, 20, 12, None)]
    con.execute("delete from t where sex = 'x'")
    assert asked(con, query)[0][:3].count(None) >= 2


def test_a_hidden_count_hides_the_mean_and_the_sum_that_give_it(con):
    rows = [("a", "f", 1.0)] * 20 + [("b", "f", 1.0)] * 30 + [("c", "f", 1.0)] * 2
    found = asked(made(con, rows), "select grp, count(*), sum(x), avg(x), median(x) from t group by rollup (grp)")
    hidden = [row for row in found if row[-1] == "secondary"]
    assert len(hidden) == 1 and hidden[0][1:5] == (None,) * 4


def test_totals_of_no_rows_are_decided_like_a_count_of_zero(con):
    con = made(con, [("a", "f", 1.0)] * 20)
    query = "select grp, count(*), sum(x) from t where {} group by rollup (grp)"
    assert asked(con, query.format("grp = 'z'")) == [(None, 0, None, "sum(x): primary: threshold")]
    assert asked(con, query.format("x > 60")) == []
