"""The loops behind `sse`: one group after the other is cut where the squared error falls most.

Rows of a group stand together in memory, and a cut puts those of its left part first, so that groups are told by where
they start and pieces of the table can be cut on several threads at once. Candidates and their gains: `sse_candidates`.
Cost: rows times attributes times features of a row, a level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled_in_place
from duckdb_anon.kernels.partition.sse_candidates import Room, list_candidates, mark

Array = NDArray[Any]
NO_CUT, NO_ROOM = -1, -2


@compiled_in_place
def cut_piece(
    rows: Array, starts: Array, waiting: Array, once_only: int, begins: Array, spare: Array, codes: Array,
    start: Array, feature: Array, value: Array, nominal: Array, several: Array, part: Array,
    limit: Array, once: Array, least: int, sample: int, room: Room, sums: Array, left_sums: Array, left_code: Array,
    counts: Array, parts: Array, seen: Array, stop: Array,
) -> int:  # fmt: skip
    """Cut groups that wait, and their parts, or the first of them once.

    Args:
        rows: source row of each place; comes out in the order of the groups.
        starts: groups that wait, from the last place to the first: the end of the first one, then where each starts.
        waiting: how many wait, shape (1,).
        once_only: 1 for one cut alone.
        begins: set to 1 where a finished group begins, a place each.
        spare: room for a row of each place, shape (n, 1 + attributes + diversities + columns of `once`).
        codes: code of each row and attribute, the codes of all attributes numbered through, shape (n, attributes);
            like `rows`.
        start: where the entries of each code start.
        feature: feature of each entry.
        value: value of each entry.
        nominal: whether each attribute's codes stand in no order.
        several: code of each row and diversity, the codes of all diversities numbered through; like `rows`.
        part: part of each of these codes.
        limit: numerator and denominator of the l of each of these codes, shape (codes, 2).
        once: what of a row counts once in a part, for its code and its code's part, see `sse._Numbered`; like `rows`.
        least: fewest rows of a group.
        sample: rows a cut is chosen by, at most.
        room: for `sample` rows or more; this and all below are one thread's own.
        sums: zeros between uses, one a feature.
        left_sums: the same.
        left_code: any, one a code.
        counts: zeros between uses, shape (2, codes of diversities).
        parts: the same.
        seen: the last check that met each number of `once` on each side; the last place numbers the checks.
        stop: not 0 once the work is to stop.

    Returns:
        Where the right part starts after one cut; NO_CUT where none was allowed, or all groups are finished; NO_ROOM
        where the last group has no allowed cut by a sample, and must be looked at as a whole, for which there is too
        little room. Then no group is lost: the call can be made again.
    """
    while waiting[0] > 0 and stop[0] == 0:
        low, high = starts[waiting[0]], starts[waiting[0] - 1]
        middle = NO_CUT
        size = min(high - low, sample)
        while high - low >= 2 * least:
            if size > len(room.chosen):
                return NO_ROOM
            middle = _cut_one(
                rows, low, high, size, spare, codes, start, feature, value, nominal, several, part, limit,
                once, least, room, sums, left_sums, left_code, counts, parts, seen,
            )  # fmt: skip
            if middle >= 0 or size == high - low:
                break
            size = high - low
        if middle < 0:
            begins[low] = 1
            waiting[0] -= 1
        elif once_only == 1:
            return middle
        else:
            starts[waiting[0]] = middle
            waiting[0] += 1
            starts[waiting[0]] = low
    return NO_CUT


@compiled_in_place
def _cut_one(
    rows: Array, lo: int, hi: int, size: int, spare: Array, codes: Array, start: Array,
    feature: Array, value: Array, nominal: Array, several: Array, part: Array, limit: Array, once: Array, least: int,
    room: Room, sums: Array, left_sums: Array, left_code: Array, counts: Array, parts: Array, seen: Array,
) -> int:  # fmt: skip
    """Put the rows of the best allowed cut's left part first; return where the right part starts, NO_CUT for no cut."""
    m, gain, cut = hi - lo, room.gain, room.cut
    for i in range(size):
        room.chosen[i] = lo + i * m // size
    cuts = list_candidates(room, size, m, codes, start, feature, value, nominal, least, sums, left_sums)
    while True:
        best = -1
        for k in range(cuts):
            if gain[k] > 0.0 and (best < 0 or gain[k] > gain[best]):
                best = k
        if best < 0:
            return NO_CUT
        gain[best] = 0.0
        a = cut[best, 0]
        mark(room, size, codes, lo, hi, a, cut[best, 1], cut[best, 2], left_code)
        left = 0
        for i in range(lo, hi):
            left += left_code[codes[i, a]]
        allowed = left >= least and m - left >= least
        if allowed and _diverse(lo, hi, codes, a, left_code, several, part, limit, once, counts, parts, seen):
            return _split(rows, codes, several, once, lo, hi, spare, a, left_code)


@compiled_in_place
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


@compiled_in_place
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
            spare[lo + right, 0] = rows[i]
            for q in range(d):
                spare[lo + right, 1 + q] = codes[i, q]
            for s in range(many):
                spare[lo + right, 1 + d + s] = several[i, s]
            for s in range(more):
                spare[lo + right, 1 + d + many + s] = once[i, s]
            right += 1
    for i in range(right):
        rows[middle + i] = spare[lo + i, 0]
        for q in range(d):
            codes[middle + i, q] = spare[lo + i, 1 + q]
        for s in range(many):
            several[middle + i, s] = spare[lo + i, 1 + d + s]
        for s in range(more):
            once[middle + i, s] = spare[lo + i, 1 + d + many + s]
    return middle
