"""Draws of plausible tables against brute force, on columns of cells made by hand."""

from collections.abc import Iterator

import numpy as np
import pytest

from duckdb_anon.kernels.cells.cells import Lists, Noisy, Ranges
from duckdb_anon.kernels.cells.learn import learn_shares
from duckdb_anon.kernels.cells.line import Line
from duckdb_anon.kernels.plausible.augmentation import Augmentation, Evidence
from duckdb_anon.kernels.plausible.columns import Column
from duckdb_anon.kernels.plausible.reading import _are_tight
from duckdb_anon.kernels.plausible.tree import Completion, Options, fitted, information, structure

PLAIN = Options(levels=1)


def line(size: int) -> Line:
    """A line of single values."""
    return Line.of_widths(np.ones(size))


def exact(codes: list[int], size: int) -> Column:
    """A column of values."""
    each = Ranges(line(size), np.arange(size), np.arange(size))
    return Column.of(each, np.array(codes), np.bincount(codes) + 0.1, 32)


def ranges(cells: list[tuple[int, int]], size: int) -> Column:
    """A column of ranges, one a row."""
    different, cell = np.unique(np.array(cells), axis=0, return_inverse=True)
    found = Ranges(line(size), different[:, 0], different[:, 1])
    shares = learn_shares(found, np.bincount(cell.ravel()).astype(float), np.ones(size))
    return Column.of(found, cell.ravel(), shares, 32)


def draws(evidence: Evidence, many: int, seed: int = 3, options: Options = PLAIN) -> Iterator[list[np.ndarray]]:
    """Draws of a model of its own."""
    model = Augmentation(evidence, np.random.default_rng(seed), options)
    for _ in range(many):
        model.step()
        yield [model.atoms(j) for j in range(len(evidence.columns))]


def test_a_box_is_filled_by_what_the_exact_column_tells():
    # half of the rows show that x equals y; the others hide x in a box of both values
    y = np.arange(2000) % 2
    cells = [(int(v), int(v)) if k < 1000 else (0, 1) for k, v in enumerate(y)]
    for options in (PLAIN, Options()):
        x, _ = next(draws(Evidence((ranges(cells, 2), exact(y.tolist(), 2)), (False, True)), 1, options=options))
        assert (x[1000:] == y[1000:]).mean() > 0.8


def test_noisy_cells_draw_from_the_posterior():
    shares, keep, size = np.array([0.5, 0.3, 0.2]), 0.6, 3
    base = np.full(size, (1 - keep) / 2)
    noisy = Noisy(line(size), np.arange(size), np.arange(size), extra=np.full(size, keep - base[0]), base=base)
    column = Column.of(noisy, np.full(90_000, 2), shares, 2)
    evidence = Evidence((column,), (False,))
    (atoms,) = next(draws(evidence, 1, options=Options(channel_rounds=0, margin_prior=0.0)))
    posterior = shares * np.where(np.arange(size) == 2, keep, base)
    # the model's first completion has these odds; the fit that follows learns from one cell alone
    first = Augmentation(evidence, np.random.default_rng(1), Options(channel_rounds=0))
    seen = np.bincount(
        column.atoms(first.cell[0], first.state[0], np.random.default_rng(2).random(90_000)), minlength=3
    )
    assert np.abs(seen / 90_000 - posterior / posterior.sum()).max() < 0.01
    assert set(np.unique(atoms)) <= {0, 1, 2}


def test_randomized_columns_keep_what_each_of_them_tells_of_the_sensitive_one():
    # three columns follow the hidden one, and the tree has two edges to spare; a fifth of all values are random
    rng, rows = np.random.default_rng(4), 20_000
    hidden = rng.integers(0, 4, size=rows)
    true = [np.where(rng.random(rows) < 0.6, hidden, rng.integers(0, 4, size=rows)) for _ in range(3)] + [hidden]
    every = np.arange(4)
    cells = Noisy(line(4), every, every, extra=np.full(4, 0.8), base=np.full(4, 0.05))
    columns = []
    for values in true:
        seen = np.where(rng.random(rows) < 0.8, values, rng.integers(0, 4, size=rows))
        columns.append(Column.of(cells, seen, np.full(4, 0.25), 32))
    evidence = Evidence(tuple(columns), (False, False, False, True))
    *others, target = next(draws(evidence, 1, options=Options()))
    for drawn, values in zip(others, true, strict=False):
        assert abs((drawn == target).mean() - (values == hidden).mean()) < 0.03


def test_the_tree_joins_what_tells_most_of_each_other():
    rng = np.random.default_rng(9)
    a = rng.integers(0, 3, size=3000)
    b = np.where(rng.random(3000) < 0.9, a, 0)
    c = rng.integers(0, 3, size=3000)
    state = np.stack([c, a, b]).astype(np.int32)
    completion = Completion(state, np.array([3, 3, 3]), np.zeros(3000, dtype=np.int32), 1)
    assert information(completion)[1, 2] > 0.3 and abs(information(completion)[0, 1]) < 0.01
    order, parent = structure(completion, 1)
    assert parent[2] == 1 and parent[1] == -1
    tree = fitted(completion, [np.ones(3) / 3] * 3, (order, parent), Options(levels=1, margin_prior=0.0))
    table = tree.tables[tree.start[2] :][:9].reshape(3, 3)
    assert table[1] == pytest.approx(np.bincount(b[a == 1], minlength=3) / (a == 1).sum())


def test_each_value_that_a_set_lists_is_given_a_row_of_its_class():
    # 0 is common; y tells which rows have the rare 1 and 2
    atoms = np.array([0, 0, 1, 0, 2])
    cells = Lists(line(3), atoms, atoms, offsets=np.array([0, 1, 3, 5]), weight=np.ones(5))
    cell = np.array([0] * 400 + [1] * 5 + [2] * 5 + [1] * 1)
    x = Column.of(cells, cell, np.array([0.98, 0.01, 0.01]), 32)
    own = np.zeros(len(cell), dtype=int)
    own[[402, 408]] = 1
    y = exact(own.tolist(), 2)
    place = ranges([(k // 405, k // 405) if k < 410 else (0, 1) for k in range(len(cell))], 2)
    for drawn, _, _ in draws(Evidence((x, y, place), (False, True, False)), 20):
        assert set(drawn[400:405]) == {0, 1} and set(drawn[405:410]) == {0, 2}
        assert drawn[410] in (0, 1)  # a class of fewer rows than its set has values was cut
        assert (drawn[:400] == 0).all()


def test_the_row_that_has_a_rare_value_follows_the_other_columns():
    rng = np.random.default_rng(5)
    known = rng.integers(0, 2, size=4000)
    hidden = np.concatenate([np.array([0, 0, 0, 1])] * 500)
    # rows of known x teach that x follows y; in the classes of four one row has y = 1
    atoms = np.array([0, 1, 0, 1])
    cells = Lists(line(2), atoms, atoms, offsets=np.array([0, 1, 2, 4]), weight=np.ones(4))
    x = Column.of(cells, np.concatenate([known, np.full(2000, 2)]), np.array([0.5, 0.5]), 32)
    y = exact(np.concatenate([known, hidden]).tolist(), 2)
    classes = ranges([(0, 500)] * 4000 + [(k // 4, k // 4) for k in range(2000)], 501)
    drawn, *_ = next(draws(Evidence((x, y, classes), (False, True, False)), 1))
    of_class = drawn[4000:].reshape(-1, 4)
    assert of_class.max(axis=1).all() and not of_class.min(axis=1).any()
    alone = of_class[of_class.sum(axis=1) == 1]
    assert alone[:, 3].mean() > 0.9


def test_intervals_of_a_hierarchy_are_not_tight():
    nested = [(0, 9), (0, 4), (5, 9), (3, 4), (10, 19)]
    for more, tight in (([], False), ([(4, 6)], True), ([(9, 12)], True), ([(20, 25), (0, 30)], False)):
        first, last = np.array(nested + more).T
        assert _are_tight(Ranges(line(int(last.max()) + 1), first, last), np.ones(len(first), dtype=bool)) == tight
