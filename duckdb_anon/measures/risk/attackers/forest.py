"""The deFinetti attacker with random forests in place of naive Bayes, for releases that show counts of buckets.

Naive Bayes takes the quasi-identifiers as independent for each sensitive value; a forest does not. Labels are what
`definetti` says, then what the last round says: each record's label is drawn from its chances. A forest learns on the
records of half of the buckets and is asked of those of the other half, so that it cannot repeat the labels it learnt;
what it says is fitted to the counts of each bucket (Sinkhorn and Knopp 1967). Log chances of the last rounds, and those
of naive Bayes, are averaged. Source: Kifer (2009), section 5; Breiman (2001), Random forests; cross-fitting:
Chernozhukov et al. (2018). Cost: `ROUNDS` times two forests of `TREES` trees on `MOST_ROWS` records at most.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.risk.attackers.definetti import Fitted, bucket_model
from duckdb_anon.measures.risk.attackers.record_linkage import likelihood
from duckdb_anon.measures.risk.attacks import Attacker, NotApplicable, Scoring
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.progress import tick

ROUNDS, AVERAGED = 8, 5
TREES, LEAF, MOST_ROWS = 48, 3, 20_000
PASSES = 30
_LEAST = 1e-4
"""Least chance of a value, which no tree has seen of a record's like."""


def scoring(release: PublishedRecords) -> Scoring:
    """As likelihood, with the values of each bucket weighted by forests."""
    if not any(secret.mixed for secret in release.secrets):
        raise NotApplicable("This attacker needs buckets that show counts of their sensitive values")
    if find_spec("sklearn") is None:
        raise NotApplicable("This attacker needs scikit-learn. Run pip install 'duckdb-anon[ml]'")
    carried = [bucket_model(release, secret, reweighed if secret.mixed else None) for secret in release.secrets]
    return replace(likelihood(release), carried=carried)


def reweighed(fitted: Fitted) -> FloatArray:
    """Records of each row that have each value of its bucket, by forests that start from naive Bayes."""
    row, code, cell, count = fitted.entries()
    features, rng = np.ascontiguousarray(fitted.places.T), np.random.default_rng(0)
    alike = keys_of(list(fitted.places))
    weight, summed = fitted.weight, np.zeros(len(row))
    for step in range(ROUNDS):
        label = _drawn(row, code, weight, rng)
        half = rng.permutation(int(fitted.bucket.max()) + 1)[fitted.bucket] % 2
        said = np.empty(len(row))
        for side in (0, 1):
            tick()
            asked = half[row] == side
            learnt = np.flatnonzero(half != side)
            chance = np.ones((len(alike.first), int(code.max()) + 1))
            if len(learnt):  # a single bucket leaves no other half
                _learn(chance, features, label, fitted.size, learnt, alike.first, rng)
            said[asked] = chance[alike.of_row[row[asked]], code[asked]]
        logs = np.log(np.maximum(said, _LEAST))
        summed += logs * (step >= ROUNDS - AVERAGED)
        weight = _to_counts(np.exp(logs), row, cell, fitted.size, count)
    bayes = np.log(np.maximum(fitted.weight / fitted.size[row], _LEAST))
    return _to_counts(np.exp((summed / AVERAGED + bayes) / 2), row, cell, fitted.size, count)


def _drawn(row: IntArray, code: IntArray, weight: FloatArray, rng: np.random.Generator) -> IntArray:
    """A value of each row, drawn in proportion to the weights of its entries."""
    chance = np.cumsum(weight)
    end = np.append(np.flatnonzero(np.diff(row)), len(row) - 1)
    low = np.append(0.0, chance[end[:-1]])
    point = low + rng.random(len(end)) * (chance[end] - low)
    return np.asarray(code[np.minimum(np.searchsorted(chance, point, side="right"), end)])


def _learn(
    chance: FloatArray, features: IntArray, label: IntArray, size: FloatArray, rows: IntArray, asked: IntArray,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """Write the chances of all values for the asked rows, by a forest on `MOST_ROWS` of the others."""
    from sklearn.ensemble import RandomForestClassifier

    rows = rng.permutation(rows)[:MOST_ROWS]
    forest = RandomForestClassifier(TREES, min_samples_leaf=LEAF, random_state=int(rng.integers(2**31)), n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it takes many values on few records for numbers
        forest.fit(features[rows], label[rows], sample_weight=size[rows])
    chance[:] = 0
    chance[:, forest.classes_] = forest.predict_proba(features[asked])


def _to_counts(chance: FloatArray, row: IntArray, cell: IntArray, size: FloatArray, count: FloatArray) -> FloatArray:
    """Scale chances so that rows have their sizes and the values of each bucket their counts."""
    for _ in range(PASSES):
        chance = chance * (count / np.maximum(np.bincount(cell, chance, len(count)), 1e-300))[cell]
        chance *= (size / np.maximum(np.bincount(row, chance, len(size)), 1e-300))[row]
    return chance


FOREST = Attacker(
    "forest", "likelihood, with the values of a bucket weighted by random forests trained on the release", scoring,
    order=10,
)  # fmt: skip
