"""Inference of a sensitive value by naive Bayes, each target left out of the model: arrays in, arrays out.

Cost: targets times sensitive values times columns, and a logarithm for each known bin and value.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.release_table import BoolArray

TIE = 1e-9
NO_ROWS = 1e-9
"""Fewer rows than this are rounding errors."""


@compiled
def naive_bayes_guesses(
    start: IntArray,
    bins: IntArray,
    known: BoolArray,
    rows_with_value: FloatArray,
    marginal: FloatArray,
    prior: FloatArray,
    own_start: IntArray,
    own_counts: FloatArray,
    inside: FloatArray,
    truth_start: IntArray,
    truth: IntArray,
    excluded_start: IntArray,
    excluded: IntArray,
    strength: float,
    out: FloatArray,
    stop: IntArray,
) -> None:
    """Chance that the likeliest sensitive value is one of the target's, by a model fitted without the target's rows.

    Args:
        start: first record of each target and the number of records, shape (targets + 1,); the posteriors of a
            target's records add up.
        bins: bin of each known value, counted over all columns, shape (records, columns).
        known: columns the adversary knows, shape (records, columns).
        rows_with_value: rows of each bin that hold each value, shape (bins of all columns, values).
        marginal: share of each bin in its column, shape (bins of all columns,).
        prior: rows that hold each value, shape (values,).
        own_start: first own row of each target and their number, shape (targets + 1,).
        own_counts: what each of those rows adds to `prior`, shape (own rows, values).
        inside: how much of each own row lies in the bin of the record's value, for all pairs of a record and an own row
            of each target, records first, shape (pairs, columns).
        truth_start: first value of each target and their number, shape (targets + 1,).
        truth: the targets' own values that are to be found, -1 for one the model leaves out.
        excluded: the targets' own values that are known beforehand, -1 for one the model leaves out.
        strength: rows that each conditional distribution is smoothed with, drawn as `marginal` says.
        out: how many of the likeliest values are the target's, over their number, shape (targets,).
    """
    values, columns = len(prior), bins.shape[1]
    score, total = np.empty(values), np.empty(values)
    # what no own row changes is the same for all targets
    rows_log, prior_log = np.empty(values), np.empty(values)
    for s in range(values):
        rows_log[s] = np.log(prior[s] + strength)
        prior_log[s] = np.log(prior[s]) if prior[s] > NO_ROWS else -np.inf
    seen_log, ready = np.empty(rows_with_value.shape), np.zeros(len(rows_with_value), dtype=np.bool_)
    pair = 0
    for t in range(len(out)):
        if stop[0] != 0:
            return
        rows_own = own_start[t + 1] - own_start[t]
        total[:] = 0.0
        for r in range(start[t], start[t + 1]):
            score[:] = prior_log
            for a in range(columns):
                if known[r, a]:
                    b = bins[r, a]
                    if not ready[b]:
                        for s in range(values):
                            seen_log[b, s] = np.log(rows_with_value[b, s] + strength * marginal[b])
                        ready[b] = True
                    for s in range(values):
                        score[s] += seen_log[b, s] - rows_log[s]
            for s in range(values):
                mine = 0.0
                for e in range(rows_own):
                    mine += own_counts[own_start[t] + e, s]
                if mine == 0.0:
                    continue
                rows = prior[s] - mine
                score[s] = -np.inf
                if rows <= NO_ROWS:
                    continue
                score[s] = np.log(rows)
                for a in range(columns):
                    if known[r, a]:
                        b = bins[r, a]
                        seen = rows_with_value[b, s]
                        for e in range(rows_own):
                            seen -= own_counts[own_start[t] + e, s] * inside[pair + e, a]
                        score[s] += np.log((max(seen, 0.0) + strength * marginal[b]) / (rows + strength))
            best = -np.inf
            for s in range(values):
                best = max(best, score[s])
            pair += rows_own
            if best == -np.inf:
                continue
            total_weight = 0.0
            for s in range(values):
                total_weight += np.exp(score[s] - best)
            for s in range(values):
                total[s] += np.exp(score[s] - best) / total_weight
        for e in range(excluded_start[t], excluded_start[t + 1]):
            if excluded[e] >= 0:
                total[excluded[e]] = 0.0
        most = 0.0
        for s in range(values):
            most = max(most, total[s])
        out[t] = 0.0
        if most == 0.0:
            continue
        ties, hits = 0, 0
        for s in range(values):
            ties += total[s] >= most * (1 - TIE)
        for e in range(truth_start[t], truth_start[t + 1]):
            hits += truth[e] >= 0 and total[truth[e]] >= most * (1 - TIE)
        out[t] = hits / ties
