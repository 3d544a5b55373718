"""Number of population uniques, estimated from the class sizes of a sample.

A population unique is an individual whose quasi-identifiers are unique in the population. Every estimate is a model's;
none is a bound. With n rows, N = n / pi persons, s_j classes of j rows, u classes in all:

* `zayatz` (Zayatz 1991): the classes of the population are spread over sizes as those of the sample are, and each
  row is drawn with chance pi.
* `pitman` (Hoshino 2001, section 3): class sizes of both follow the Ewens-Pitman formula; theta and alpha by maximum
  likelihood, the expected number of uniques among N exactly.
* `snb` (Chen and Keller-McNulty 1998): class sizes of the population are 1 + a negative binomial; fitted to n, to the
  number of classes and to the sample uniques.
* `poisson` (Skinner and Holmes 1998; Skinner and Shlomo 2008): each sample unique is one of the population with chance
  exp(-(1 - pi) lambda), lambda the size its class is expected to have in the population, from the shares of its values
  (columns taken as independent).

Cost: linear in the classes; `snb` and `pitman` are small optimisations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import BoolArray, CodeArray, FloatArray, IntArray
from duckdb_anon.model.progress import tick


def zayatz(sizes: IntArray, fraction: float) -> float:
    """Expected number of population uniques by Zayatz.

    `fraction`: share pi of the population that is in the sample, in (0, 1].
    """
    classes = np.bincount(sizes)[1:].astype(np.float64)
    size = np.arange(1, len(classes) + 1)
    alone = size * fraction * (1 - fraction) ** (size - 1.0) * classes
    return float(classes[0] / fraction * alone[0] / alone.sum()) if classes[0] else 0.0


def pitman(sizes: IntArray, fraction: float) -> float:
    """Expected number of population uniques by the Ewens-Pitman formula; NaN where its fit does not converge."""
    from scipy.optimize import minimize
    from scipy.special import gammaln

    if not (sizes == 1).any():
        return 0.0
    rows, classes = int(sizes.sum()), len(sizes)
    if classes == rows:
        return float("nan")  # all rows are unique: the likelihood has no maximum
    size, count = np.unique(sizes, return_counts=True)

    def cost(index: FloatArray) -> float:
        alpha = 1 / (1 + np.exp(-index[0]))
        theta = np.exp(index[1]) - alpha
        ascent = (classes - 1) * np.log(alpha) + gammaln(theta / alpha + classes) - gammaln(theta / alpha + 1)
        spread = gammaln(theta + rows) - gammaln(theta + 1)
        within = (count * (gammaln(size - alpha) - gammaln(1 - alpha))).sum()
        return float(spread - ascent - within)

    starts = [(0.0, np.log(classes)), (-3.0, np.log(classes)), (1.5, np.log(classes / 10 + 1))]
    with np.errstate(all="ignore"):
        fits = [minimize(cost, start, method="Nelder-Mead", options={"maxiter": 4000}) for start in starts]
    best = min(fits, key=lambda fit: fit.fun if np.isfinite(fit.fun) else np.inf)
    if not best.success or not np.isfinite(best.fun):
        return float("nan")
    alpha = 1 / (1 + np.exp(-best.x[0]))
    theta = np.exp(best.x[1]) - alpha
    population = rows / fraction
    steps = gammaln(theta + alpha + population - 1) - gammaln(theta + alpha)
    return float(population * np.exp(steps - gammaln(theta + population) + gammaln(theta + 1)))


def snb(sizes: IntArray, fraction: float) -> float:
    """Expected number of population uniques by the slide negative binomial; NaN where nothing fits."""
    from scipy.optimize import least_squares

    rows, classes, uniques = int(sizes.sum()), len(sizes), int((sizes == 1).sum())
    if not uniques:
        return 0.0
    if fraction >= 1:
        return float(uniques)

    def shape(index: FloatArray) -> tuple[float, float, float]:
        return float(np.exp(index[0])), float(np.exp(index[1])), float(1 / (1 + np.exp(-index[2])))

    def misfit(index: FloatArray) -> list[float]:
        cells, alpha, q = shape(index)
        rest = ((1 - q) / (1 - q * (1 - fraction))) ** alpha
        once = fraction * rest * (1 + (1 - fraction) * alpha * q / (1 - q * (1 - fraction)))
        return [
            cells * fraction * (1 + alpha * q / (1 - q)) / rows - 1,
            cells * (1 - (1 - fraction) * rest) / classes - 1,
            cells * once / uniques - 1,
        ]

    with np.errstate(all="ignore"):
        fits = [
            least_squares(misfit, (np.log(classes / fraction), np.log(alpha), index), max_nfev=2000)
            for alpha in (0.05, 0.5, 5.0)
            for index in (0.0, 4.0)
        ]
    best = min(fits, key=lambda fit: float(fit.cost))
    if best.cost > 1e-8:
        return float("nan")
    cells, alpha, q = shape(best.x)
    return float(cells * (1 - q) ** alpha)


def poisson(columns: Sequence[CodeArray], class_of_row: IntArray, sizes: IntArray, fraction: float) -> float:
    """Expected number of population uniques by a Poisson model with independent columns.

    `fraction`: share of the population that is in the sample.
    """
    alone = np.flatnonzero(sizes[class_of_row] == 1)
    rows = len(class_of_row)
    expected = np.full(len(alone), rows / fraction)
    for codes in columns:
        expected *= np.bincount(codes)[codes[alone]] / rows
    return float(np.exp(-(1 - fraction) * expected).sum() / fraction)


MOST_RATIO = 10.0
"""Estimates with a larger ratio are not averaged."""


def best(estimates: dict[str, float]) -> tuple[float, str]:
    """The estimate to use, and how it was found.

    Pitman uses the class sizes alone, Poisson the shares of single values alone. On tables of known population they
    err on different sides, and their geometric mean errs least (examples/studies/population.py).
    Where they differ by more than `MOST_RATIO`, one of them does not fit, and the larger is taken.

    `estimates`: of 'pitman', 'poisson' and 'zayatz'; NaN where a model does not fit.

    >>> best({'pitman': 100.0, 'poisson': 400.0, 'zayatz': 900.0})[0]
    200.0
    >>> best({'pitman': float('nan'), 'poisson': 0.0, 'zayatz': 900.0})
    (900.0, 'zayatz')
    """
    fitted = {name: estimates[name] for name in ("pitman", "poisson") if np.isfinite(estimates[name])}
    if "pitman" not in fitted:
        larger = max(("poisson", "zayatz"), key=lambda name: estimates[name])
        return estimates[larger], larger
    low, high = sorted(fitted, key=fitted.__getitem__)
    if fitted[high] > MOST_RATIO * fitted[low]:
        return fitted[high], high
    return float(np.sqrt(fitted[low] * fitted[high])), "geometric mean of pitman and poisson"


# Minimal sample uniques: the smallest sets of columns on which a record is unique. SUDA (Elliot, Manning and Ford
# 2002), as SUDA2 (Manning, Haglin and Keane 2008) defines its answer: a set of columns is a minimal sample unique of a
# record if the record is unique on it and on no subset of it. Found level by level: a record unique on a set is unique
# on every larger one, so the sets one column smaller suffice. Cost: one sort of the rows for each set of up to
# `largest` columns; memory of one bit a row and set of two levels.
def minimal_uniques(columns: Sequence[CodeArray], largest: int) -> Iterator[tuple[tuple[int, ...], IntArray]]:
    """Yield sets of columns, small ones first, with the rows of which they are minimal sample uniques.

    `columns`: code of each row on each quasi-identifier; `largest`: columns of the largest set.

    >>> a, b = np.array([0, 0, 0, 1], np.int32), np.array([0, 0, 1, 1], np.int32)
    >>> [(names, rows.tolist()) for names, rows in minimal_uniques([a, b], 2)]
    [((0,), [3]), ((0, 1), [2])]
    """
    rows = len(columns[0])
    below: dict[tuple[int, ...], NDArray[np.uint8]] = {}
    for size in range(1, largest + 1):
        here: dict[tuple[int, ...], NDArray[np.uint8]] = {}
        for names in combinations(range(len(columns)), size):
            tick()
            unique = _is_unique([columns[name] for name in names])
            covered = np.zeros(rows, dtype=bool)
            for part in combinations(names, size - 1):
                if part:
                    covered |= np.unpackbits(below[part], count=rows).astype(bool)
            minimal = np.flatnonzero(unique & ~covered)
            here[names] = np.packbits(unique)
            if len(minimal):
                yield names, minimal
        below = here


def _is_unique(columns: Sequence[CodeArray]) -> BoolArray:
    key = keys_of(columns).of_row
    unique: BoolArray = np.bincount(key)[key] == 1
    return unique
