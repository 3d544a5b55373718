"""Values of a bucket spread over its rows: against the definition, with rows of a bucket that look alike as one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from duckdb_anon.kernels.attacks.definetti import spread_values
from tests.reference import definetti

ROUNDS = 4
RNG = np.random.default_rng(11)
BUCKET = np.repeat(np.arange(5), 12)
ROWS = np.stack([RNG.integers(0, 2, 60), 2 + RNG.integers(0, 3, 60)])
SECRET = (RNG.integers(0, 2, 60) + ROWS[0] + BUCKET) % 4


def spread(passes: int, together: bool) -> dict[tuple[int, ...], float]:
    """Weight of a value with one row that has these bins in this bucket."""
    keys = [
        (b, *r, 0 if together else i) for i, (b, r) in enumerate(zip(BUCKET.tolist(), ROWS.T.tolist(), strict=True))
    ]
    size = Counter(keys)
    alike = sorted(size)
    held = [sorted(Counter(SECRET[BUCKET == b].tolist()).items()) for b in range(5)]
    weight = np.zeros(sum(len(held[key[0]]) for key in alike))
    spread_values(
        np.array([key[1:3] for key in alike]).T.copy(),
        np.array([size[key] for key in alike], dtype=np.float64),
        np.searchsorted([key[0] for key in alike], np.arange(6)),
        np.cumsum([0, *(len(h) for h in held)]),
        np.array([v for h in held for v, _ in h]),
        np.array([n for h in held for _, n in h], dtype=np.float64),
        np.bincount(ROWS.ravel(), minlength=5) / 60,
        1.0,
        ROUNDS,
        passes,
        np.zeros((5, 4)),
        np.zeros(4),
        weight,
        np.zeros(1, dtype=np.int64),
    )
    assert (len(alike) < 60) is together
    entries = [(key, value) for key in alike for value, _ in held[key[0]]]
    return {(*key[:3], value): w / size[key] for (key, value), w in zip(entries, weight.tolist(), strict=True)}


def test_values_are_spread_as_the_definition_says() -> None:
    rows = [(int(a), int(b)) for a, b in ROWS.T]
    found = spread(50, together=True)
    wanted = definetti.spread(rows, BUCKET.tolist(), SECRET.tolist(), ROUNDS, 50)
    for bucket, row, weights in zip(BUCKET.tolist(), rows, wanted, strict=True):
        for value, weight in weights.items():
            assert isinstance(value, int)
            assert found[bucket, *row, value] == pytest.approx(weight, abs=1e-5)
