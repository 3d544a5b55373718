"""Candidates of `sse`: every way to cut some rows in two by one attribute, with what each would gain.

The gain of a cut needs the features of its two parts only as sums, which change by the few features of a row when the
row changes sides: with n rows, m of them and the sum L on the left and S in all, n_l n_r / n |mean_l - mean_r|^2 is
(n^2 |L|^2 - 2 n m L.S + m^2 |S|^2) / (n m (n - m)). Cost: rows times attributes times features of a row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled_in_place
from duckdb_anon.model.coded_table import FloatArray, IntArray

Array = NDArray[Any]
UP_TO_CODE, _ONE, _FREQUENT = 0, 1, 2


class Room(NamedTuple):
    """Working space for one thread: what is known of the rows a cut is chosen by, and the cuts there are.

    Attributes:
        chosen: the rows, given.
        gain: what each cut would gain.
        cut: its attribute, how it cuts (`UP_TO_CODE`, ...) and its code or number of codes, shape (cuts, 3).
        entry_feature: features of each row, shape (rows, entries).
        entry_value: value of each.
        entries: how many entries a row has.
        toward: product of its features with those of all rows.
        key: its code on one attribute.
        order: places of the rows by key.
        first: where each run of equal keys starts.
        run: an order of the runs.
        tally: rows of each key.
    """

    chosen: IntArray
    gain: FloatArray
    cut: IntArray
    entry_feature: IntArray
    entry_value: FloatArray
    entries: IntArray
    toward: FloatArray
    key: IntArray
    order: IntArray
    first: IntArray
    run: IntArray
    tally: IntArray

    @staticmethod
    def of(rows: int, most: int, attributes: int) -> Room:
        """Make space.

        Args:
            rows: rows that a cut is chosen by.
            most: entries of one of them.
            attributes: columns that are cut.
        """
        whole, cuts = np.int64, 2 * attributes * rows
        return Room(
            np.empty(rows, whole), np.empty(cuts), np.empty((cuts, 3), whole), np.empty((rows, most), whole),
            np.empty((rows, most)), np.empty(rows, whole), np.empty(rows), np.empty(rows, whole),
            np.empty(rows, whole), np.empty(rows + 1, whole), np.empty(rows, whole), np.empty(4 * rows + 1, whole),
        )  # fmt: skip


@compiled_in_place
def list_candidates(
    room: Room, size: int, m: int, codes: Array, start: Array, feature: Array, value: Array, nominal: Array,
    least: int, sums: Array, left_sums: Array,
) -> int:  # fmt: skip
    """List every cut of some rows in `room`, with its gain; return how many there are.

    Args:
        room: its `chosen` are the rows a cut is chosen by.
        size: how many these are.
        m: rows of the group.
        codes: see `sse_cuts.cut_piece`.
        start: see `sse_cuts.cut_piece`.
        feature: see `sse_cuts.cut_piece`.
        value: see `sse_cuts.cut_piece`.
        nominal: see `sse_cuts.cut_piece`.
        least: fewest rows of a part.
        sums: zeros, one a feature.
        left_sums: zeros, one a feature.
    """
    chosen, gain, cut, key, order, first, run = (
        room.chosen, room.gain, room.cut, room.key, room.order, room.first, room.run
    )  # fmt: skip
    entry_feature, entry_value, entries, toward = room.entry_feature, room.entry_value, room.entries, room.toward
    d = codes.shape[1]
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
    for i in range(size):
        toward[i] = 0.0
        for e in range(entries[i]):
            toward[i] += entry_value[i, e] * sums[entry_feature[i, e]]
    for i in range(size):
        for e in range(entries[i]):
            sums[entry_feature[i, e]] = 0.0
    cuts = 0
    for a in range(d):
        runs = _runs(room, size, codes, a)
        if runs == 1:
            continue
        # ordered: runs one after the other; nominal: each alone, then, of four or more, one after the other by size
        for way in range(3):
            if (way == UP_TO_CODE) == nominal[a] or (way == _FREQUENT and runs < 4):
                continue
            if way == _FREQUENT:
                _by_size(room, size, runs)
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
    return cuts


@compiled_in_place
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


@compiled_in_place
def _order(key: Array, size: int, lowest: Any, highest: Any, tally: Array, order: Array) -> None:
    """Put the places of the first keys, which lie in lowest .. highest, into `order` by key and place."""
    span = highest - lowest + 1
    if span <= 4 * size:
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


@compiled_in_place
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


@compiled_in_place
def mark(
    room: Room, size: int, codes: Array, lo: int, hi: int, a: int, way: int, argument: int, left_code: Array
) -> None:
    """Set to 1 what a cut of attribute `a` puts into its left part, of the codes of rows lo .. hi - 1, the others to 0.

    Args:
        room: its `chosen` are the rows the cut was chosen by.
        size: how many these are.
        codes: see `sse_cuts.cut_piece`.
        lo: first row of the group.
        hi: end of its rows.
        a: the attribute.
        way: how it cuts.
        argument: its code, or number of codes.
        left_code: filled in.
    """
    # by rows and never by all codes: a group has few of the codes of a column whose values all differ
    for i in range(lo, hi):
        c = codes[i, a]
        left_code[c] = 1 if (way == UP_TO_CODE and c <= argument) or (way == _ONE and c == argument) else 0
    if way == _FREQUENT:
        runs = _runs(room, size, codes, a)
        _by_size(room, size, runs)
        for t in range(argument):
            left_code[room.key[room.order[room.first[room.run[t]]]]] = 1


@compiled_in_place
def _runs(room: Room, size: int, codes: Array, a: int) -> int:
    """Order the chosen rows by their code of an attribute; return how many codes they have."""
    chosen, key, order, first, run = room.chosen, room.key, room.order, room.first, room.run
    lowest = highest = np.int64(codes[chosen[0], a])
    for i in range(size):
        key[i] = codes[chosen[i], a]
        lowest = min(lowest, key[i])
        highest = max(highest, key[i])
    if lowest == highest:
        return 1
    _order(key, size, lowest, highest, room.tally, order)
    runs = 0
    for place in range(size):
        if place == 0 or key[order[place]] != key[order[place - 1]]:
            first[runs] = place
            run[runs] = runs
            runs += 1
    first[runs] = size
    return runs


@compiled_in_place
def _by_size(room: Room, size: int, runs: int) -> None:
    """Put runs into the order of their sizes, the longest first."""
    first, run = room.first, room.run
    for r in range(runs):
        run[r] = (first[r] - first[r + 1]) * np.int64(size) + r
    _sort(run, runs)
    for r in range(runs):
        run[r] = run[r] % size
