"""Chances that a sensitive value is shared by accident: requirements against the composition attack.

Another publisher is assumed to have the same distribution and the same method. With pi_s the share of value
s, s occurs in an independent group of m rows with probability f_s = 1 - (1 - pi_s)^m. `CommonValue` bounds
the belief that a shared value was caused by the victim's own two records; `LinkableValues` asks that enough
values are shared by accident. Both follow the names and ingredients of their papers (Baig, Li, Liu, Ding and
Wang 2012; Sattar, Li, Liu, Heatherly and Malin 2014), of which only abstracts were available: they are
readings, not reproductions.

pi_s is the table's share, which makes both requirements monotone in the group. Cost: linear in the occupied (group,
value) cells, times the number of values in a group for `LinkableValues`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.privacy_checks_jit import COMMON, LINKABLE, Check
from duckdb_anon.kernels.partition.privacy_models import BoolArray, PrivacyModel
from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray

_TOLERANCE = 1e-9


def chance_of_occurrence(share: FloatArray, size: FloatArray) -> FloatArray:
    """Probability that a value of this share occurs among `size` independent rows."""
    chance: FloatArray = -np.expm1(size * np.log1p(-np.minimum(share, 1 - 1e-16)))
    return chance


def belief(rate: float, chance: FloatArray) -> FloatArray:
    """Posterior that a shared value comes from the same person: rate^2 / (rate^2 + (1 - rate^2) chance).

    >>> float(belief(0.5, np.array([1.0]))[0])
    0.25
    """
    both = rate * rate
    total = both + (1 - both) * chance
    result: FloatArray = np.divide(both, total, out=np.zeros_like(chance), where=total > 0)
    return result


def largest_rate(alpha: float, chance: float) -> float:
    """Largest sampling rate at which `belief` stays at most alpha.

    >>> round(largest_rate(0.5, 0.6), 5)
    0.61237
    """
    if alpha >= 1:
        return 1.0
    return float(np.sqrt(alpha * chance / (1 - alpha + alpha * chance)))


@dataclass(frozen=True)
class Population:
    """What is assumed of the other publisher's rows: the table's distribution."""

    share: FloatArray  # share of each sensitive code in the whole table, shape (domain,)

    @staticmethod
    def of(attribute: Attribute) -> Population:
        """Take the shares of an attribute's codes."""
        counts = attribute.counts
        return Population(counts / counts.sum())

    def occurrence(self, groups: Groups) -> FloatArray:
        """f_s of each occupied (group, value) cell."""
        cells = groups.cells
        return chance_of_occurrence(self.share[cells.code], groups.sizes[cells.group].astype(np.float64))


@dataclass(frozen=True)
class CommonValue(PrivacyModel):
    """Belief that a shared value is the victim's own is at most alpha, for every value of the group."""

    rate: float  # sampling rate of both publishers
    alpha: float  # largest belief
    population: Population  # what is assumed of the other one

    def checks(self, table_counts: IntArray) -> list[Check]:
        return [Check(COMMON, (self.rate, self.alpha), shares=self.population.share)]

    def _worst(self, groups: Groups) -> FloatArray:
        by_cell = belief(self.rate, self.population.occurrence(groups))
        worst: FloatArray = np.maximum.reduceat(by_cell, groups.cells.offsets[:-1])
        return worst

    def holds(self, groups: Groups) -> BoolArray:
        return self._worst(groups) <= self.alpha + _TOLERANCE

    def best_achievable(self, table: Groups) -> str:
        chance = self.population.occurrence(table)
        return (
            f"a belief of at most alpha = {self.alpha:g} was requested at sampling rate {self.rate:g}; this table "
            f"reaches {float(self._worst(table).max()):.4g}, and alpha with a rate of at most "
            f"{largest_rate(self.alpha, float(chance.min())):.4g}"
        )


@dataclass(frozen=True)
class LinkableValues(PrivacyModel):
    """At least d of the group's values occur in an independent group with probability alpha or more."""

    d: int  # number of values that must remain
    alpha: float  # least probability
    population: Population  # what is assumed of the other publisher

    @property
    def min_size(self) -> int:
        """Rows a group needs: d different values."""
        return self.d

    def checks(self, table_counts: IntArray) -> list[Check]:
        return [Check(LINKABLE, (self.d, self.alpha), shares=self.population.share)]

    def _tail(self, groups: Groups) -> FloatArray:
        return poisson_binomial_tail(self.population.occurrence(groups), groups, self.d)

    def holds(self, groups: Groups) -> BoolArray:
        return self._tail(groups) >= self.alpha - _TOLERANCE

    def best_achievable(self, table: Groups) -> str:
        return (
            f"d = {self.d} shared values with probability alpha = {self.alpha:g} were requested; this table reaches "
            f"{float(self._tail(table).min()):.4g}"
        )


def poisson_binomial_tail(chance: FloatArray, groups: Groups, d: int) -> FloatArray:
    """P(X >= d) of each group, X counting its values that occur elsewhere."""
    offsets = groups.cells.offsets
    values = np.diff(offsets)
    below = np.zeros((len(values), d))  # P(X = 0), ..., P(X = d - 1) of the values seen so far
    below[:, 0] = 1.0
    order = np.argsort(-values, kind="stable")
    still = len(values) - np.searchsorted(np.sort(values), np.arange(int(values.max(initial=0))), side="right")
    for step, count in enumerate(still.tolist()):
        group = order[:count]
        f = chance[offsets[group] + step][:, None]
        moved = below[group] * (1 - f)
        moved[:, 1:] += below[group, :-1] * f
        below[group] = moved
    tail: FloatArray = np.where(values >= d, 1.0 - below.sum(axis=1), 0.0)
    return tail
