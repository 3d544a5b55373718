"""deFinetti attack: which sensitive value of a bucket belongs to which of its rows. Arrays in, arrays out.

Source: Kifer (2009), Attacks on privacy and deFinetti's theorem, sections 4 and 5. A naive Bayes model of the values is
fitted by expectation maximization: the values of each bucket are spread over its rows in proportion to the model, rows
and values keeping their numbers (Sinkhorn and Knopp 1967), then the model is counted again. Cost a round: rows times
values of their bucket times (columns plus passes).
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.jit import compiled_with_arrays
from duckdb_anon.model.coded_table import FloatArray, IntArray


@compiled_with_arrays
def spread_values(
    bins: IntArray, size: FloatArray, start: IntArray, offsets: IntArray, code: IntArray, count: FloatArray,
    marginal: FloatArray, strength: float, rounds: int, passes: int, values: int, stop: IntArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Fit the model and spread the values of every bucket over its rows.

    Args:
        bins: bin of each row in each column, counted over all columns, shape (columns, rows); rows stand bucket by
            bucket.
        size: how many persons each row stands for, shape (rows,); the same comes out where rows of the same bucket and
            bins are put together.
        start: first row of each bucket and the number of rows, shape (buckets + 1,).
        offsets: bucket b holds the values code[offsets[b]:offsets[b + 1]], shape (buckets + 1,).
        code: sensitive codes, each once a bucket.
        count: how many persons of the bucket have each of them; adds up to the sizes of its rows.
        marginal: share of each bin in its column, shape (bins of all columns,).
        strength: persons that each conditional distribution is smoothed with, drawn as `marginal` says.
        rounds: rounds of expectation maximization.
        passes: passes of scaling rows and values, each round.
        values: number of sensitive codes.

    Returns:
        Persons of each bin that have each value, shape (bins of all columns, values), and persons of each row that have
        each value of its bucket: row after row, one entry a value of the bucket.
    """
    columns = bins.shape[0]
    buckets = len(start) - 1
    most, entries = 0, 0
    for b in range(buckets):
        most = max(most, offsets[b + 1] - offsets[b])
        entries += (start[b + 1] - start[b]) * (offsets[b + 1] - offsets[b])
    persons_with_value, prior, weight = np.zeros((len(marginal), values)), np.zeros(values), np.empty(entries)
    fitted, scale = np.empty(most), np.empty(most)
    smooth, surprise = strength * marginal, 1.0 / marginal
    at = 0
    for b in range(buckets):
        total = 0.0
        for e in range(offsets[b], offsets[b + 1]):
            total += count[e]
        for j in range(start[b], start[b + 1]):
            for e in range(offsets[b], offsets[b + 1]):
                weight[at] = size[j] * count[e] / total
                at += 1
    for step in range(rounds + 1):
        persons_with_value[:] = 0.0
        prior[:] = 0.0
        at = 0
        for b in range(buckets):
            for j in range(start[b], start[b + 1]):
                for e in range(offsets[b], offsets[b + 1]):
                    prior[code[e]] += weight[at]
                    for a in range(columns):
                        persons_with_value[bins[a, j], code[e]] += weight[at]
                    at += 1
        if step == rounds:
            break
        share = 1.0 / (prior + strength)
        first = 0
        for b in range(buckets):
            if stop[0] != 0:
                return persons_with_value, weight
            rows, width = start[b + 1] - start[b], offsets[b + 1] - offsets[b]
            fitted[:width] = 0.0
            for r in range(rows):
                j, best = start[b] + r, 0.0
                row_weights = weight[first + r * width : first + (r + 1) * width]
                for v in range(width):
                    s, fit = code[offsets[b] + v], 1.0
                    for a in range(columns):
                        i = bins[a, j]
                        fit *= (persons_with_value[i, s] + smooth[i]) * (surprise[i] * share[s])
                    row_weights[v] = fit
                    best = max(best, fit)
                for v in range(width):
                    row_weights[v] *= size[j] / best
                    fitted[v] += row_weights[v]
            # columns are scaled while rows are summed, and summed while rows are scaled
            for _ in range(passes):
                if stop[0] != 0:
                    return persons_with_value, weight
                for v in range(width):
                    scale[v] = count[offsets[b] + v] / fitted[v] if fitted[v] > 0 else 0.0
                    fitted[v] = 0.0
                off = 0.0
                for r in range(rows):
                    row_weights = weight[first + r * width : first + (r + 1) * width]
                    total = 0.0
                    for v in range(width):
                        row_weights[v] *= scale[v]
                        total += row_weights[v]
                    people = size[start[b] + r]
                    off = max(off, abs(total / people - 1.0))
                    ratio = people / total if total > 0 else 0.0
                    for v in range(width):
                        row_weights[v] *= ratio
                        fitted[v] += row_weights[v]
                if off < 1e-6:
                    break
            first += rows * width
    return persons_with_value, weight
