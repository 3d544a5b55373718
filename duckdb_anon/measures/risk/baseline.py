"""What can be guessed of a person's secret without her row: naive Bayes on the release, leaving her row out.

P(s) prod_a P(x_a | s), counted in the released cells (a box counts evenly for the values it covers), ordered columns of
more than 100 values in quantile bins, smoothed by one row drawn from the column. The 1,000 most frequent sensitive
values are guessed from. Departure from leave-one-out on the model as a whole: the bins see all rows.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from duckdb_anon.kernels.attacks.guesses import naive_bayes_guesses
from duckdb_anon.measures.risk.attacks import Targets
from duckdb_anon.measures.risk.published import Published, Secret
from duckdb_anon.measures.risk.published_cells import PublishedCells
from duckdb_anon.model.progress import stop_flag
from duckdb_anon.model.table import Attribute, FloatArray, IntArray

MOST_VALUES = 1000
BINS = 100
STRENGTH = 1.0
_BLOCK = 4_000_000
_Binned = tuple[IntArray, sparse.csr_matrix]


def guesses(release: Published, k: int, targets: Targets) -> FloatArray:
    """Chance that the k-th secret of each target is guessed right, shape (targets,).

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
    truth = place[targets.secrets[:, k]]
    out = np.zeros(len(targets))
    step = max(1, _BLOCK // max(len(chosen), 1))
    for at in range(0, len(targets), step):
        some = slice(at, at + step)
        own, own_bins = _own(release, secret, place, len(chosen), binned, targets.take(np.arange(len(targets))[some]))
        naive_bayes_guesses(
            bins[some], targets.known[some], np.vstack(held), np.concatenate(marginal), rows[chosen], own, own_bins,
            truth[some], STRENGTH, out[some], stop_flag(),
        )  # fmt: skip
    return out


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
    release: Published, secret: Secret, a: int, spread: sparse.csr_matrix, by_voter: sparse.csr_matrix
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
    release: Published, secret: Secret, place: IntArray, values: int, binned: list[_Binned], some: Targets
) -> tuple[FloatArray, FloatArray]:
    """What each target's own row adds to the model: to each value, and to the bin of each column."""
    own = np.zeros((len(some), values))
    inside = np.zeros((len(some), len(binned)))
    here = np.flatnonzero(some.row >= 0)
    row, unit = some.row[here], release.unit_of_row[some.row[here]]
    if secret.of_row is not None:
        at = place[secret.of_row[row]]
        own[here[at >= 0], at[at >= 0]] = 1.0
    else:
        for t, u in zip(here, unit, strict=True):
            part = slice(secret.offsets[u], secret.offsets[u + 1])
            at = place[secret.code[part]]
            own[t, at[at >= 0]] = secret.weight[part][at >= 0] / release.size[u]
    for a, (bin_of_code, spread) in enumerate(binned):
        cell = release.columns[a].of_row[row]
        inside[here, a] = np.asarray(spread[cell, bin_of_code[some.values[here, a]]]).ravel()
    if release.start is not None:
        inside /= np.diff(release.start)[np.where(some.row >= 0, release.unit_of_row[some.row], 0)][:, None]
    return own, inside
