"""Learnt shares against expectation maximisation value by value, and what they are worth on the census."""

import numpy as np
import pytest

from duckdb_anon.kernels.cells import learn
from duckdb_anon.kernels.cells.cells import Lists
from duckdb_anon.kernels.cells.learn import NODE_ROUNDS, learnt_density, member_shares, member_weights
from duckdb_anon.kernels.cells.line import Line

CELLS = [(0, 9), (0, 3), (2, 5), (5, 5), (4, 8), (9, 9), (2, 2)]
ROWS = [3, 10, 4, 6, 2, 1, 5]


ROUNDS = 3


@pytest.fixture
def three_rounds(monkeypatch):
    """Held-out rows do not decide."""
    monkeypatch.setattr(learn, "MOST_ROUNDS", ROUNDS)
    monkeypatch.setattr(learn, "LEAST_GAIN", -np.inf)
    monkeypatch.setattr(learn, "HEAPS_GAIN", -np.inf)


def slow(cells: list[list[object]], rows: list[int]) -> list[list[float]]:
    """Weights of the values of each cell, learnt one value at a time."""
    share = {value: 1.0 for cell in cells for value in cell}
    for _ in range(ROUNDS):
        found = dict.fromkeys(share, 0.0)
        for cell, count in zip(cells, rows, strict=True):
            total = sum(share[value] for value in cell)
            for value in cell:
                found[value] += count * share[value] / total
        share = found
    return [[share[v] / sum(share[u] for u in cell) for v in cell] for cell in cells]


def density(cells: list[tuple[int, int]], rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = (np.array(ends, dtype=np.int64) for ends in zip(*cells, strict=True))
    return learnt_density(lower, upper, np.array(rows, dtype=np.float64), 1)


def lists(codes: np.ndarray, offsets: np.ndarray) -> Lists:
    """Sets of codes."""
    line = Line.of_widths(np.ones(codes.max() + 1))
    return Lists(line, codes, codes, offsets=offsets, weight=np.ones(len(codes)))


def weights(cells: list[tuple[int, int]], rows: list[int]) -> list[np.ndarray]:
    """Weights of the values of each cell by the learnt density."""
    starts, found_density = density(cells, rows)
    found = []
    for low, high in cells:
        share = found_density[np.searchsorted(starts, np.arange(low, high + 1), side="right") - 1]
        found.append(share / share.sum())
    return found


@pytest.mark.usefixtures("three_rounds")
def test_boxes_are_learnt_as_their_values_one_by_one_are():
    expected = slow([list(range(low, high + 1)) for low, high in CELLS], ROWS)
    assert all(map(np.allclose, weights(CELLS, ROWS), expected))


def test_rounds_end_where_held_out_rows_gain_nothing():
    """Even values stay even; values that come in tens are found."""
    rng = np.random.default_rng(3)
    lower = rng.integers(0, 90, 400)
    upper = lower + rng.integers(1, 15, 400)
    starts, even = learnt_density(lower, upper, np.full(400, 5.0), 1)
    heaps = np.ceil(lower / 10) * 10
    ends, heaped = learnt_density(lower, upper, np.where(heaps <= upper, 20.0, 0.0), 1)
    tens = np.arange(10, 90, 10)
    of_even, of_heaped = (d[np.searchsorted(s, tens, side="right") - 1] for s, d in ((starts, even), (ends, heaped)))
    assert of_heaped.sum() > 2 * of_even.sum()


@pytest.mark.parametrize(("values", "least", "most"), [
    ("hash(i * 3) % 200", 1.0, 1.0),  # even
    ("least(99, -12 * ln(1 - hash(i * 3) % 10000 / 10000))::int", 0.0, 0.95),  # smooth: most are small
    ("if(hash(i * 5) % 10 < 7, hash(i * 3) % 10 * 10, hash(i * 3) % 100)", 0.0, 0.6),  # heaped
])  # fmt: skip
def test_even_values_stay_even_and_others_are_learnt(con, values, least, most):
    con.execute(f"""
        create table p as select ({values})::int as x, (hash(i * 7) % 90)::int as y, (hash(i * 11) % 50)::int as z
        from range(8000) t(i)""")
    roles = "qi := ['x', 'y', 'z']"
    con.execute(f"create table r as from mondrian('p', 10, {roles}, seed := 1)")
    error = "sum(abs(coalesce(estimate, 0) - coalesce(original, 0)))"
    query = f"select {error} from relative_error('select x, count(*) from p group by x', 'p', 'r', {roles}, "
    learnt, even = (
        con.execute(f"{query} engine := 'closed', spread := '{spread}')").fetchall()[0][0]
        for spread in ("learnt", "uniform")
    )
    assert least * even * 0.999 <= learnt <= most * even * 1.001


@pytest.mark.usefixtures("three_rounds")
def test_nodes_are_learnt_as_their_leaves_one_by_one_are():
    sets = [[0, 1, 4], [1, 2], [3], [0, 3, 4], [2]]
    codes = np.array([code for one in sets for code in one])
    offsets = np.cumsum([0, *map(len, sets)])
    shares = member_shares(lists(codes, offsets), np.array([4.0, 1, 7, 2, 3]), NODE_ROUNDS)
    found = [share / shares[cell].sum() for cell in sets for share in shares[cell]]
    assert np.allclose(found, [w for cell in slow(sets, [4, 1, 7, 2, 3]) for w in cell])


def test_each_value_of_a_set_is_given_a_row_and_the_others_go_by_learnt_shares():
    # {0, 1} of 5 rows and {1} of 3: after a round value 1 has 5.5 of 8; a set of fewer rows than values stays learnt
    codes, offsets = np.array([0, 1, 1]), np.array([0, 2, 3])
    found = member_weights(lists(codes, offsets), np.array([5.0, 3.0]))
    assert np.allclose(found, [(1 + 3 * 2.5 / 8) / 5, (1 + 3 * 5.5 / 8) / 5, 1])
    assert np.allclose(member_weights(lists(codes, offsets), np.array([1.0, 0.0])), [0.5, 0.5, 1])


def test_boxes_that_overlap_with_nothing_stay_even_and_so_do_those_of_no_rows():
    for cells, rows in (([(0, 3), (4, 5)], [10, 1]), ([(0, 3), (10, 13), (20, 20)], [5, 0, 0])):
        for (low, high), share in zip(cells, weights(cells, rows), strict=True):
            assert np.allclose(share, 1 / (high - low + 1))
    for cells in ([(5, 5), (7, 7)], [(0, 2**62), (0, 5)]):  # nothing to learn, and no line to learn on
        assert not len(density(cells, [3, 4])[1])


@pytest.mark.parametrize(("kind", "cells", "asked", "share"), [
    ("bigint", "(9223372036854775806, 9223372036854775807), (5, 5)", "x = 5", 1),
    ("bigint", "(9007199254740993, 9007199254740993), (9007199254740992, 9007199254740992)", "x = 9007199254740993", 1),
    ("double", "(0, 1), (0, 0.5), (2, 2)", "x < 0.5", None), ("decimal(18,3)", "(1.5, 1.5), (2.5, 2.5)", "x < 2.5", 1),
    ("timestamp", "('2020-01-01', '2020-01-01 12:00:00'), (null, null)", "x < timestamp '2020-01-01 06:00:00'", None),
])  # fmt: skip
def test_every_type_of_box_is_learnt(con, kind, cells, asked, share):
    con.execute(f"create table t(x {kind})")
    con.execute(f"""create table r as select {{lower: a::{kind}, upper: b::{kind}}} as x
        from (values {cells}) as v(a, b)""")
    query = f"select count(*) from t where {asked}"
    row = con.execute("select estimate from estimate($1, 'r', original := 't')", [query]).fetchone()
    assert row is not None and 0 <= row[0] <= 3
    if share is not None:
        assert row[0] == pytest.approx(share)


@pytest.mark.parametrize(("dims", "most"), [(1, 0.45), (3, 0.55)])
def test_learnt_shares_err_less_on_the_census(census, dims, most):
    text = "select avg(relative_error), median(relative_error) from workload_error('census', 'boxed', 400, dims := {}, seed := 7, spread := '{}')"
    census.execute("create table if not exists boxed as from mondrian('census', k := 10, seed := 1)")
    (even, even_median), (learnt, median) = (
        census.execute(text.format(dims, one)).fetchone() for one in ("uniform", "learnt")
    )
    assert learnt < most * even and median <= even_median
