"""What can be inferred of a target's sensitive value without the target's rows: naive Bayes on the other rows.

P(s) prod_a P(x_a | s), counted in the released cells (a box counts evenly for the values it covers), ordered columns of
more than 100 values in quantile bins, smoothed by one row drawn from the column. The 1,000 most frequent sensitive
values are guessed from. Departure from leave-one-out on the model as a whole: the bins see all rows.
Cost: targets times sensitive values times columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from duckdb_anon.kernels.attacks.linkage_scores import record_pairs, share_of_likeliest
from duckdb_anon.kernels.cells.cells import Ranges
from duckdb_anon.kernels.cells.line import quantile_bins
from duckdb_anon.measures.risk.linkage_view import PublishedRecords, once_per_release
from duckdb_anon.measures.risk.sensitive_attributes import Secret
from duckdb_anon.measures.risk.targets import Targets
from duckdb_anon.model.coded_table import BoolArray, CodeArray, FloatArray, IntArray
from duckdb_anon.model.progress import tick

MOST_VALUES = 1000
BINS = 100
STRENGTH = 1.0
_NO_ROWS = 1e-9
"""Fewer rows than this are rounding errors."""
_BLOCK = 4_000_000


@dataclass(frozen=True)
class Bins:
    """Bins of the values of all quasi-identifiers, numbered through."""

    of_code: list[IntArray]  # for each column the bin of each value
    spread: list[scipy.sparse.csr_matrix]  # for each column the share of each cell in each of its bins
    first: IntArray  # first bin of each column
    marginal: FloatArray  # share of each bin in its column

    def sums(self, of_bin: FloatArray, values: CodeArray, known: BoolArray) -> FloatArray:
        """Sum over the known values of what their bins have, shape (records, columns of `of_bin`)."""
        total = np.zeros((len(values), of_bin.shape[1]))
        for a, bins in enumerate(self.of_code):
            total += np.where(known[:, a, None], of_bin[bins[values[:, a]]], 0.0)
        return total

    def log_ratio(
        self, rows_with_value: FloatArray, prior: FloatArray, of: IntArray | slice = slice(None)
    ) -> FloatArray:
        """Log P(bin | value) of some bins, smoothed.

        `rows_with_value`: rows of each bin that hold each value, shape (bins, values); `prior`: rows that hold each.
        """
        smoothed = np.log(rows_with_value[of] + STRENGTH * self.marginal[of, None]) - np.log(prior + STRENGTH)
        return np.asarray(smoothed)


@once_per_release
def bins_of(release: PublishedRecords) -> Bins:
    """Quantile bins of ordered columns of many values, each value of other columns a bin."""
    of_code, spreads, first, marginal = [], [], [0], []
    for cells in release.columns:
        bin_of_code = _bin_of_code(cells)
        spread = cells.in_bins(bin_of_code)
        share = np.maximum(np.asarray(cells.weights @ spread).ravel(), 1e-9)
        of_code.append(bin_of_code + first[-1])
        spreads.append(spread)
        marginal.append(share / share.sum())
        first.append(first[-1] + len(share))
    return Bins(of_code, spreads, np.array(first), np.concatenate(marginal))


def _bin_of_code(cells: Ranges) -> IntArray:
    """Bin of each value of a column, from 0."""
    size = cells.domain.size
    if cells.domain.kind != "ordered" or size <= BINS:
        return np.arange(size, dtype=np.int64)
    if cells.plain:
        return quantile_bins(np.bincount(cells.value_codes()[cells.of_row], minlength=size), BINS, len(cells.of_row))
    return np.arange(size, dtype=np.int64) * BINS // size


def guesses(release: PublishedRecords, k: int, targets: Targets) -> FloatArray:
    """Chance that a value of each target's k-th secret is guessed, shape (targets,); NaN where all are known."""
    secret, bins = release.secrets[k], bins_of(release)
    prior = secret.rows_of_code
    chosen = np.argsort(-prior, kind="stable")[: min(MOST_VALUES, int((prior > 0).sum()))]
    position = np.full(secret.domain, -1, dtype=np.int64)  # the last column of the votes, which has none
    position[chosen] = np.arange(len(chosen))
    counts = np.zeros((len(bins.marginal), len(chosen)))
    for a, inside in enumerate(bins.spread):
        counted = inside.T @ release.values_of_cells(secret, a)[:, chosen]
        counts[bins.first[a] : bins.first[a + 1]] = counted.toarray()
    model = _Model(release, secret, bins, chosen, counts, prior[chosen])
    found = np.zeros(len(targets))
    for at, end in targets.blocks(max(1, _BLOCK // max(len(chosen), 1))):
        tick()
        some = targets.between(at, end)
        truth, known = some.secrets[k], some.known_values[k]
        votes = np.zeros((len(some), len(chosen) + 1))
        votes[:, :-1] = np.add.reduceat(model.posterior(some), some.start[:-1], axis=0)
        votes[known.target, position[known.code]] = 0
        right = share_of_likeliest(votes, truth.target, position[truth.code])
        found[at:end] = np.where(np.diff(truth.offsets) > 0, right, np.nan)
    return found


@dataclass(frozen=True)
class _Model:
    """Rows of the release by bin and value, from which those of each target are taken."""

    release: PublishedRecords
    secret: Secret
    bins: Bins
    chosen: IntArray  # codes of the values that are guessed from
    counts: FloatArray  # rows of each bin that hold each of them, shape (bins, values)
    prior: FloatArray  # rows that hold each

    def posterior(self, some: Targets) -> FloatArray:
        """P(value | known values) for each record, without the rows of its target, shape (records, values)."""
        values = some.values.T
        used = np.unique([of_code[codes] for of_code, codes in zip(self.bins.of_code, values, strict=True)])
        log_ratio = np.empty(self.counts.shape)
        log_ratio[used] = self.bins.log_ratio(self.counts, self.prior, used)
        score = self.bins.sums(log_ratio, some.values, some.known)
        with np.errstate(divide="ignore"):
            score += np.log(np.where(self.prior > _NO_ROWS, self.prior, 0))
        if len(some.true.code):
            self._leave_out(some, score)
        best = score.max(axis=1, keepdims=True, initial=-np.inf)
        weight = np.exp(score - np.where(np.isfinite(best), best, 0))
        return np.asarray(weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300))

    def _leave_out(self, some: Targets, score: FloatArray) -> None:
        """Change the scores of the values that a target's own rows hold."""
        own = self.secret.of_rows(some.true.code)[:, self.chosen]
        record, row = record_pairs(some.start, some.true.offsets)

        def taken(inside: FloatArray) -> scipy.sparse.csr_matrix:
            return scipy.sparse.csr_matrix((inside, (record, row)), (len(some.values), len(some.true.code))) @ own

        mine = taken(np.ones(len(record))).tocoo()
        r, s = mine.row, mine.col
        rest = self.prior[s] - mine.data
        changed = np.log(np.maximum(rest, _NO_ROWS))
        for a, (of_code, spread) in enumerate(zip(self.bins.of_code, self.bins.spread, strict=True)):
            bin_of_record = of_code[some.values[:, a]]
            cell = self.release.columns[a].of_row[some.true.code[row]]
            inside = np.asarray(spread[cell, bin_of_record[record] - self.bins.first[a]]).ravel()
            if self.release.start is not None:
                inside = inside / self.release.size[self.release.unit_of_row[some.true.code[row]]]
            bin_of_entry = bin_of_record[r]
            seen = self.counts[bin_of_entry, s] - np.asarray(taken(inside)[r, s]).ravel()
            smoothed = np.maximum(seen, 0) + STRENGTH * self.bins.marginal[bin_of_entry]
            changed += np.where(some.known[r, a], np.log(smoothed / (rest + STRENGTH)), 0)
        score[r, s] = np.where(rest > _NO_ROWS, changed, -np.inf)
