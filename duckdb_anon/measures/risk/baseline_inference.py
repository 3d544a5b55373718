"""What can be inferred of a target's sensitive value without the target's rows: naive Bayes on the other rows.

P(s) prod_a P(x_a | s), counted in the released cells (a box counts evenly for the values it covers), ordered columns of
more than 100 values in quantile bins, smoothed by one row drawn from the column. The 1,000 most frequent sensitive
values are guessed from. Departure from leave-one-out on the model as a whole: the bins see all rows.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from duckdb_anon.kernels.attacks.naive_bayes import naive_bayes_guesses
from duckdb_anon.measures.cells import PublishedCells, quantile_bins
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.measures.risk.sensitive_attributes import Secret
from duckdb_anon.measures.risk.targets import Targets
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.progress import stop_flag

MOST_VALUES = 1000
BINS = 100
STRENGTH = 1.0
_BLOCK = 4_000_000
_Binned = tuple[IntArray, sparse.csr_matrix]


def guesses(release: PublishedRecords, k: int, targets: Targets) -> FloatArray:
    """Chance that a value of each target's k-th secret is guessed, shape (targets,); NaN where all are known."""
    secret = release.secrets[k]
    rows = np.bincount(secret.code, weights=secret.weight, minlength=secret.domain).astype(np.float64)
    chosen = np.argsort(-rows, kind="stable")[: min(MOST_VALUES, int((rows > 0).sum()))]
    position = np.full(secret.domain, -1, dtype=np.int64)
    position[chosen] = np.arange(len(chosen))
    binned = [bins_of(cells) for cells in release.columns]
    counts, marginal, bins, before = [], [], [], 0
    for a, (bin_of_code, spread) in enumerate(binned):
        # bins that no target has are left out of the model
        used_bins, bin_of_record = np.unique(bin_of_code[targets.values[:, a]], return_inverse=True)
        joint = release.values_of_cells(secret, a)[:, chosen]
        counts.append(np.asarray((spread[:, used_bins].T @ joint).todense(), dtype=np.float64))
        share = release.columns[a].weights @ spread
        marginal.append(np.maximum(share[used_bins], 1e-9) / max(share.sum(), 1e-9))
        bins.append(bin_of_record.astype(np.int64) + before)
        before += len(used_bins)
    truth, known_values = targets.secrets[k], targets.known_values[k]
    out = np.zeros(len(targets))
    for at, end in targets.blocks(max(1, _BLOCK // max(len(chosen), 1))):
        some = targets.between(at, end)
        added, inside = _added(release, secret, position, len(chosen), binned, some)
        to_find, known = truth.between(at, end), known_values.between(at, end)
        records = slice(targets.start[at], targets.start[end])
        naive_bayes_guesses(
            some.start, np.stack([b[records] for b in bins], axis=1), some.known, np.vstack(counts),
            np.concatenate(marginal), rows[chosen],
            some.true_start, added, inside, to_find.offsets, position[to_find.code],
            known.offsets, position[known.code], STRENGTH, out[at:end], stop_flag(),
        )  # fmt: skip
    return np.where(np.diff(truth.offsets) > 0, out, np.nan)


def bins_of(cells: PublishedCells) -> _Binned:
    """Bin of each value of the domain, and the share of each cell in each bin, shape (cells, bins)."""
    domain = cells.domain
    bin_of_code = np.arange(domain.size, dtype=np.int64)
    if domain.kind == "ordered" and domain.size > BINS:
        if cells.plain:
            rows = np.bincount(cells.codes[cells.of_row], minlength=domain.size)
            bin_of_code = quantile_bins(rows, BINS, len(cells.of_row))
        else:
            bin_of_code = bin_of_code * BINS // domain.size
    return bin_of_code, cells.in_bins(bin_of_code)


def numbered_bins(release: PublishedRecords) -> tuple[list[IntArray], list[sparse.csr_matrix]]:
    """Bin of each value of each column, numbered over all columns, and the share of each cell in the column's bins."""
    of_code, spreads, first = [], [], 0
    for cells in release.columns:
        bin_of_code, spread = bins_of(cells)
        of_code.append(bin_of_code + first)
        spreads.append(spread)
        first += spread.shape[1]
    return of_code, spreads


def _added(
    release: PublishedRecords, secret: Secret, position: IntArray, values: int, binned: list[_Binned], some: Targets
) -> tuple[FloatArray, FloatArray]:
    """What own rows add to the model: to each value, and to the bin of each column for each record of their person."""
    adds = secret.of_rows(some.true_row).tocoo()
    at = position[adds.col]
    added = np.zeros((len(some.true_row), values))
    added[adds.row[at >= 0], at[at >= 0]] = adds.data[at >= 0]
    rows, records = np.diff(some.true_start), np.diff(some.start)
    # pairs of a record and an own row of one target, records first
    of_record = np.repeat(np.arange(len(some)), records)
    record = np.repeat(np.arange(len(of_record)), rows[of_record])
    begin = np.cumsum(rows[of_record]) - rows[of_record]
    row = some.true_start[:-1][of_record][record] + np.arange(len(record)) - begin[record]
    inside = np.zeros((len(record), len(binned)))
    for a, (bin_of_code, spread) in enumerate(binned):
        cell = release.columns[a].of_row[some.true_row[row]]
        inside[:, a] = np.asarray(spread[cell, bin_of_code[some.values[record, a]]]).ravel()
    if release.start is not None:
        inside /= np.diff(release.start)[release.unit_of_row[some.true_row[row]]][:, None]
    return added, inside
