"""The deFinetti attacker: what a model trained on the release says of the values in a person's class or bucket.

The values of a bucket are not equally likely for each of its rows: other buckets tell which values go with which
quasi-identifiers. It fits naive Bayes, P(s) prod_a P(x_a | s), on the release alone: where rows show the values of
their bucket only (Anatomy), or columns are permuted (slicing, merging), by expectation maximization under the counts
of the buckets; where rows of a class of boxes show their values, by counting. Ordered
values that are many are fitted in quantile bins. It looks for the row as `likelihood` does. Source: Kifer (2009),
Attacks on privacy and deFinetti's theorem. `within_group` also knows the class or bucket of the
target's row, a bound on what groups could leak; that is no public knowledge, so it is never the strongest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from duckdb_anon.kernels.attacks.definetti import spread_values
from duckdb_anon.kernels.partition.sort_count import offsets_of
from duckdb_anon.kernels.row_keys import Keys, keys_of
from duckdb_anon.measures.risk.attackers.record_linkage import likelihood
from duckdb_anon.measures.risk.attacks import Attacker, NotApplicable, Scoring, Tilt
from duckdb_anon.measures.risk.baseline_inference import numbered_bins
from duckdb_anon.measures.risk.linkage_view import PublishedPart, PublishedRecords
from duckdb_anon.measures.risk.sensitive_attributes import Secret
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.progress import stop_flag
from duckdb_anon.model.release_formats import SOURCE

ROUNDS, PASSES = 20, 50
STRENGTH = 1.0
MOST_CELLS = 100_000_000


def scoring(release: PublishedRecords) -> Scoring:
    """As likelihood, with the values of each class or bucket weighed by the model."""
    if release.group_of_unit is None or not release.secrets:
        raise NotApplicable("The release has no class or bucket with several sensitive values")
    models = _models.get(release)
    if models is None:
        models = _models[release] = [_model(release, secret) for secret in release.secrets]
    return replace(likelihood(release), weights=[weight for weight, _ in models], tilts=[tilt for _, tilt in models])


def class_membership(release: PublishedRecords) -> Scoring:
    """As definetti, or likelihood where no values are mixed, inside the target's own group."""
    if not release.persons:
        raise NotApplicable("This attack needs record-level data. The release holds noisy counts")
    if release.group_of_unit is None:
        raise NotApplicable("The release has no equivalence classes or buckets")
    if not release.linked:
        raise NotApplicable(f"The release has no {SOURCE.word}, so the class of the target's record is unknown")
    try:
        scored = scoring(release)
    except NotApplicable:
        scored = likelihood(release)
    return replace(scored, within_group=True)


_Model = tuple[FloatArray, Tilt | None]
"""Weights in place of a secret's own, and a factor by target and value."""
# the attacker who knows the class uses the same models
_models: WeakKeyDictionary[PublishedRecords, list[_Model]] = WeakKeyDictionary()


@dataclass(frozen=True)
class _Bins:
    """Bins of all columns, numbered through."""

    of_code: list[IntArray]  # for each column the bin of each value
    of_cell: list[IntArray]  # for each column the bin most of each cell lies in
    marginal: FloatArray  # share of each bin in its column
    spread: list[sparse.csr_matrix]  # for each column the share of each cell in each of its bins

    @classmethod
    def of(cls, release: PublishedRecords) -> _Bins:
        of_code, spread = numbered_bins(release)
        of_cell, marginal, first = [], [], 0
        for cells, inside in zip(release.columns, spread, strict=True):
            share = np.maximum(np.asarray(cells.weights @ inside).ravel(), 1e-9)
            of_cell.append(np.asarray(inside.argmax(axis=1)).ravel().astype(np.int64) + first)
            marginal.append(share / share.sum())
            first += len(share)
        return cls(of_code, of_cell, np.concatenate(marginal), spread)


def _model(release: PublishedRecords, secret: Secret) -> _Model:
    bins = _Bins.of(release)
    if len(bins.marginal) * secret.domain > MOST_CELLS:
        raise NotApplicable(f"'{secret.name}' has {secret.domain} values, too many for a model of each")
    if secret.mixed:
        return _within_buckets(release, secret, bins), None
    counts = np.zeros((len(bins.marginal), secret.domain))
    first = np.cumsum([0, *(inside.shape[1] for inside in bins.spread)])
    for k, part in enumerate(release.parts):
        if release.start is not None and k != secret.part:
            counts += _of_permuted(release, secret, part, bins)
            continue
        for a in part.columns:
            counts[first[a] : first[a + 1]] = (bins.spread[a].T @ release.values_of_cells(secret, a)).toarray()
    prior = np.bincount(secret.code, weights=secret.weight, minlength=secret.domain)
    table = np.log(counts + STRENGTH * bins.marginal[:, None]) - np.log(prior + STRENGTH)
    return secret.weight, Tilt(bins.of_code, table - np.log(bins.marginal)[:, None])


def _within_buckets(release: PublishedRecords, secret: Secret, bins: _Bins) -> FloatArray:
    """Weights of a secret whose rows show the counts of their bucket: fitted, in place of even shares."""
    part, group = release.parts[0], release.group_of_unit
    if group is None:
        raise TypeError("no buckets")
    _, unit = np.unique(group, return_index=True)  # every unit of a bucket shows the same values
    people = np.bincount(group, weights=release.size)
    values = secret.by_voter[unit]
    values.data *= np.repeat(people / release.size[unit], np.diff(values.indptr))
    bin_of_value = secret.bins()
    to_bin = sparse.csr_matrix((np.ones(secret.domain), (np.arange(secret.domain), bin_of_value)))
    binned = sparse.csr_matrix(values @ to_bin)
    binned.sort_indices()
    fitted = _fitted(part, bins, group, release.size, binned)
    # values of one bin share what is theirs by their counts, those who look alike by their sizes
    bucket, value_bin = np.repeat(group, np.diff(secret.offsets)), bin_of_value[secret.code]
    # the place of each entry among the entries of a matrix, from 1
    places = sparse.csr_matrix((np.arange(1, binned.nnz + 1.0), binned.indices, binned.indptr), binned.shape)
    position = np.asarray(places[bucket, value_bin]).ravel().astype(np.int64) - 1
    alike = np.repeat(fitted.alike.of_row, np.diff(secret.offsets))
    width = np.diff(binned.indptr)[group[fitted.alike.first]]
    first = np.cumsum(width) - width
    share = people[bucket] / binned.data[position]
    entry = first[alike] + position - binned.indptr[bucket]
    weight: FloatArray = fitted.weight[entry] * secret.weight * share / fitted.size[alike]
    return weight


def _of_permuted(release: PublishedRecords, secret: Secret, part: PublishedPart, bins: _Bins) -> FloatArray:
    """Persons of each bin that have each value, for a column that was permuted separately from the values."""
    if release.start is None:
        raise TypeError("not sliced")
    bucket = np.repeat(np.arange(len(release.size)), np.diff(release.start))
    values = secret.by_voter
    if secret.part >= 0:
        rows = np.arange(len(bucket))
        values = sparse.csr_matrix((np.ones(len(rows)), (bucket, rows)), (len(release.size), len(rows))) @ values
        values.sort_indices()
    return _fitted(part, bins, bucket, np.ones(len(bucket)), values).counts


@dataclass(frozen=True)
class _Fitted:
    """What `spread_values` found: rows of a bucket that lie in the same bins are one, and `size` rows strong."""

    alike: Keys
    size: FloatArray
    counts: FloatArray
    weight: FloatArray


def _fitted(part: PublishedPart, bins: _Bins, bucket: IntArray, size: FloatArray, values: sparse.csr_matrix) -> _Fitted:
    """Fit the model; `values` is how often each bucket shows each value, shape (buckets, domain)."""
    places = np.stack([bins.of_cell[a][part.cells[k]] for k, a in enumerate(part.columns)])
    alike = keys_of([bucket, *places])  # numbered bucket by bucket
    start = offsets_of(bucket[alike.first], values.shape[0])
    together = np.bincount(alike.of_row, weights=size).astype(np.float64)
    offsets = values.indptr.astype(np.int64)
    counts = np.zeros((len(bins.marginal), values.shape[1]))
    weight = np.zeros(int((np.diff(start) * np.diff(offsets)).sum()))
    spread_values(
        np.ascontiguousarray(places[:, alike.first]), together, start, offsets, values.indices.astype(np.int64),
        values.data, bins.marginal, STRENGTH, ROUNDS, PASSES, counts, np.zeros(values.shape[1]), weight, stop_flag(),
    )  # fmt: skip
    return _Fitted(alike, together, counts, weight)


DEFINETTI = Attacker(
    "definetti",
    "likelihood, with the values of a class weighted by naive Bayes trained on the release",
    scoring,
    order=9,
)
CLASS_MEMBERSHIP = Attacker(
    "told",
    "definetti or likelihood, with knowledge of the class or bucket of the target's record",
    class_membership,
    outsider=False,
    order=10,
)
