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

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy

from duckdb_anon.kernels.attacks.definetti import spread_values
from duckdb_anon.kernels.partition.sort_count import offsets_of, ranges
from duckdb_anon.kernels.row_keys import Keys, keys_of
from duckdb_anon.measures.risk.attackers.record_linkage import likelihood
from duckdb_anon.measures.risk.attacks import Attacker, NotApplicable, Scoring, Tilt
from duckdb_anon.measures.risk.baseline_inference import Bins, bins_of
from duckdb_anon.measures.risk.linkage_view import PublishedPart, PublishedRecords, once_per_release
from duckdb_anon.measures.risk.sensitive_attributes import Secret
from duckdb_anon.measures.risk.targets import Targets
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
    carried, tilts = zip(*_models(release), strict=True)
    return replace(likelihood(release), carried=carried, tilts=tilts)


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


@once_per_release
def _models(release: PublishedRecords) -> list[tuple[scipy.sparse.csr_matrix, Tilt | None]]:
    """For each secret what voters carry of each value, and a factor by target and value."""
    return [_model(release, secret, bins_of(release)) for secret in release.secrets]


def _model(release: PublishedRecords, secret: Secret, bins: Bins) -> tuple[scipy.sparse.csr_matrix, Tilt | None]:
    if len(bins.marginal) * secret.domain > MOST_CELLS:
        raise NotApplicable(f"'{secret.name}' has {secret.domain} values, too many for a model of each")
    if secret.mixed:
        return bucket_model(release, secret), None
    counts = np.zeros((len(bins.marginal), secret.domain))
    for k, part in enumerate(release.parts):
        if release.start is not None and k != secret.part:
            counts += _of_permuted(release, secret, part, bins)
            continue
        for a in part.columns:
            some = slice(bins.first[a], bins.first[a + 1])
            counts[some] = (bins.spread[a].T @ release.values_of_cells(secret, a)).toarray()
    table = bins.log_ratio(counts, secret.rows_of_code) - np.log(bins.marginal)[:, None]

    def tilt(some: Targets) -> FloatArray:
        total = bins.sums(table, some.values, some.known)
        factor: FloatArray = np.exp(total - total.max(axis=1, keepdims=True))
        return factor

    return secret.by_voter, tilt


@dataclass(frozen=True)
class Fitted:
    """What a model says of the values in buckets."""

    counts: FloatArray  # records of each bin of a quasi-identifier that have each value, shape (bins, values)
    weight: FloatArray  # records of each row that have each value of its bucket, row after row
    alike: Keys  # rows of a bucket that lie in the same bins, which are one row here
    size: FloatArray  # records of each of them
    places: IntArray  # their bins, shape (columns, rows)
    bucket: IntArray  # their buckets
    values: scipy.sparse.csr_matrix  # how often each bucket shows each value, shape (buckets, values)

    def entries(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """For each of the weights its row, value, and place among `values`; and how often each place is shown."""
        width = np.diff(self.values.indptr)[self.bucket]
        row = np.repeat(np.arange(len(self.bucket)), width)
        cell = ranges(self.values.indptr[self.bucket], width)
        return row, self.values.indices[cell], cell, self.values.data


def bucket_model(
    release: PublishedRecords, secret: Secret, reweighed: Callable[[Fitted], FloatArray] | None = None
) -> scipy.sparse.csr_matrix:
    """What rows carry that show the counts of their bucket: fitted, in place of even shares.

    `reweighed`: what to make of the weights that naive Bayes gives.
    """
    part, group, bins = release.parts[0], release.group_of_unit, bins_of(release)
    if group is None:
        raise TypeError("no buckets")
    _, unit = np.unique(group, return_index=True)  # every unit of a bucket shows the same values
    people = np.bincount(group, weights=release.size)
    shown = secret.by_voter
    values = shown[unit]
    values.data *= np.repeat(people / release.size[unit], np.diff(values.indptr))
    bin_of_value = secret.bins()
    to_bin = scipy.sparse.csr_matrix((np.ones(secret.domain), (np.arange(secret.domain), bin_of_value)))
    binned = scipy.sparse.csr_matrix(values @ to_bin)
    binned.sort_indices()
    found = _fitted(part, bins, group, release.size, binned)
    weights = found.weight if reweighed is None else reweighed(found)
    # values of one bin share what is theirs by their counts, those who look alike by their sizes
    values_of_unit = np.diff(shown.indptr)
    bucket, value_bin = np.repeat(group, values_of_unit), bin_of_value[shown.indices]
    # the place of each entry among the entries of a matrix, from 1
    places = scipy.sparse.csr_matrix((np.arange(1, binned.nnz + 1.0), binned.indices, binned.indptr), binned.shape)
    position = np.asarray(places[bucket, value_bin]).ravel().astype(np.int64) - 1
    alike = np.repeat(found.alike.of_row, values_of_unit)
    width = np.diff(binned.indptr)[found.bucket]
    first = np.cumsum(width) - width
    share = people[bucket] / binned.data[position]
    entry = first[alike] + position - binned.indptr[bucket]
    weight = weights[entry] * shown.data * share / found.size[alike]
    return scipy.sparse.csr_matrix((weight, shown.indices, shown.indptr), shown.shape)


def _of_permuted(release: PublishedRecords, secret: Secret, part: PublishedPart, bins: Bins) -> FloatArray:
    """Persons of each bin that have each value, for a column that was permuted separately from the values."""
    if release.start is None:
        raise TypeError("not sliced")
    bucket = np.repeat(np.arange(len(release.size)), np.diff(release.start))
    values = secret.by_voter
    if secret.part >= 0:
        rows = np.arange(len(bucket))
        values = scipy.sparse.csr_matrix((np.ones(len(rows)), (bucket, rows)), (len(release.size), len(rows))) @ values
        values.sort_indices()
    return _fitted(part, bins, bucket, np.ones(len(bucket)), values).counts


def _fitted(
    part: PublishedPart, bins: Bins, bucket: IntArray, size: FloatArray, values: scipy.sparse.csr_matrix
) -> Fitted:
    """What `spread_values` finds.

    `values`: how often each bucket shows each value, shape (buckets, domain).
    """
    places = np.stack(
        [  # the bin in which most of each cell lies
            np.asarray(bins.spread[a].argmax(axis=1)).ravel()[part.cell_of_voter(a)] + bins.first[a]
            for a in part.columns
        ]
    )
    alike = keys_of([bucket, *places])  # numbered bucket by bucket
    start = offsets_of(bucket[alike.first], values.shape[0])
    together = np.bincount(alike.of_row, weights=size).astype(np.float64)
    offsets = values.indptr.astype(np.int64)
    counts, weight = spread_values(
        np.ascontiguousarray(places[:, alike.first]), together, start, offsets, values.indices.astype(np.int64),
        values.data, bins.marginal, STRENGTH, ROUNDS, PASSES, values.shape[1], stop_flag(),
    )  # fmt: skip
    own = np.ascontiguousarray(places[:, alike.first])
    return Fitted(counts, weight, alike, together, own, bucket[alike.first], values)


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
    order=11,
)
