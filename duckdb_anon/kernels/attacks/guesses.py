"""Guesses of a sensitive value by naive Bayes, each without the person guessed about: arrays in, arrays out.

Cost: targets times sensitive values times columns.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.compiled import compiled
from duckdb_anon.model.reading import BoolArray
from duckdb_anon.model.table import FloatArray, IntArray

TIE = 1e-9


@compiled
def naive_bayes_guesses(
    bins: IntArray,
    known: BoolArray,
    held: FloatArray,
    marginal: FloatArray,
    prior: FloatArray,
    own: FloatArray,
    own_bins: FloatArray,
    truth: IntArray,
    strength: float,
    out: FloatArray,
    stop: IntArray,
) -> None:
    """Chance that the likeliest sensitive value is the target's, by a model that never saw her row.

    Args:
        bins: bin of each known value, counted over all columns, shape (targets, columns).
        known: columns the guesser knows, shape (targets, columns).
        held: rows of each bin that hold each value, shape (bins of all columns, values).
        marginal: share of each bin in its column, shape (bins of all columns,).
        prior: rows that hold each value, shape (values,).
        own: what each target's own row adds to `prior`, shape (targets, values of the model as one hot or shares).
        own_bins: how much of her own row lies in the bin of her value, shape (targets, columns).
        truth: her value, -1 for one the model leaves out, shape (targets,).
        strength: rows that each conditional distribution is smoothed with, drawn as `marginal` says.
        out: shape (targets,).
        stop: not 0 once the work is to stop.
    """
    values = len(prior)
    for t in range(bins.shape[0]):
        if stop[0] != 0:
            return
        best, ties, hit = -np.inf, 0, False
        for s in range(values):
            rows = prior[s] - own[t, s]
            if rows <= 1e-9:
                continue
            score = np.log(rows)
            for a in range(bins.shape[1]):
                if known[t, a]:
                    b = bins[t, a]
                    seen = max(held[b, s] - own[t, s] * own_bins[t, a], 0.0)
                    score += np.log((seen + strength * marginal[b]) / (rows + strength))
            if score > best + TIE:
                best, ties, hit = score, 1, s == truth[t]
            elif score >= best - TIE:
                ties += 1
                hit = hit or s == truth[t]
        out[t] = 1.0 / ties if hit else 0.0
