"""Disclosure risk of a randomized table: the probability that an adversary infers an individual's sensitive value.

The adversary knows the individual's QI values, all channels and the true distribution, and guesses each original value
by sampling its posterior (Guo, Ying and Wu 2011, section III.C). In QI cell alpha with sensitive value u (Result 1)
    risk = c(u | alpha) * Rec_QI(alpha) * Rec_S(u | alpha)
with c the share of u inside the cell and Rec the reconstruction probability of a randomized part (Lemma 1), 1 where
nothing is randomized. An adversary who picks among the records whose sampled QI values are alpha is right with
probability c(u | alpha) whatever the channels are; that is `Occupied.conditional`, reported with the risk.

The risk falls when any p falls towards 1/size: a smaller p is a further randomization, and chi-squared divergence
cannot grow under one. (The paper's proof, by merging categories, fails for more than two.) A table is its occupied QI
cells and (cell, value) pairs, far fewer than the product of the domains.
Cost: O(m * product of the randomized QI domains) once per evaluation, plus O(occupied pairs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, transform, transform_squared
from duckdb_anon.kernels.row_keys import joint
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.progress import tick


@dataclass(frozen=True)
class Occupied:
    """Occupied cells of a table for one sensitive attribute."""

    sizes: tuple[int, ...]  # domain size of each QI attribute
    sensitive_size: int  # domain size of the sensitive attribute
    records: int  # number of rows
    cell_codes: CodeArray  # QI codes of each occupied cell, shape (m, cells)
    cell_count: IntArray  # rows of each occupied cell, shape (cells,)
    pair_cell: IntArray  # occupied cell of each (cell, value) pair, shape (pairs,)
    pair_value: IntArray  # sensitive code of each pair, shape (pairs,)
    pair_count: IntArray  # rows of each pair, shape (pairs,)

    @property
    def conditional(self) -> FloatArray:
        """Share of each pair's value inside its QI cell (`c` in Result 1 of the paper), shape (pairs,)."""
        return self.pair_count / self.cell_count[self.pair_cell]

    @property
    def cell_share(self) -> FloatArray:
        """Share of all rows in each occupied cell, shape (cells,)."""
        return self.cell_count / self.records

    @property
    def marginal(self) -> FloatArray:
        """Share of each sensitive value in the table, shape (sensitive_size,)."""
        return np.bincount(self.pair_value, self.pair_count, self.sensitive_size) / self.records

    def dense_qi(self) -> FloatArray:
        """Shares of all QI cells as an array with one axis per QI attribute."""
        shares = np.zeros(self.sizes)
        shares[tuple(self.cell_codes)] = self.cell_share
        return shares

    def folded(self, axes: Sequence[int]) -> Occupied:
        """Return the same cells with the QI attributes other than `axes` combined into one, the first.

        The combined attribute has a value for each combination that occurs, however large the product is.
        """
        rest = [k for k in range(len(self.sizes)) if k not in axes]
        key = joint([self.cell_codes[k] for k in rest], [self.sizes[k] for k in rest], len(self.cell_count))
        values, value_of_cell = np.unique(key, return_inverse=True)
        codes = np.concatenate([value_of_cell[None, :].astype(np.int32), self.cell_codes[list(axes)]])
        return replace(self, sizes=(len(values), *(self.sizes[k] for k in axes)), cell_codes=codes)


def occupied_cells(
    qi: Sequence[CodeArray], sizes: Sequence[int], sensitive: CodeArray, sensitive_size: int
) -> Occupied:
    """Count the occupied QI cells and the values inside them."""
    records = len(sensitive)
    _, first_row, cell_of_row, cell_count = np.unique(
        joint(qi, sizes, records), return_index=True, return_inverse=True, return_counts=True
    )
    pair, pair_count = np.unique(cell_of_row * np.int64(sensitive_size) + sensitive, return_counts=True)
    return Occupied(
        tuple(sizes),
        sensitive_size,
        records,
        np.array([codes[first_row] for codes in qi], dtype=np.int32).reshape(len(qi), len(first_row)),
        cell_count.astype(np.int64),
        pair // sensitive_size,
        pair % sensitive_size,
        pair_count.astype(np.int64),
    )


MAX_CELLS = 2**24
"""Largest product of QI domains held as a dense array (128 MiB of doubles)."""


def reconstruction_probability(prior: FloatArray, channels: Sequence[RetentionChannel]) -> FloatArray:
    """Return for every cell the probability that its value is guessed from the randomized one.

    >>> import numpy as np
    >>> float(round(reconstruction_probability(np.array([.5, .3, .2]), [RetentionChannel(3, .6)])[0], 5))
    0.58393
    """
    return prior * transform_squared(reciprocal(transform(prior, channels)), channels)


def reciprocal(shares: FloatArray) -> FloatArray:
    """Return 1 / shares, and 0 for values that cannot be released."""
    return np.divide(1.0, shares, out=np.zeros_like(shares), where=shares > 0)


@dataclass(frozen=True)
class RiskModel:
    """Risk of every occupied (QI cell, sensitive value) pair as a function of the channels.

    The adversary's prior on the sensitive value is its distribution in the individual's QI cell.
    """

    tables: tuple[Occupied, ...]  # the occupied cells, one entry per sensitive attribute, all with the same QI

    def risks(self, qi: Sequence[RetentionChannel], sensitive: Sequence[RetentionChannel]) -> list[FloatArray]:
        """Return the risk of each occupied pair, one array per sensitive attribute."""
        of_cell = self.rec_qi(qi)
        return [
            table.conditional * of_cell[table.pair_cell] * self.rec_sensitive(table, channel)
            for table, channel in zip(self.tables, sensitive, strict=True)
        ]

    def rec_qi(self, qi: Sequence[RetentionChannel]) -> FloatArray:
        """Return the reconstruction probability of each occupied QI cell, shape (cells,)."""
        tick()
        table = self.tables[0]
        axes = [k for k, channel in enumerate(qi) if not channel.is_identity]
        if not axes:
            return np.ones(len(table.cell_count))
        if len(axes) < len(qi):
            table = table.folded(axes)
            qi = [RetentionChannel(table.sizes[0], 1.0), *(qi[k] for k in axes)]
        require_dense(table.sizes)
        of_cell: FloatArray = reconstruction_probability(table.dense_qi(), qi)[tuple(table.cell_codes)]
        return of_cell

    def rec_sensitive(self, table: Occupied, channel: RetentionChannel) -> FloatArray:
        """Return the reconstruction probability of each pair's sensitive value, shape (pairs,)."""
        tick()
        if channel.is_identity:
            return np.ones(len(table.pair_count))
        inverse = 1.0 / (channel.gain * table.conditional + channel.q)
        absent = table.sensitive_size - np.bincount(table.pair_cell)
        total = np.bincount(table.pair_cell, inverse) + absent / channel.q
        squares = (channel.p**2 - channel.q**2) * inverse + channel.q**2 * total[table.pair_cell]
        return np.asarray(table.conditional * squares, dtype=np.float64)


def require_dense(sizes: Sequence[int]) -> None:
    """Raise a ParameterError when the product of the QI domains is too large for an array."""
    cells = float(np.prod([float(s) for s in sizes]))
    if cells > MAX_CELLS:
        raise ParameterError(
            f"the QI domains multiply to {cells:.3g} cells, more than {MAX_CELLS:,}; bin the ordered attributes"
            " (bins := {'age': 10}), name fewer qi, or randomize the sensitive attribute only"
        )
