"""The loops behind `sse`: one group after the other is cut where the squared error falls most.

Rows of a group stand together in memory, and a cut puts those of its left part first. The gain of a cut needs the
features of its two parts only as sums, which change by the few features of a row when the row changes sides: with n
rows, m of them and the sum L on the left and S in all, n_l n_r / n |mean_l - mean_r|^2 is
(n^2 |L|^2 - 2 n m L.S + m^2 |S|^2) / (n m (n - m)). Cost: rows times attributes times features of a row, a level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.compiled import compiled

Array = NDArray[Any]
_UP_TO, _ONE, _FREQUENT = 0, 1, 2


@compiled
def cut_all(
    codes: Array, first_code: Array, start: Array, feature: Array, value: Array, features: int, most: int,
    nominal: Array, several: Array, part: Array, limit: Array, once: Array, least: int, sample: int,
    stop: Array,
) -> Array:  # fmt: skip
    """Cut rows into groups.

    Args:
        codes: code of each row and attribute, the codes of all attributes numbered through, shape (n, attributes);
            comes out in the order of the groups.
        first_code: number of the first code of each attribute, see `features.Features`.
        start: where the entries of each code start.
        feature: feature of each entry.
        value: value of each entry.
        features: number of features.
        most: most entries a row has.
        nominal: whether each attribute's codes stand in no order.
        several: code of each row and diversity, the codes of all diversities numbered through; like `codes`.
        part: part of each of these codes.
        limit: numerator and denominator of the l of each of these codes, shape (codes, 2).
        once: what of a row counts once in a part, for its code and its code's part, see `sse._Numbered`; like `codes`.
        least: fewest rows of a group.
        sample: rows a cut is chosen by, at most.
        stop: not 0 once the work is to stop.

    Returns:
        Group of each row, shape (n,).
    """
    n, d = codes.shape
    group = np.empty(n, dtype=np.int64)
    groups = 0
    rows = np.empty(n, dtype=np.int32)
    for i in range(n):
        rows[i] = i
    spare = np.empty((n, 1 + d + several.shape[1] + once.shape[1]), dtype=np.int32)
    # all of these hold zeros between uses
    sums = np.zeros(features)
    left_sums = np.zeros(features)
    left_code = np.zeros(first_code[d], dtype=np.int64)
    counts = np.zeros((2, len(part)), dtype=np.int64)
    parts = np.zeros((2, len(part)), dtype=np.int64)
    ids = 0
    for s in range(once.shape[1]):
        for i in range(n):
            ids = max(ids, once[i, s] + 1)
    # the last check that met each of them on each side; the last place numbers the checks
    seen = np.zeros((2, ids + 1), dtype=np.int64)
    starts = np.empty(n // least + 2, dtype=np.int64)
    starts[0], starts[1] = n, 0
    waiting = 1
    while waiting > 0 and stop[0] == 0:
        lo, hi = starts[waiting], starts[waiting - 1]
        middle = -1
        if hi - lo >= 2 * least:
            middle = _cut_one(
                rows, lo, hi, spare, codes, first_code, start, feature, value, most, nominal, several, part, limit,
                once, least, sample, sums, left_sums, left_code, counts, parts, seen,
            )  # fmt: skip
        if middle < 0:
            for i in range(lo, hi):
                group[rows[i]] = groups
            groups += 1
            waiting -= 1
        else:
            starts[waiting] = middle
            waiting += 1
            starts[waiting] = lo
    return group


@compiled
def _cut_one(
    rows: Array, lo: int, hi: int, spare: Array, codes: Array, first_code: Array, start: Array, feature: Array,
    value: Array, most: int, nominal: Array, several: Array, part: Array, limit: Array, once: Array, least: int,
    sample: int, sums: Array, left_sums: Array, left_code: Array, counts: Array, parts: Array, seen: Array,
) -> int:  # fmt: skip
    """Put the rows of the best allowed cut's left part first; return where the right part starts, -1 for no cut."""
    m = hi - lo
    size = min(m, sample)
    while True:
        chosen = np.empty(size, dtype=np.int64)
        for i in range(size):
            chosen[i] = lo + i * m // size
        gain, cut, cuts = candidates_of(chosen, m, codes, start, feature, value, most, nominal, least, sums, left_sums)
        while True:
            best = -1
            for k in range(cuts):
                if gain[k] > 0.0 and (best < 0 or gain[k] > gain[best]):
                    best = k
            if best < 0:
                break
            gain[best] = 0.0
            a = cut[best, 0]
            for c in range(first_code[a], first_code[a + 1]):
                left_code[c] = 0
            mark(chosen, codes, a, cut[best, 1], cut[best, 2], first_code[a], first_code[a + 1], left_code)
            left = 0
            for i in range(lo, hi):
                left += left_code[codes[i, a]]
            allowed = left >= least and m - left >= least
            if allowed and _diverse(lo, hi, codes, a, left_code, several, part, limit, once, counts, parts, seen):
                return _split(rows, codes, several, once, lo, hi, spare, a, left_code)
        if size == m:
            return -1
        size = m


@compiled
def candidates_of(
    chosen: Array, m: int, codes: Array, start: Array, feature: Array, value: Array, most: int, nominal: Array,
    least: int, sums: Array, left_sums: Array,
) -> tuple[Array, Array, int]:  # fmt: skip
    """Gain of every cut of some rows; its attribute, how it cuts (`_UP_TO`, ...) and its code or number of codes.

    Args:
        chosen: the rows it is chosen by.
        m: rows of the group.
        codes: see `cut_all`.
        start: see `cut_all`.
        feature: see `cut_all`.
        value: see `cut_all`.
        most: see `cut_all`.
        nominal: see `cut_all`.
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
                    for place in range(first[r], first[r + 1]):
                        i = order[place]
                        for e in range(entries[i]):
                            left_sums[entry_feature[i, e]] = 0.0
                    left, square, along = 0, 0.0, 0.0
            if way != _ONE:
                for i in range(size):
                    for e in range(entries[i]):
                        left_sums[entry_feature[i, e]] = 0.0
    return gain, cut, cuts


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
        codes: see `cut_all`.
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


@compiled
def _diverse(
    lo: int, hi: int, codes: Array, a: int, left_code: Array, several: Array, part: Array, limit: Array, once: Array,
    counts: Array, parts: Array, seen: Array,
) -> bool:  # fmt: skip
    """Whether the rows of both sides satisfy every diversity; `counts` and `parts` hold a row a side."""
    held, persons, last = True, once.shape[1] > 0, seen.shape[1] - 1
    for s in range(several.shape[1]):
        seen[0, last] += 1
        check = seen[0, last]
        for i in range(lo, hi):
            side, code = left_code[codes[i, a]], several[i, s]
            own = once[i, 2 * s] if persons else np.int32(-1)
            if own < 0 or seen[side, own] != check:
                counts[side, code] += 1
                if own >= 0:
                    seen[side, own] = check
            own = once[i, 2 * s + 1] if persons else np.int32(-1)
            if own < 0 or seen[side, own] != check:
                parts[side, part[code]] += 1
                if own >= 0:
                    seen[side, own] = check
        for i in range(lo, hi):
            side, code = left_code[codes[i, a]], several[i, s]
            if counts[side, code] * limit[code, 0] > parts[side, part[code]] * limit[code, 1]:
                held = False
                break
        for i in range(lo, hi):
            code = several[i, s]
            for side in range(2):
                counts[side, code] = 0
                parts[side, part[code]] = 0
        if not held:
            break
    return held


@compiled
def _split(
    rows: Array, codes: Array, several: Array, once: Array, lo: int, hi: int, spare: Array, a: int, left_code: Array
) -> int:  # fmt: skip
    """Left rows first, both parts in their old order; return where the right part starts."""
    d, many, more = codes.shape[1], several.shape[1], once.shape[1]
    middle, right = lo, 0
    for i in range(lo, hi):
        if left_code[codes[i, a]] == 1:
            rows[middle] = rows[i]
            for q in range(d):
                codes[middle, q] = codes[i, q]
            for s in range(many):
                several[middle, s] = several[i, s]
            for s in range(more):
                once[middle, s] = once[i, s]
            middle += 1
        else:
            spare[right, 0] = rows[i]
            for q in range(d):
                spare[right, 1 + q] = codes[i, q]
            for s in range(many):
                spare[right, 1 + d + s] = several[i, s]
            for s in range(more):
                spare[right, 1 + d + many + s] = once[i, s]
            right += 1
    for i in range(right):
        rows[middle + i] = spare[i, 0]
        for q in range(d):
            codes[middle + i, q] = spare[i, 1 + q]
        for s in range(many):
            several[middle + i, s] = spare[i, 1 + d + s]
        for s in range(more):
            once[middle + i, s] = spare[i, 1 + d + many + s]
    return middle
