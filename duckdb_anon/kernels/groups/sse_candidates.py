"""Candidates of `sse`: every way to cut some rows in two by one attribute, with what each would gain.

The gain of a cut needs the features of its two parts only as sums, which change by the few features of a row when the
row changes sides: with n rows, m of them and the sum L on the left and S in all, n_l n_r / n |mean_l - mean_r|^2 is
(n^2 |L|^2 - 2 n m L.S + m^2 |S|^2) / (n m (n - m)). Cost: rows times attributes times features of a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.compiled import compiled

Array = NDArray[Any]
_UP_TO, _ONE, _FREQUENT = 0, 1, 2


@compiled
def candidates_of(
    chosen: Array, m: int, codes: Array, start: Array, feature: Array, value: Array, most: int, nominal: Array,
    least: int, sums: Array, left_sums: Array,
) -> tuple[Array, Array, int]:  # fmt: skip
    """Gain of every cut of some rows; its attribute, how it cuts (`_UP_TO`, ...) and its code or number of codes.

    Args:
        chosen: the rows it is chosen by.
        m: rows of the group.
        codes: see `sse_cuts.cut_piece`.
        start: see `sse_cuts.cut_piece`.
        feature: see `sse_cuts.cut_piece`.
        value: see `sse_cuts.cut_piece`.
        most: see `sse_cuts.cut_piece`.
        nominal: see `sse_cuts.cut_piece`.
        least: fewest rows of a part.
        sums: zeros, one a feature.
        left_sums: zeros, one a feature.
    """
    size, d = len(chosen), codes.shape[1]
    entry_feature = np.empty((size, most), dtype=np.int64)
    entry_value = np.empty((size, most))
    entries = np.empty(size, dtype=np.int64)
    total = 0.0
    for i in range(size):
        e = 0
        for a in range(d):
            c = codes[chosen[i], a]
            for j in range(start[c], start[c + 1]):
                f, v = feature[j], value[j]
                entry_feature[i, e] = f
                entry_value[i, e] = v
                total += v * (2 * sums[f] + v)
                sums[f] += v
                e += 1
        entries[i] = e
    toward = np.zeros(size)
    for i in range(size):
        for e in range(entries[i]):
            toward[i] += entry_value[i, e] * sums[entry_feature[i, e]]
    for i in range(size):
        for e in range(entries[i]):
            sums[entry_feature[i, e]] = 0.0
    gain = np.empty(2 * d * size)
    cut = np.empty((2 * d * size, 3), dtype=np.int64)
    cuts = 0
    key = np.empty(size, dtype=np.int64)
    order = np.empty(size, dtype=np.int64)
    first = np.empty(size + 1, dtype=np.int64)
    run = np.empty(size, dtype=np.int64)
    tally = np.empty(4 * size + 1, dtype=np.int64)
    for a in range(d):
        lowest = highest = codes[chosen[0], a]
        for i in range(size):
            key[i] = codes[chosen[i], a]
            lowest = min(lowest, key[i])
            highest = max(highest, key[i])
        if lowest == highest:
            continue
        _order(key, lowest, highest, tally, order)
        runs = 0
        for place in range(size):
            if place == 0 or key[order[place]] != key[order[place - 1]]:
                first[runs] = place
                run[runs] = runs
                runs += 1
        first[runs] = size
        # ordered: runs one after the other; nominal: each alone, then, of four or more, one after the other by size
        for way in range(3):
            if (way == _UP_TO) == nominal[a] or (way == _FREQUENT and runs < 4):
                continue
            if way == _FREQUENT:
                for r in range(runs):
                    run[r] = (first[r] - first[r + 1]) * np.int64(size) + r
                _sort(run, runs)
                for r in range(runs):
                    run[r] = run[r] % size
            left, square, along = 0, 0.0, 0.0
            for t in range(runs - 1 if way != _ONE or runs == 2 else runs):
                r = run[t]
                for place in range(first[r], first[r + 1]):
                    i = order[place]
                    for e in range(entries[i]):
                        f, v = entry_feature[i, e], entry_value[i, e]
                        square += v * (2 * left_sums[f] + v)
                        left_sums[f] += v
                    along += toward[i]
                left += first[r + 1] - first[r]
                if left * m >= least * size and (size - left) * m >= least * size:
                    # n_l n_r / n |mean_l - mean_r|^2 from |sum_l|^2, sum_l . sum and |sum|^2
                    apart = size * (size * square - 2.0 * left * along) + 1.0 * left * left * total
                    gain[cuts] = apart / (1.0 * size * left * (size - left))
                    cut[cuts, 0] = a
                    cut[cuts, 1] = way
                    cut[cuts, 2] = t + 1 if way == _FREQUENT else key[order[first[r]]]
                    cuts += 1
                if way == _ONE:
                    _clear(left_sums, order, first[r], first[r + 1], entries, entry_feature)
                    left, square, along = 0, 0.0, 0.0
            if way != _ONE:
                _clear(left_sums, order, 0, size, entries, entry_feature)
    return gain, cut, cuts


@compiled
def _clear(sums: Array, order: Array, low: int, high: int, entries: Array, entry_feature: Array) -> None:
    """Put back to 0 the sums of the features of the rows at places low .. high - 1."""
    if len(sums) <= 2 * (high - low):
        for f in range(len(sums)):
            sums[f] = 0.0
        return
    for place in range(low, high):
        i = order[place]
        for e in range(entries[i]):
            sums[entry_feature[i, e]] = 0.0


@compiled
def _order(key: Array, lowest: int, highest: int, tally: Array, order: Array) -> None:
    """Put the places of `key`, which lies in lowest .. highest, into `order` by key and place."""
    size = len(key)
    span = np.int64(highest) - lowest + 1
    if span < len(tally):
        for c in range(span + 1):
            tally[c] = 0
        for i in range(size):
            tally[key[i] - lowest + 1] += 1
        for c in range(span):
            tally[c + 1] += tally[c]
        for i in range(size):
            order[tally[key[i] - lowest]] = i
            tally[key[i] - lowest] += 1
        return
    for i in range(size):
        order[i] = key[i] * size + i
    _sort(order, size)
    for i in range(size):
        order[i] %= size


@compiled
def _sort(key: Array, size: int) -> None:
    """Sort the first numbers (Shell's method: little to compile, and groups are small)."""
    gap = 1
    while gap < size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            moved, j = key[i], i
            while j >= gap and key[j - gap] > moved:
                key[j] = key[j - gap]
                j -= gap
            key[j] = moved
        gap //= 3


@compiled
def mark(chosen: Array, codes: Array, a: int, way: int, argument: int, first: int, last: int, left_code: Array) -> None:
    """Set to 1 what a cut of attribute `a` puts into its left part, of the codes first .. last - 1.

    Args:
        chosen: the rows it was chosen by.
        codes: see `sse_cuts.cut_piece`.
        a: the attribute.
        way: how it cuts.
        argument: its code, or number of codes.
        first: first code of the attribute.
        last: end of its codes.
        left_code: filled in.
    """
    if way == _UP_TO:
        for c in range(first, argument + 1):
            left_code[c] = 1
    elif way == _ONE:
        left_code[argument] = 1
    else:
        many = last - first
        key = np.zeros(many, dtype=np.int64)
        for row in chosen:
            key[codes[row, a] - first] -= many
        for c in range(many):
            key[c] += c
        _sort(key, many)
        for t in range(argument):
            left_code[first + key[t] % many] = 1
