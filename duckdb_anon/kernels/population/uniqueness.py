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

from collections.abc import Sequence

import numpy as np

from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray


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
