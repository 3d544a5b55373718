"""Groups cut top down where the squared error of all attributes falls most.

A group of n rows is cut by one attribute (up to a value, one value, or the frequent values, against the rest) where
n_l n_r / n |mean_l - mean_r|^2 of the scaled features (`features`) is largest among the cuts whose parts both have
at least `least` rows and satisfy the diversity asked for. That is the drop of the within-group squared error, the
criterion of multivariate regression trees and of microaggregation (Domingo-Ferrer and Mateo-Sanz 2002), taken top
down. Groups of more than `SAMPLE` rows choose by as many of their rows, evenly spaced; sizes and diversity
are always those of all rows.
Guarantee: every group has at least `least` rows and, for each diversity, no code of it has more than the share
1 / l among the rows of its part. Cost: O(n log n) times attributes and features of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.compiled import compiled
from duckdb_anon.kernels.groups.features import features_of
from duckdb_anon.model.table import Attribute, CodeArray, IntArray

Array = NDArray[Any]
SAMPLE = 4000
_UP_TO, _ONE, _FREQUENT = 0, 1, 2
_DENOMINATOR = 10**6


@dataclass(frozen=True)
class Diversity:
    """No code has more than the share 1 / l among the rows of a group that have its part.

    Attributes:
        codes: code of each row, shape (n,).
        l: 1 or more.
        part_of_code: part of each code; None: all codes are of one part.
    """

    codes: CodeArray
    l: float  # noqa: E741 - the letter of the papers
    part_of_code: IntArray | None = None


def sse_groups(
    attributes: Sequence[Attribute],
    least: int,
    diversities: Sequence[Diversity] = (),
    tick: Callable[[], None] | None = None,
) -> IntArray:
    """Cut rows into groups.

    Args:
        attributes: what to cut by, at least one, n codes each.
        least: fewest rows of a group, 1 or more; n must be at least as much.
        diversities: what every group must satisfy; the rows as one group must satisfy it too.
        tick: called before the work; may raise to stop it.

    Returns:
        Group of each row, numbered from 0, shape (n,).

    >>> age = Attribute("age", "ordered", np.array([0, 2, 0, 1, 2], np.int32), np.arange(3.0), 3, -1, np.arange(3))
    >>> sse_groups([age], 2).tolist()
    [0, 1, 0, 1, 1]
    """
    if tick is not None:
        tick()
    attributes = [_left_to_right(attribute) for attribute in attributes]
    scaled = features_of(attributes)
    rows = len(attributes[0].codes)
    codes = np.empty((rows, len(attributes)), dtype=np.int32)
    for a, attribute in enumerate(attributes):
        codes[:, a] = attribute.codes + scaled.first_code[a]
    nominal = np.array([attribute.kind == "nominal" for attribute in attributes])
    asked = _numbered(diversities, rows)
    group = _cut_all(
        codes, scaled.first_code, scaled.start, scaled.feature, scaled.value, scaled.count, scaled.most, nominal,
        asked.codes, asked.part, asked.l, least, SAMPLE,
    )  # fmt: skip
    return np.asarray(group, dtype=np.int64)


def _left_to_right(attribute: Attribute) -> Attribute:
    """The attribute with codes that follow the leaves of its hierarchy from left to right."""
    if attribute.kind != "hierarchy" or attribute.leaf_of_code is None:
        return attribute
    order = np.argsort(attribute.leaf_of_code, kind="stable")
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return replace(attribute, codes=place[attribute.codes], leaf_of_code=attribute.leaf_of_code[order])


@dataclass(frozen=True)
class _Numbered:
    """All diversities at once, their codes numbered through.

    Attributes:
        codes: shape (n, diversities).
        part: number of the part of each code, shape (codes,).
        l: numerator and denominator of the l of each code, shape (codes, 2).
    """

    codes: CodeArray
    part: IntArray
    l: IntArray  # noqa: E741 - the letter of the papers


def _numbered(diversities: Sequence[Diversity], rows: int) -> _Numbered:
    codes = np.empty((rows, len(diversities)), dtype=np.int32)
    parts, limits, offset = [np.zeros(0, dtype=np.int64)], [np.zeros((0, 2), dtype=np.int64)], 0
    for s, diversity in enumerate(diversities):
        domain = int(diversity.codes.max(initial=0)) + 1
        codes[:, s] = diversity.codes + offset
        own = np.zeros(domain, dtype=np.int64) if diversity.part_of_code is None else diversity.part_of_code[:domain]
        parts.append(own + offset)
        exact = Fraction(diversity.l).limit_denominator(_DENOMINATOR)
        limits.append(np.tile(np.array([[exact.numerator, exact.denominator]], dtype=np.int64), (domain, 1)))
        offset += domain
    return _Numbered(codes, np.concatenate(parts), np.concatenate(limits))


@compiled
def _cut_all(
    codes: Array, first_code: Array, start: Array, feature: Array, value: Array, features: int, most: int,
    nominal: Array, several: Array, part: Array, limit: Array, least: int, sample: int,
) -> Array:  # fmt: skip
    """Group of each row; see `sse_groups`."""
    n, d = codes.shape
    group = np.empty(n, dtype=np.int64)
    groups = 0
    rows = np.arange(n)
    spare = np.empty(n, dtype=np.int64)
    # all of these hold zeros between uses
    sums = np.zeros(features)
    left_sums = np.zeros(features)
    left_code = np.zeros(first_code[d], dtype=np.int64)
    counts = np.zeros(len(part), dtype=np.int64)
    parts = np.zeros(len(part), dtype=np.int64)
    starts = np.empty(n // least + 2, dtype=np.int64)
    starts[0], starts[1] = n, 0
    waiting = 1
    while waiting > 0:
        lo, hi = starts[waiting], starts[waiting - 1]
        middle = -1
        if hi - lo >= 2 * least:
            middle = _cut_one(
                rows, lo, hi, spare, codes, first_code, start, feature, value, most, nominal, several, part, limit,
                least, sample, sums, left_sums, left_code, counts, parts,
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
    value: Array, most: int, nominal: Array, several: Array, part: Array, limit: Array, least: int, sample: int,
    sums: Array, left_sums: Array, left_code: Array, counts: Array, parts: Array,
) -> int:  # fmt: skip
    """Put the rows of the best allowed cut's left part first; return where the right part starts, -1 for no cut."""
    m = hi - lo
    size = min(m, sample)
    while True:
        chosen = np.empty(size, dtype=np.int64)
        for i in range(size):
            chosen[i] = rows[lo + i * m // size]
        gain, cut, cuts = _candidates(
            chosen, m, codes, start, feature, value, most, nominal, least, sums, left_sums
        )
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
            _mark(chosen, codes, a, cut[best, 1], cut[best, 2], first_code[a], first_code[a + 1], left_code)
            left = 0
            for i in range(lo, hi):
                left += left_code[codes[rows[i], a]]
            allowed = left >= least and m - left >= least
            for side in range(2):
                allowed = allowed and _diverse(
                    rows, lo, hi, codes, a, left_code, side, several, part, limit, counts, parts
                )
            if allowed:
                return _split(rows, lo, hi, spare, codes, a, left_code)
        if size == m:
            return -1
        size = m


@compiled
def _candidates(
    chosen: Array, m: int, codes: Array, start: Array, feature: Array, value: Array, most: int, nominal: Array,
    least: int, sums: Array, left_sums: Array,
) -> tuple[Array, Array, int]:  # fmt: skip
    """Gain of every cut of some rows; its attribute, how it cuts (`_UP_TO`, ...) and its code or number of codes."""
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
    first = np.empty(size + 1, dtype=np.int64)
    run = np.empty(size, dtype=np.int64)
    for a in range(d):
        for i in range(size):
            key[i] = codes[chosen[i], a] * np.int64(size) + i
        _sort(key, size)
        runs = 0
        for place in range(size):
            if place == 0 or key[place] // size != key[place - 1] // size:
                first[runs] = place
                runs += 1
        first[runs] = size
        for r in range(runs):
            run[r] = r
        # ordered: runs one after the other; nominal: each alone, then, of four or more, one after the other by size
        for way in range(3):
            if runs < 2 or (way == _UP_TO) == nominal[a] or (way == _FREQUENT and runs < 4):
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
                    i = key[place] % size
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
                    cut[cuts, 2] = t + 1 if way == _FREQUENT else key[first[r]] // size
                    cuts += 1
                if way == _ONE:
                    for place in range(first[r], first[r + 1]):
                        i = key[place] % size
                        for e in range(entries[i]):
                            left_sums[entry_feature[i, e]] = 0.0
                    left, square, along = 0, 0.0, 0.0
            if way != _ONE:
                for i in range(size):
                    for e in range(entries[i]):
                        left_sums[entry_feature[i, e]] = 0.0
    return gain, cut, cuts


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
def _mark(
    chosen: Array, codes: Array, a: int, way: int, argument: int, first: int, last: int, left_code: Array
) -> None:
    """Set to 1 what a cut of attribute `a` puts into its left part, of the codes first .. last - 1."""
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
    rows: Array, lo: int, hi: int, codes: Array, a: int, left_code: Array, side: int, several: Array, part: Array,
    limit: Array, counts: Array, parts: Array,
) -> bool:  # fmt: skip
    """Whether the rows of one side satisfy every diversity."""
    held = True
    for s in range(several.shape[1]):
        for i in range(lo, hi):
            if left_code[codes[rows[i], a]] == side:
                code = several[rows[i], s]
                counts[code] += 1
                parts[part[code]] += 1
        for i in range(lo, hi):
            if left_code[codes[rows[i], a]] == side:
                code = several[rows[i], s]
                if counts[code] * limit[code, 0] > parts[part[code]] * limit[code, 1]:
                    held = False
                    break
        for i in range(lo, hi):
            if left_code[codes[rows[i], a]] == side:
                code = several[rows[i], s]
                counts[code] = 0
                parts[part[code]] = 0
        if not held:
            break
    return held


@compiled
def _split(rows: Array, lo: int, hi: int, spare: Array, codes: Array, a: int, left_code: Array) -> int:
    """Left rows first, both parts in their old order; return where the right part starts."""
    middle, right = lo, 0
    for i in range(lo, hi):
        row = rows[i]
        if left_code[codes[row, a]] == 1:
            rows[middle] = row
            middle += 1
        else:
            spare[right] = row
            right += 1
    for i in range(right):
        rows[middle + i] = spare[i]
    return middle
