"""Estimated answers of a workload on a generalized or bucketed release, all queries at once.

Every row is split into independent parts, one an attribute. A part knows, for each distinct cell of its
column, which share of the cell each query covers (uniform overlap: Zhang et al. 2007, Xiao and Tao 2006):

* a single value: 0 or 1;
* an interval: number of asked values in it over its number of values, or lengths if continuous;
* a set or a bag of values: share of its members, by count;
* NULL: never asked for; unknown: the share of the whole domain.

The estimate is the sum over rows of weight times the product of the shares. Equal rows are added up first.
Cost: O(distinct rows * n * attributes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.measures.answers import group_rows
from duckdb_anon.measures.workload import BoolArray, Workload
from duckdb_anon.table import FloatArray, IntArray

_BLOCK = 2048


@dataclass(frozen=True)
class Intervals:
    """Cells of an ordered attribute.

    Attributes:
        lower, upper: ends as positions on the attribute's number line, both inside, shape (cells,). NaN in
            `lower` only: the value NULL. NaN in both: could be anything.
        positions: place of each code of the domain, non-decreasing.
        step: distance of neighbouring values of a counted type (integers, dates), 0 for a measured one.
    """

    lower: FloatArray
    upper: FloatArray
    positions: FloatArray
    step: float

    def shares(self, matches: BoolArray, interval: bool) -> FloatArray:
        """Share of each cell that each query covers, shape (cells, n)."""
        lower, upper = self._filled()
        null = np.isnan(lower)
        if interval:
            asked_low, asked_high = _ends(matches, self.positions)
            low = np.maximum(lower[:, None], asked_low)
            inside = np.minimum(upper[:, None], asked_high) - low + self.step
        else:
            inside = self.step * self._members(matches, lower, upper)
        width = (upper - lower + self.step)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.clip(inside, 0, None) / width
        point = (width[:, 0] == 0) & ~null
        if point.any():
            shares[point] = self._members(matches, lower[point], upper[point]) > 0
        shares[null] = 0.0
        return shares

    def _filled(self) -> tuple[FloatArray, FloatArray]:
        """Let a cell that could be anything cover all that the other cells cover."""
        unknown = np.isnan(self.lower) & np.isnan(self.upper)
        if unknown.all():
            return self.lower, self.upper
        low, high = np.nanmin(self.lower), np.nanmax(self.upper)
        return np.where(unknown, low, self.lower), np.where(unknown, high, self.upper)

    def _members(self, matches: BoolArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        before = np.zeros((matches.shape[0], matches.shape[1] + 1))
        np.cumsum(matches, axis=1, out=before[:, 1:])
        first = np.searchsorted(self.positions, lower, side="left")
        last = np.searchsorted(self.positions, upper, side="right")
        counts: FloatArray = (before[:, last] - before[:, first]).T
        return counts


@dataclass(frozen=True)
class Members:
    """Cells that are sets or bags of codes, single values included.

    Attributes:
        offsets: members of cell c are entries offsets[c] .. offsets[c + 1] - 1, shape (cells + 1,).
        codes: code of each member, -1 for a value outside the domain or NULL.
        counts: how often it stands in the cell; 1 in a set.
        values: what a member adds instead of 1, by code (SUM over this attribute); None for COUNT.
    """

    offsets: IntArray
    codes: IntArray
    counts: FloatArray
    values: FloatArray | None = None

    def shares(self, matches: BoolArray, interval: bool) -> FloatArray:
        """Share (mean value) of each cell that each query covers, shape (cells, n)."""
        known = self.codes >= 0
        asked = np.zeros((len(self.codes), len(matches)))
        asked[known] = matches.T[self.codes[known]]
        scale = self.counts.copy()
        if self.values is not None:
            scale[known] *= self.values[self.codes[known]]
            scale[~known] = 0.0
        asked *= scale[:, None]
        total = np.add.reduceat(np.append(self.counts, 0.0), self.offsets[:-1])
        sums = np.add.reduceat(np.vstack([asked, np.zeros((1, asked.shape[1]))]), self.offsets[:-1], axis=0)
        filled = np.diff(self.offsets) > 0
        sums[~filled] = 0.0
        shares: FloatArray = sums / np.where(filled, total, 1.0)[:, None]
        return shares


Cells = Intervals | Members


@dataclass(frozen=True)
class Part:
    """One attribute of a release: its distinct cells, and the cell of each row, shape (rows,)."""

    cells: Cells
    cell_of_row: IntArray


def estimated_answers(workload: Workload, parts: Sequence[Part], weights: FloatArray) -> FloatArray:
    """Estimate the answer of each query.

    Args:
        workload: n queries.
        parts: one an attribute of the workload, in its order.
        weights: what a row counts, shape (rows,): 1, a value (SUM over an exact column), a noisy count.

    Returns:
        Shape (n,).
    """
    answers = np.zeros(workload.n)
    if len(weights) == 0:
        return answers
    group, first = group_rows([part.cell_of_row.astype(np.int32) for part in parts])
    sums = np.bincount(group, weights, minlength=len(first))
    tables = [_shares(workload, a, part.cells) for a, part in enumerate(parts)]
    for start in range(0, len(first), _BLOCK):
        rows = first[start : start + _BLOCK]
        product = tables[0][parts[0].cell_of_row[rows]]
        for table, part in zip(tables[1:], parts[1:], strict=True):
            product *= table[part.cell_of_row[rows]]
        answers += sums[start : start + _BLOCK] @ product
    return answers


def _shares(workload: Workload, attribute: int, cells: Cells) -> FloatArray:
    shares = cells.shares(workload.matches[attribute], workload.interval[attribute])
    valued = isinstance(cells, Members) and cells.values is not None
    if not valued:
        # a query without a predicate on this attribute takes every row, NULL and gaps included
        shares[:, ~workload.used[:, attribute]] = 1.0
    return shares


def _ends(matches: BoolArray, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
    first = np.argmax(matches, axis=1)
    last = matches.shape[1] - 1 - np.argmax(matches[:, ::-1], axis=1)
    return positions[first], positions[last]
