"""Counts and sums over a randomized table: one weight per value, one product per row, no cells.

The total over the original rows of f_1(A_1) * .. * f_m(A_m) is estimated without bias by the total over the
released rows of w_1(a_1) * .. * w_m(a_m), where w = P^-1 f needs only f and its sum over the domain:

    w(a) = (f(a) - q * sum f) / gain

A predicate is an f of zeros and ones, a SUM the values themselves; attributes a query does not name have
f = 1 and w = 1. So a query touches only the channels of the attributes it names, however large the product of
all domains. A group of GROUP BY A is the predicate A = value: `cell_weights` gives all of them.

The randomization is independent from row to row, so the variance of the estimate against the original table
is the sum over rows of E[W^2] - f^2, estimated without bias by the sum over released rows of W^2 - V, with V
the same product for f_1^2 .. f_m^2.

Paper: Guo, Ying and Wu 2011, section III.B; the per-row form and its variance are derived here from it.
Cost: O(rows * attributes named).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.randomized.channel import Channel, inverse_terms
from duckdb_anon.table import CodeArray, FloatArray

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Factor:
    """One named attribute of a query.

    Attributes:
        codes: released code of each row, shape (n,).
        values: f over the attribute's domain, shape (size,): 0 or 1 for a predicate.
        channel: the attribute's channel.
    """

    codes: CodeArray
    values: FloatArray
    channel: Channel


@dataclass(frozen=True)
class Estimate:
    """An estimated total with the variance that the randomization gives it."""

    value: float
    variance: float

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 95% interval under the normal approximation."""
        reach = NORMAL_95 * float(np.sqrt(max(self.variance, 0.0)))
        return self.value - reach, self.value + reach


def value_weights(values: FloatArray, channel: Channel) -> FloatArray:
    """Return w = P^-1 f over the domain.

    Args:
        values: f, shape (size,).
        channel: the attribute's channel.

    >>> import numpy as np
    >>> value_weights(np.array([1.0, 0.0, 0.0]), Channel(3, 0.6)).round(6).tolist()
    [2.0, -0.5, -0.5]
    """
    own, other = inverse_terms(channel)
    return np.asarray(own * values + other * values.sum(), dtype=np.float64)


def cell_weights(channel: Channel) -> FloatArray:
    """Return the weight of released value a in the group of true value x, shape (size, size): P^-1."""
    own, other = inverse_terms(channel)
    return own * np.eye(channel.size) + other


def estimate_total(factors: Sequence[Factor], plain: FloatArray) -> Estimate:
    """Estimate the total over the original rows of plain * f_1(A_1) * .. * f_m(A_m).

    Args:
        factors: the randomized attributes named by the query.
        plain: product of the factors of columns that were not randomized, shape (n,): ones for COUNT(*),
            the column itself for SUM, 0 where a predicate on such a column fails.
    """
    weight = np.asarray(plain, dtype=np.float64)
    square = weight**2
    for factor in factors:
        weight = weight * value_weights(factor.values, factor.channel)[factor.codes]
        square = square * value_weights(factor.values**2, factor.channel)[factor.codes]
    return Estimate(float(weight.sum()), float((weight**2 - square).sum()))


def estimate_ratio(above: Sequence[Factor], below: Sequence[Factor], plain: FloatArray) -> Estimate:
    """Estimate a mean as the ratio of two totals, such as AVG(x) WHERE ..: total of x over COUNT(*).

    The variance is the delta method's: that of the total of numerator - ratio * denominator, over the
    denominator squared. Factors of `above` and `below` must name the same attributes in the same order.
    """
    top, bottom = estimate_total(above, plain), estimate_total(below, plain)
    if bottom.value == 0.0:
        return Estimate(float("nan"), float("nan"))
    ratio = top.value / bottom.value
    weights, seconds = [], []
    for left, right in ((above, above), (above, below), (below, below)):
        second = np.asarray(plain, dtype=np.float64) ** 2
        for one, two in zip(left, right, strict=True):
            second = second * value_weights(one.values * two.values, one.channel)[one.codes]
        seconds.append(second)
    for side in (above, below):
        weight = np.asarray(plain, dtype=np.float64)
        for factor in side:
            weight = weight * value_weights(factor.values, factor.channel)[factor.codes]
        weights.append(weight)
    residual = weights[0] - ratio * weights[1]
    known = seconds[0] - 2.0 * ratio * seconds[1] + ratio**2 * seconds[2]
    return Estimate(ratio, float((residual**2 - known).sum() / bottom.value**2))
