"""What can be guessed of a person's secret without her row: naive Bayes on the release, leaving her rows out.

P(s) prod_a P(x_a | s), counted in the released cells (a box counts evenly for the values it covers), ordered columns of
more than 100 values in quantile bins, smoothed by one row drawn from the column. The 1,000 most frequent sensitive
values are guessed from. Departure from leave-one-out on the model as a whole: the bins see all rows.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from duckdb_anon.kernels.attacks.naive_bayes import naive_bayes_guesses
from duckdb_anon.measures.risk.distinct_cells import PublishedCells
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.measures.risk.sensitive_attributes import Secret
from duckdb_anon.measures.risk.targets import Targets
from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray
from duckdb_anon.model.progress import stop_flag

MOST_VALUES = 1000
BINS = 100
STRENGTH = 1.0
_BLOCK = 4_000_000
_Binned = tuple[IntArray, sparse.csr_matrix]


def guesses(release: PublishedRecords, k: int, targets: Targets) -> FloatArray:
    """Chance that a value of each target's k-th secret is guessed, shape (targets,); NaN where all are known.

    Args:
        release: what was published.
        k: which of its secrets.
        targets: whom it is asked of.
    """
    secret = release.secrets[k]
    voter = np.repeat(np.arange(len(secret.offsets) - 1), np.diff(secret.offsets))
    rows = np.bincount(secret.code, weights=secret.weight, minlength=secret.domain).astype(np.float64)
    chosen = np.argsort(-rows, kind="stable")[: min(MOST_VALUES, int((rows > 0).sum()))]
    place = np.full(secret.domain, -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    used = place[secret.code] >= 0
    by_voter = sparse.csr_matrix(
        (secret.weight[used], (voter[used], place[secret.code[used]])), (len(secret.offsets) - 1, len(chosen))
    )
    binned = [bins_of(cells) for cells in release.columns]
    first = np.cumsum([0, *(m.shape[1] for _, m in binned)])
    held, marginal = [], []
    for a, (_, spread) in enumerate(binned):
        held.append(_held(release, secret, a, spread, by_voter))
        share = np.asarray(release.columns[a].weights @ spread).ravel()
        marginal.append(np.maximum(share, 1e-9) / max(share.sum(), 1e-9))
    bins = np.stack([b[targets.values[:, a]] + first[a] for a, (b, _) in enumerate(binned)], axis=1).astype(np.int64)
    truth, told = targets.secrets[k], targets.told[k]
    out = np.zeros(len(targets))
    for at, end in targets.blocks(max(1, _BLOCK // max(len(chosen), 1))):
        some = targets.between(at, end)
        own, inside = _own(release, secret, place, len(chosen), binned, some)
        of_hers, known = truth.between(at, end), told.between(at, end)
        records = slice(targets.start[at], targets.start[end])
        naive_bayes_guesses(
            some.start, bins[records], some.known, np.vstack(held), np.concatenate(marginal), rows[chosen],
            some.own_start, own, inside, of_hers.offsets, place[of_hers.code], known.offsets, place[known.code],
            STRENGTH, out[at:end], stop_flag(),
        )  # fmt: skip
    return np.where(np.diff(truth.offsets) > 0, out, np.nan)


def bins_of(cells: PublishedCells) -> _Binned:
    """Bin of each value of the domain, and the share of each cell in each bin, shape (cells, bins)."""
    bin_of_code = _bins(cells.domain, cells)
    number = int(bin_of_code.max()) + 1
    if cells.plain:
        one = np.ones(cells.number)
        return bin_of_code, sparse.csr_matrix(
            (one, (np.arange(cells.number), bin_of_code[cells.codes])), (cells.number, number)
        )
    rows, shares = [], []
    for at in range(0, cells.domain.size, 512):
        codes = np.arange(at, min(at + 512, cells.domain.size), dtype=np.int32)
        covered = sparse.csr_matrix(cells.covered(codes).T.astype(np.float64))
        to_bin = sparse.csr_matrix(
            (np.ones(len(codes)), (np.arange(len(codes)), bin_of_code[codes])), (len(codes), number)
        )
        rows.append(covered @ to_bin)
    total = sum(rows[1:], rows[0])
    shares = sparse.diags_array(1.0 / cells.covered_values) @ total
    return bin_of_code, sparse.csr_matrix(shares)


def _bins(domain: Attribute, cells: PublishedCells) -> IntArray:
    if domain.kind != "ordered" or domain.size <= BINS:
        return np.arange(domain.size, dtype=np.int64)
    if not cells.plain:
        return np.arange(domain.size, dtype=np.int64) * BINS // domain.size
    below = np.cumsum(np.bincount(cells.codes, weights=cells.weights, minlength=domain.size))
    _, number = np.unique((below - 1) * BINS // below[-1], return_inverse=True)
    return number.astype(np.int64)


def _held(
    release: PublishedRecords, secret: Secret, a: int, spread: sparse.csr_matrix, by_voter: sparse.csr_matrix
) -> FloatArray:
    """Rows of each bin of column a that hold each value; across slices by shares of buckets."""
    k = next(k for k, part in enumerate(release.parts) if a in part.columns)
    part = release.parts[k]
    cell = part.cells[part.columns.index(a)]
    number, voters = release.columns[a].number, len(cell)
    shown = sparse.csr_matrix((np.ones(voters), (np.arange(voters), cell)), (voters, number))
    if release.start is not None and k != secret.part:
        size = np.diff(release.start)
        bucket = np.repeat(np.arange(len(size)), size)
        of_bucket = sparse.csr_matrix((np.ones(voters), (bucket, np.arange(voters))), (len(size), voters))
        mixed = sparse.diags_array(1.0 / size) @ (of_bucket @ by_voter if secret.part >= 0 else by_voter)
        joint = (of_bucket @ shown).T @ mixed
    else:
        joint = shown.T @ by_voter
    return np.asarray((spread.T @ joint).todense(), dtype=np.float64)


def _own(
    release: PublishedRecords, secret: Secret, place: IntArray, values: int, binned: list[_Binned], some: Targets
) -> tuple[FloatArray, FloatArray]:
    """What own rows add to the model: to each value, and to the bin of each column for each record of their person."""
    adds = secret.of_rows(some.own_row).tocoo()
    at = place[adds.col]
    own = np.zeros((len(some.own_row), values))
    own[adds.row[at >= 0], at[at >= 0]] = adds.data[at >= 0]
    rows, records = np.diff(some.own_start), np.diff(some.start)
    # pairs of a record and an own row of one target, records first
    of_record = np.repeat(np.arange(len(some)), records)
    record = np.repeat(np.arange(len(of_record)), rows[of_record])
    begin = np.cumsum(rows[of_record]) - rows[of_record]
    row = some.own_start[:-1][of_record][record] + np.arange(len(record)) - begin[record]
    inside = np.zeros((len(record), len(binned)))
    for a, (bin_of_code, spread) in enumerate(binned):
        cell = release.columns[a].of_row[some.own_row[row]]
        inside[:, a] = np.asarray(spread[cell, bin_of_code[some.values[record, a]]]).ravel()
    if release.start is not None:
        inside /= np.diff(release.start)[release.unit_of_row[some.own_row[row]]][:, None]
    return own, inside
