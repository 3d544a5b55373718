"""Draws of plausible tables against brute force, on columns of cells made by hand."""

from collections.abc import Iterator

import numpy as np
import pytest

from duckdb_anon.kernels.cell_shares import Ranges, learn_shares
from duckdb_anon.kernels.plausible.augmentation import Augmentation, Evidence
from duckdb_anon.kernels.plausible.columns import Column, Noisy
from duckdb_anon.kernels.plausible.tree import Completion, Options, fitted, information, structure

PLAIN = Options(levels=1)


def ranges(cells: list[tuple[int, int]], size: int) -> Column:
    """A column of ranges, one a row."""
    first, last = np.array(cells).T
    found = Ranges(first, last)
    shares = learn_shares(found, np.ones(len(cells)), np.ones(size))
    return Column.of(found, np.arange(len(cells)), shares, 32)


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
    shown = Column.of(Ranges(np.arange(2), np.arange(2)), y, np.bincount(y) + 0.1, 32)
    for options in (PLAIN, Options()):
        x, _ = next(draws(Evidence((ranges(cells, 2), shown), (False, True)), 1, options=options))
        assert (x[1000:] == y[1000:]).mean() > 0.8


def test_noisy_cells_draw_from_the_posterior():
    shares, keep, size = np.array([0.5, 0.3, 0.2]), 0.6, 3
    base = np.full(size, (1 - keep) / 2)
    noisy = Noisy(np.arange(size), np.full(size, keep - base[0]), base)
    column = Column.of(noisy, np.full(90_000, 2), shares, 2)
    evidence = Evidence((column,), (False,))
    (atoms,) = next(draws(evidence, 1, options=Options(rounds=0, margin_prior=0.0)))
    posterior = shares * np.where(np.arange(size) == 2, keep, base)
    # the model's first completion has these odds; the fit that follows learns from one cell alone
    first = Augmentation(evidence, np.random.default_rng(1), Options(rounds=0))
    seen = np.bincount(
        column.atoms(first.cell[0], first.state[0], np.random.default_rng(2).random(90_000)), minlength=3
    )
    assert np.abs(seen / 90_000 - posterior / posterior.sum()).max() < 0.01
    assert set(np.unique(atoms)) <= {0, 1, 2}


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
