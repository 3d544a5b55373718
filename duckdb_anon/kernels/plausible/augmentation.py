"""Data augmentation (Tanner and Wong 1987): rows are completed given the model, the model is fitted to complete rows.

After some rounds the model stays as it is, and each draw completes the rows once more.

Cost: a pass over rows and edges for each round and each draw, see `sampling` and `tree`.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.sort_count import offsets_of, order_by
from duckdb_anon.kernels.plausible.columns import Column
from duckdb_anon.kernels.plausible.sampling import CellBins, Tree, complete, exchange, give_each, give_ends, redraw_root
from duckdb_anon.kernels.plausible.tree import Completion, Options, fitted, independent, information, structure
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.kernels.thread_pool import parallel_map
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.progress import tick

_ROWS, _BUCKETS = 1 << 13, 1 << 11
"""Rows and buckets that one thread works on at a time."""


@dataclass(frozen=True)
class Evidence:
    """What a release says of the rows of its original.

    Attributes:
        columns: its columns; all have the same rows.
        sensitive: whether each column is sensitive.
        bucket: bucket of each row from 0, shape (rows,); None where nothing is permuted.
        block: number of the block that each column is permuted with inside buckets; 0 where a row has its own values.
        first: first row of the same person, for each row; None where each row is one of its own.
        per_person: whether each column has the same value in all rows of a person.
    """

    columns: tuple[Column, ...]
    sensitive: tuple[bool, ...]
    bucket: IntArray | None = None
    block: tuple[int, ...] = ()
    first: IntArray | None = None
    per_person: tuple[bool, ...] = ()


class Augmentation:
    """Rows completed by a model that is fitted to them in turn.

    Attributes:
        cell: cell of each row, shape (columns, rows); buckets' cells as they are arranged now.
        state: bin of each row, shape (columns, rows).
    """

    def __init__(self, evidence: Evidence, rng: np.random.Generator, options: Options | None = None) -> None:
        """Complete the rows of a release for the first time, and learn the model."""
        self.evidence, self.rng, self.options = evidence, rng, options or Options()
        columns = evidence.columns
        self.cell: CodeArray = np.stack([column.cell for column in columns])
        self.state: CodeArray = np.zeros_like(self.cell)
        self.block = np.array(evidence.block or (0,) * len(columns))
        self.sizes = np.array([column.size for column in columns])
        self.level: CodeArray = np.zeros(self.cell.shape[1], dtype=np.int32)
        self.levels, self.root, self.level_of_bin = 1, 0, np.zeros(0, dtype=np.int32)
        self.cells = _cell_bins(columns)
        if evidence.bucket is not None:
            self.members, self.starts = _by_number(evidence.bucket)
        # rows of one class have equal cells; a set lists the values that they have
        hidden = [j for j, column in enumerate(columns) if column.open and not self.block[j]]
        self.listed = [j for j in hidden if columns[j].cells.several and evidence.first is None]
        if self.listed:
            self.classes = _by_number(keys_of([columns[j].cell for j in hidden]).of_row)
        self.ended = [j for j, column in enumerate(columns) if column.tight is not None]
        self.prior = [column.bin_shares for column in columns]
        self.tree = independent(self.prior)
        self._complete(self.tree)
        if self.drawn:
            self._choose_root()
            self.edges = structure(self._completion(), self.root)
            self._fit()
            for _ in range(self._rounds):
                self.step()
                self.edges = structure(self._completion(), self.root)
                self._fit()

    @property
    def drawn(self) -> bool:
        """Whether the bins of the rows are left open, or permuted."""
        return any(column.open for column in self.evidence.columns) or self.evidence.bucket is not None

    @property
    def _rounds(self) -> int:
        """Rounds of completing and fitting.

        Those of generalized cells are few: their shares are learnt already, and more rounds give all rows of a cell to
        the few values that are most likely (as Turnbull's estimate does). Buckets and channels take more; of buckets
        still more would narrow intervals by replay below what they state.
        """
        if self.evidence.bucket is not None:
            return self.options.rounds
        noisy = any(column.cells.noisy for column in self.evidence.columns)
        return self.options.channel_rounds if noisy else self.options.cell_rounds

    def _fit(self) -> None:
        self.tree = fitted(self._completion(), self.prior, self.edges, self.options)

    def step(self) -> None:
        """Complete the rows again by the model."""
        tick()
        if any(column.open for column in self.evidence.columns):
            self._complete(self.tree)
        if self.evidence.bucket is not None:
            for block in range(1, int(self.block.max()) + 1):
                self._exchange(block)

    def atoms(self, j: int) -> IntArray:
        """Draw the atoms of column `j` inside the bins that its rows have now, shape (rows,)."""
        random: FloatArray = self.rng.random((self.cell.shape[1],))
        first = self.evidence.first
        atoms = self.evidence.columns[j].atoms(self.cell[j], self.state[j], random)
        if j in self.ended:
            self._give_ends(j, atoms, np.arange(len(self.evidence.columns[j].bin)))
        return atoms[first] if first is not None and self.evidence.per_person[j] else atoms

    def copied(self, rng: np.random.Generator) -> Augmentation:
        """The same model with rows of its own, and another generator."""
        made = copy(self)
        made.rng, made.cell, made.state, made.level = rng, self.cell.copy(), self.state.copy(), self.level.copy()
        return made

    def _completion(self) -> Completion:
        return Completion(self.state, self.sizes, self.level, self.levels)

    def _word(self) -> np.uint64:
        return self.rng.integers(0, 2**64, dtype=np.uint64)

    def _complete(self, tree: Tree) -> None:
        if self.levels > 1 and self.evidence.columns[self.root].open:
            self._completed(tree, self._with_bins([self.root]))
            self._redraw_root(tree)
        else:
            self._completed(tree, self.cell)
        if self.listed:
            self._give_each(tree)
        for k in self.ended:
            self._give_ends(k, self.state[k], self.evidence.columns[k].bin)
        first = self.evidence.first
        if first is None:
            return
        # a person has the values of the first record; what varies is drawn again given these
        per_person = np.flatnonzero(self.evidence.per_person)
        self.state[per_person] = self.state[per_person][:, first]
        self._completed(tree, self._with_bins(per_person))

    def _with_bins(self, columns: Iterable[int]) -> CodeArray:
        """The cells of the rows, those of some columns the bins that the rows have now."""
        cell = self.cell.copy()
        for j in columns:
            cell[j] = self.state[j] + len(self.evidence.columns[j].offsets) - 1
        return cell

    def _give_ends(self, j: int, places: IntArray | CodeArray, place: IntArray) -> None:
        """Give the ends of the tight boxes of column `j` to rows of their class. `place`: bin or atom of each atom."""
        column = self.evidence.columns[j]
        if column.tight is not None:
            cell = self.cell[j]
            first, last = place[column.cells.first[cell]], place[column.cells.last[cell]]
            scratch = np.full((2, int(column.tight.max()) + 1), -1)
            give_ends(places, column.tight, first, last, scratch[0], scratch[1])

    def _give_each(self, tree: Tree) -> None:
        members, starts = self.classes
        largest = int(np.diff(starts).max())
        for j in self.listed:
            seed = self._word()

            def work(low: int, j: int = j, seed: np.uint64 = seed) -> None:
                tick()
                many, odds = np.empty(self.sizes[j], dtype=np.int64), np.empty(largest)
                give_each(
                    low, min(low + _BUCKETS, len(starts) - 1), seed, j, members, starts, tree, self.cells, self.cell,
                    self.level, many, odds, self.state,
                )  # fmt: skip

            parallel_map(work, range(0, len(starts) - 1, _BUCKETS))

    def _completed(self, tree: Tree, cell: CodeArray) -> None:
        seed, rows = self._word(), cell.shape[1]
        widest = int(np.diff(self.cells.offsets).max())

        def work(low: int) -> None:
            tick()
            weight = np.empty((len(cell), widest))
            complete(low, min(low + _ROWS, rows), seed, tree, self.cells, cell, self.level, weight, self.state)

        parallel_map(work, range(0, rows, _ROWS))

    def _redraw_root(self, tree: Tree) -> None:
        seed, rows = self._word(), self.cell.shape[1]

        def work(low: int) -> None:
            tick()
            redraw_root(
                low, min(low + _ROWS, rows), seed, self.root, self.level_of_bin, self.block, tree, self.cells,
                self.cell, np.empty(self.sizes[self.root]), self.level, self.state,
            )  # fmt: skip

        parallel_map(work, range(0, rows, _ROWS))

    def _exchange(self, block: int) -> None:
        seed, buckets = self._word(), len(self.starts) - 1
        moves_level = self.levels > 1 and int(self.block[self.root]) == block

        def work(low: int) -> None:
            tick()
            exchange(
                low, min(low + _BUCKETS, buckets), seed, self.options.swaps, self.members, self.starts, block,
                self.block, moves_level, self.tree, self.state, self.cell, self.level,
            )  # fmt: skip

        parallel_map(work, range(0, buckets, _BUCKETS))

    def _choose_root(self) -> None:
        """Take the column that tells the rows' levels.

        It must be known of each row or bucket, or randomized: a sensitive column if there is one, then one that is
        permuted, then one that is known; of several the one that tells most of the others.
        """
        columns = self.evidence.columns
        alone = self.evidence.first is None
        fit = [j for j, column in enumerate(columns) if not column.open or (alone and column.cells.noisy)]
        if not fit:
            return
        informs = information(self._completion()).sum(axis=1)
        self.root = max(
            fit, key=lambda j: (self.evidence.sensitive[j], self.block[j] > 0, not columns[j].open, informs[j])
        )
        if self.options.levels < 2:
            return
        shares = columns[self.root].bin_shares
        level = np.floor((np.cumsum(shares) - shares / 2) * self.options.levels)
        self.level_of_bin = np.unique(level, return_inverse=True)[1].astype(np.int32)
        self.levels = int(self.level_of_bin.max()) + 1
        self.level = self.level_of_bin[self.state[self.root]]


def _by_number(number: IntArray) -> tuple[IntArray, IntArray]:
    """Rows by a number from 0, and where the rows of each number start, and the last ones end."""
    rows = order_by(number)
    return rows, offsets_of(number[rows], int(number.max(initial=-1)) + 1)


def _cell_bins(columns: tuple[Column, ...]) -> CellBins:
    """The cells of each column, and behind them one for each of its bins."""
    offsets, bins, odds, end = [], [], [], 0
    for column in columns:
        offsets.append(np.concatenate([column.offsets, column.offsets[-1] + np.arange(1, column.size + 1)]) + end)
        bins += [column.bins, np.arange(column.size, dtype=np.int32)]
        odds += [column.odds, np.ones(column.size)]
        end = int(offsets[-1][-1])
    starts = np.cumsum([0, *(len(each) for each in offsets)])[:-1]
    return CellBins(starts, np.concatenate(offsets), np.concatenate(bins), np.concatenate(odds))
