"""Privacy models as compiled checks: what a partitioner asks of one part, in passes over its rows.

Each `PrivacyModel` translates itself into checks. Its array form (`PrivacyModel.holds`) is written apart: finished
groups and published classes are checked again with that one. Formulas and sources: see `privacy_models` and
`slicing.chance`.

Where rows belong to persons, a group's size is the number of its persons and a value's count the number of
persons that have it, so that several rows of one person never count as several people. A part of the codes, which
CONDITIONAL is about, has as many persons as have any of its values.

Cost: linear in the rows of the part; a sort of its different values for ordered distances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.partition.partition_state import sort_codes, starts_of
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray

BoolArray = NDArray[np.bool_]
SIZE, FREQUENCY, DISTINCT, ENTROPY, RECURSIVE, EQUAL, ORDERED, HIERARCHICAL, CONDITIONAL, COMMON, LINKABLE = range(11)
PERSON_ROWS, FREQUENCY_OF_SOME = 11, 12
TOLERANCE = 1e-9
_NUMBERS = 4


class Check(NamedTuple):
    """One condition on a part."""

    kind: int  # which of the constants above
    numbers: tuple[float, ...] = ()  # its parameters, at most four
    view: CodeArray | None = None  # code of the column it is about by sensitive code; None where they are the same
    codes: CodeArray | None = None  # whole numbers it needs by code
    shares: FloatArray | None = None  # numbers it needs by code
    rows: bool = False  # whether rows are counted even where persons are


class Checks(NamedTuple):
    """Several checks as flat arrays."""

    kind: IntArray  # kind of each check, shape (checks,)
    number: FloatArray  # parameters, shape (checks, 4)
    rows: BoolArray  # whether a check counts rows even where persons are counted
    column: IntArray  # which row of `views` a check reads its codes through
    part: IntArray  # which row of `views` has the part of each code, for CONDITIONAL
    views: IntArray  # code by sensitive code; row 0 is the sensitive code itself
    codes_at: IntArray  # where the check's whole numbers start in `codes`, shape (checks + 1,)
    codes: IntArray  # see `Check.codes`
    shares_at: IntArray  # where the check's numbers start in `shares`, shape (checks + 1,)
    shares: FloatArray  # see `Check.shares`
    person: IntArray  # person of each source row; no entries where rows are persons
    pair: IntArray  # number of the (person, value) pair of each source row, shape (views, rows)

    @staticmethod
    def of(checks: Sequence[Check], sensitive: CodeArray | None, person: CodeArray | None) -> Checks:
        """Flatten checks."""
        domain = 1 if sensitive is None else int(sensitive.max(initial=0)) + 1
        views = [np.arange(domain, dtype=np.int64)]
        which, part = [], []
        for check in checks:
            which.append(0 if check.view is None else len(views))
            if check.view is not None:
                views.append(check.view.astype(np.int64))
            part.append(0)
            if check.kind == CONDITIONAL and check.codes is not None:
                part[-1] = len(views)
                views.append(check.codes.astype(np.int64)[views[which[-1]]])
        no_codes, no_shares = np.empty(0, np.int64), np.empty(0, np.float64)
        codes = [no_codes if check.codes is None else check.codes.astype(np.int64) for check in checks]
        shares = [no_shares if check.shares is None else check.shares.astype(np.float64) for check in checks]
        number = np.zeros((len(checks), _NUMBERS))
        for row, check in zip(number, checks, strict=True):
            row[: len(check.numbers)] = check.numbers
        pairs = np.empty((len(views), 0), np.int64)
        if person is not None and sensitive is not None:
            pairs = np.array([_pairs(person, view[sensitive]) for view in views])
        return Checks(
            np.array([check.kind for check in checks], dtype=np.int64),
            number,
            np.array([check.rows for check in checks], dtype=np.bool_),
            np.array(which, dtype=np.int64),
            np.array(part, dtype=np.int64),
            np.array(views),
            starts_of([len(each) for each in codes]),
            np.concatenate([no_codes, *codes]),
            starts_of([len(each) for each in shares]),
            np.concatenate([no_shares, *shares]),
            no_codes if person is None else person.astype(np.int64),
            pairs,
        )


def _pairs(person: CodeArray, code: IntArray) -> IntArray:
    return keys_of([person, code]).of_row


class CheckSpace(NamedTuple):
    """Working space for one thread."""

    rows: IntArray  # rows (persons) of each code, zero between checks
    other: IntArray  # second set of counts, zero between checks
    touched: IntArray  # the codes that occur
    top: IntArray  # largest counts, in descending order
    chance: FloatArray  # probabilities of small numbers of values
    seen: IntArray  # last pass in which each person or pair was met
    passes: IntArray  # number of the current pass, shape (1,)

    @staticmethod
    def of(checks: Checks) -> CheckSpace:
        """Make space for checking these checks."""
        # the whole table may have more values than the rows at hand
        values = int(np.diff(checks.shares_at).max(initial=0))
        codes = (checks.views, checks.codes, checks.person)
        domain = max(values, *(int(each.max(initial=0)) for each in codes)) + 2
        most = 2 + int(checks.number[:, 0].max(initial=0)) if len(checks.kind) else 2
        highest = max(int(checks.person.max(initial=-1)), int(checks.pair.max(initial=-1))) + 1
        few = min(most, 2 + len(checks.views[0]) + domain)
        rows, other, touched = np.zeros((3, domain), np.int64)
        seen, passes = np.zeros(highest, np.int64), np.zeros(1, np.int64)
        return CheckSpace(rows, other, touched, np.zeros(few, np.int64), np.zeros(few + 1), seen, passes)


@compiled
def satisfied(
    checks: Checks, space: CheckSpace, sensitive: CodeArray, row: NDArray[Any], order: NDArray[Any], start: int,
    stop: int,
) -> bool:  # fmt: skip
    """Say whether the rows at the places order[start .. stop - 1] satisfy all checks.

    `sensitive`: sensitive code of each place; `row`: source row of each place; read only where rows belong to persons.
    """
    persons = len(checks.person) > 0
    size = stop - start
    if persons:
        space.passes[0] += 1
        size = 0
        for index in range(start, stop):
            size += _first_time(space, checks.person[row[order[index]]])
    for r in range(len(checks.kind)):
        if checks.kind[r] == SIZE:
            if size < checks.number[r, 0]:
                return False
            continue
        view, touched, total = checks.column[r], 0, 0
        space.passes[0] += 1
        of_persons = checks.kind[r] == PERSON_ROWS
        once = persons and not of_persons and not checks.rows[r]
        for index in range(start, stop):
            i = order[index]
            if once and not _first_time(space, checks.pair[view, row[i]]):
                continue
            code = checks.person[row[i]] if of_persons else checks.views[view, sensitive[i]]
            if space.rows[code] == 0:
                space.touched[touched] = code
                touched += 1
            space.rows[code] += 1
            total += 1
        members = total if checks.rows[r] else size
        holds = _holds(checks, r, space, sensitive, row, order, start, stop, touched, members, total)
        for index in range(touched):
            space.rows[space.touched[index]] = 0
        if not holds:
            return False
    return True


@compiled
def _first_time(space: CheckSpace, number: int) -> bool:
    """Whether a person or pair is met for the first time in this pass."""
    if space.seen[number] == space.passes[0]:
        return False
    space.seen[number] = space.passes[0]
    return True


@compiled
def _large_enough(
    checks: Checks, space: CheckSpace, sensitive: CodeArray, row: NDArray[Any], order: NDArray[Any], start: int,
    stop: int,
) -> bool:  # fmt: skip
    """Say what `satisfied` does where all checks are about the number of rows."""
    for r in range(len(checks.kind)):
        if stop - start < checks.number[r, 0]:
            return False
    return True


def for_size_alone(checks: Checks) -> dict[Any, Any]:
    """Replacements, for `jit.instead`, where checks are about the number of rows: the rest takes seconds to compile."""
    of_size = set(checks.kind.tolist()) <= {SIZE} and not len(checks.person)
    return {satisfied: _large_enough} if of_size else {}


@compiled
def _holds(
    checks: Checks, r: int, space: CheckSpace, sensitive: CodeArray, row: NDArray[Any], order: NDArray[Any],
    start: int, stop: int, touched: int, size: int, total: int,
) -> bool:  # fmt: skip
    """Whether check r holds of a part whose values are counted; it has `size` rows (persons), `total` counts."""
    kind, first, second = checks.kind[r], checks.number[r, 0], checks.number[r, 1]
    if kind == DISTINCT:
        return touched >= first - TOLERANCE
    if kind == PERSON_ROWS:
        return _largest(space, touched) * int(first) <= total * int(second)
    if kind == FREQUENCY:
        return _largest(space, touched) * int(first) <= size * int(second)
    if kind == FREQUENCY_OF_SOME:
        largest = 0
        for index in range(touched):
            code = space.touched[index]
            largest = max(largest, space.rows[code] * checks.codes[checks.codes_at[r] + code])
        return largest * int(first) <= size * int(second)
    if kind == ENTROPY:
        inner = 0.0
        for index in range(touched):
            count = space.rows[space.touched[index]]
            inner += count * math.log(count)
        return math.log(total) - inner / total >= first - TOLERANCE
    if kind == RECURSIVE:
        if touched < first:
            return False
        tail = total - _largest_few(space, touched, int(first) - 1)
        return _largest(space, touched) * int(checks.number[r, 2]) < tail * int(second)
    if kind == EQUAL:
        distance = 0.0
        shares = checks.shares_at[r]
        for index in range(touched):
            code = space.touched[index]
            distance += max(space.rows[code] / total - checks.shares[shares + code], 0.0)
        return distance <= first + TOLERANCE
    if kind == ORDERED:
        return _ordered_close(checks, r, space, touched, total)
    if kind == HIERARCHICAL:
        return _tree_close(checks, r, space, touched, total)
    if kind == CONDITIONAL:
        return _conditional(checks, r, space, sensitive, row, order, start, stop, touched)
    return _by_chance(checks, r, space, touched, size)


@compiled
def _largest(space: CheckSpace, touched: int) -> int:
    largest = 0
    for index in range(touched):
        largest = max(largest, space.rows[space.touched[index]])
    return largest


@compiled
def _largest_few(space: CheckSpace, touched: int, few: int) -> int:
    """Sum of the largest `few` counts."""
    for index in range(few):
        space.top[index] = 0
    for index in range(touched):
        count = space.rows[space.touched[index]]
        rank = few
        while rank > 0 and space.top[rank - 1] < count:
            if rank < few:
                space.top[rank] = space.top[rank - 1]
            rank -= 1
        if rank < few:
            space.top[rank] = count
    result = 0
    for index in range(few):
        result += space.top[index]
    return result


@compiled
def _ordered_close(checks: Checks, r: int, space: CheckSpace, touched: int, total: int) -> bool:
    """Whether the sum over values of |P - Q|, cumulative shares, over their number less one is at most t.

    `shares` holds Q, then its running sums from 0 on; P is constant between two values of the part, so each such
    stretch is summed from those and the place where Q passes P.
    """
    at = checks.shares_at[r]
    domain = (checks.shares_at[r + 1] - at - 1) // 2
    if domain < 2:
        return checks.number[r, 0] >= -TOLERANCE
    prefix = at + domain
    if touched * 8 < domain:
        sort_codes(space.touched, touched)
    else:
        touched = 0
        for code in range(domain):
            if space.rows[code] > 0:
                space.touched[touched] = code
                touched += 1
    distance = checks.shares[prefix + space.touched[0]]
    passed_rows = 0
    for index in range(touched):
        code = space.touched[index]
        end = domain - 1 if index + 1 == touched else space.touched[index + 1]
        passed_rows += space.rows[code]
        level = passed_rows / total
        low, high = int(code), int(end)
        while low < high:
            middle = (low + high) // 2
            if checks.shares[at + middle] < level:
                low = middle + 1
            else:
                high = middle
        distance += level * (low - code) - (checks.shares[prefix + low] - checks.shares[prefix + code])
        distance += (checks.shares[prefix + end] - checks.shares[prefix + low]) - level * (end - low)
    return distance / (domain - 1) <= checks.number[r, 0] + TOLERANCE


@compiled
def _tree_close(checks: Checks, r: int, space: CheckSpace, touched: int, total: int) -> bool:
    """Whether the sum over nodes of |e| step, e the share of part less table below the node, is at most t.

    `codes`: number of levels, then the node of each code at each level, 0 once it is counted. `shares`: the distance
    of a part without rows, then step and table share of each node.
    """
    codes, shares = checks.codes_at[r], checks.shares_at[r]
    levels, values = checks.codes[codes], checks.codes[codes + 1]
    distance = checks.shares[shares]
    for level in range(levels):
        for index in range(touched):
            code = space.touched[index]
            space.other[checks.codes[codes + 2 + level * values + code]] += space.rows[code]
        for index in range(touched):
            node = checks.codes[codes + 2 + level * values + space.touched[index]]
            rows = space.other[node]
            if rows > 0:
                space.other[node] = 0
                step, table = checks.shares[shares + 1 + 2 * node], checks.shares[shares + 2 + 2 * node]
                distance += (abs(rows / total - table) - table) * step
    return distance <= checks.number[r, 0] + TOLERANCE


@compiled
def _conditional(
    checks: Checks, r: int, space: CheckSpace, sensitive: CodeArray, row: NDArray[Any], order: NDArray[Any],
    start: int, stop: int, touched: int,
) -> bool:  # fmt: skip
    """Whether no value has a share above 1/l of the rows (persons) of its part of the codes."""
    codes, view, least, limit = checks.codes_at[r], checks.part[r], int(checks.number[r, 0]), int(checks.number[r, 1])
    once = len(checks.person) > 0 and not checks.rows[r]
    space.passes[0] += 1
    for index in range(start, stop):
        i = order[index]
        if not once or _first_time(space, checks.pair[view, row[i]]):
            space.other[checks.views[view, sensitive[i]]] += 1
    holds = True
    for index in range(touched):
        code = space.touched[index]
        rows = space.other[checks.codes[codes + code]]
        holds = holds and space.rows[code] * least <= rows * limit
    for index in range(touched):
        space.other[checks.codes[codes + space.touched[index]]] = 0
    return holds


@compiled
def _by_chance(checks: Checks, r: int, space: CheckSpace, touched: int, size: int) -> bool:
    """Whether values are common enough in an independent group of this size; see `slicing.chance`.

    COMMON: numbers are rate, alpha. LINKABLE: d, alpha. `shares` holds those of the table.
    """
    first, alpha = checks.number[r, 0], checks.number[r, 1]
    shares = checks.shares_at[r]
    few = int(first) if checks.kind[r] == LINKABLE else 0
    if checks.kind[r] == LINKABLE:
        if touched < few:
            return alpha <= TOLERANCE
        for below in range(few):
            space.chance[below] = 0.0
        space.chance[0] = 1.0
        sort_codes(space.touched, touched)
    for index in range(touched):
        code = space.touched[index]
        share = checks.shares[shares + code]
        occurs = -math.expm1(size * math.log1p(-min(share, 1 - 1e-16)))
        if checks.kind[r] == COMMON:
            both = first * first
            total = both + (1 - both) * occurs
            if total > 0 and both / total > alpha + TOLERANCE:
                return False
        else:
            for below in range(few - 1, -1, -1):
                space.chance[below] *= 1 - occurs
                if below > 0:
                    space.chance[below] += space.chance[below - 1] * occurs
    if checks.kind[r] == COMMON:
        return True
    tail = 1.0
    for below in range(few):
        tail -= space.chance[below]
    return tail >= alpha - TOLERANCE
