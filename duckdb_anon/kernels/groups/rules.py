"""Requirements as compiled rules: what a partitioner asks of one part, in one pass over its rows.

Each `Requirement` says itself as rules; this module checks them. The array form of a requirement
(`Requirement.holds`) and its rules are written apart: finished groups are checked again with the former.
Formulas and sources: see `requirements`, `closeness`, `slicing.diversity` and `slicing.chance`.

Where rows belong to persons, a group's size is the number of its persons and a value's count the number of
persons that have it, so that several rows of one person never count as several people.

Cost: linear in the rows of the part; a sort of its different values for ordered distances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from duckdb_anon.kernels.compiled import compiled_in_place
from duckdb_anon.kernels.groups.sorting import sort_codes
from duckdb_anon.kernels.keys import keys_of
from duckdb_anon.model.table import CodeArray, FloatArray, IntArray

SIZE, FREQUENCY, DISTINCT, ENTROPY, RECURSIVE, EQUAL, ORDERED, HIERARCHICAL, CONDITIONAL, COMMON, LINKABLE = range(11)
PERSON_ROWS, VALUE_ROWS = 11, 12  # shares of rows even where persons are counted
TOLERANCE = 1e-9
_NUMBERS = 4


class Rule(NamedTuple):
    """One condition on a part.

    Attributes:
        kind: which of the constants above.
        numbers: its parameters, at most four.
        view: code of the column it is about by sensitive code; None where they are the same.
        codes: whole numbers it needs by code.
        shares: numbers it needs by code.
    """

    kind: int
    numbers: tuple[float, ...] = ()
    view: CodeArray | None = None
    codes: CodeArray | None = None
    shares: FloatArray | None = None


class Rules(NamedTuple):
    """Several rules as flat arrays.

    Attributes:
        kind: kind of each rule, shape (rules,).
        number: parameters, shape (rules, 4).
        column: which row of `views` a rule reads its codes through.
        views: code by sensitive code; row 0 is the sensitive code itself.
        codes_at: where the rule's whole numbers start in `codes`, shape (rules + 1,).
        codes: see `Rule.codes`.
        shares_at: where the rule's numbers start in `shares`, shape (rules + 1,).
        shares: see `Rule.shares`.
        person: person of each source row; no entries where rows are persons.
        pair: number of the (person, value) pair of each source row, shape (views, rows).
    """

    kind: IntArray
    number: FloatArray
    column: IntArray
    views: IntArray
    codes_at: IntArray
    codes: IntArray
    shares_at: IntArray
    shares: FloatArray
    person: IntArray
    pair: IntArray

    @staticmethod
    def of(rules: Sequence[Rule], sensitive: CodeArray | None, person: CodeArray | None) -> Rules:
        """Flatten rules.

        Args:
            rules: what every part must satisfy.
            sensitive: sensitive code of each row, or None.
            person: person of each row, or None where every row is a person.
        """
        domain = 1 if sensitive is None else int(sensitive.max(initial=0)) + 1
        views = [np.arange(domain, dtype=np.int64)]
        which = []
        for rule in rules:
            which.append(0 if rule.view is None else len(views))
            if rule.view is not None:
                views.append(rule.view.astype(np.int64))
        no_codes, no_shares = np.empty(0, np.int64), np.empty(0, np.float64)
        codes = [no_codes if rule.codes is None else rule.codes.astype(np.int64) for rule in rules]
        shares = [no_shares if rule.shares is None else rule.shares.astype(np.float64) for rule in rules]
        number = np.zeros((len(rules), _NUMBERS))
        for row, rule in zip(number, rules, strict=True):
            row[: len(rule.numbers)] = rule.numbers
        pairs = np.empty((len(views), 0), np.int64)
        if person is not None and sensitive is not None:
            pairs = np.array([_pairs(person, view[sensitive]) for view in views])
        return Rules(
            np.array([rule.kind for rule in rules], dtype=np.int64),
            number,
            np.array(which, dtype=np.int64),
            np.array(views),
            _starts(codes),
            np.concatenate([no_codes, *codes]),
            _starts(shares),
            np.concatenate([no_shares, *shares]),
            no_codes if person is None else person.astype(np.int64),
            pairs,
        )


def _starts(arrays: Sequence[IntArray] | Sequence[FloatArray]) -> IntArray:
    return np.cumsum([0, *(len(array) for array in arrays)]).astype(np.int64)


def _pairs(person: CodeArray, code: IntArray) -> IntArray:
    return keys_of([person, code]).of_row


class Tally(NamedTuple):
    """Working space for one thread.

    Attributes:
        rows: rows (persons) of each code, zero between checks.
        other: second set of counts, zero between checks.
        touched: the codes that occur.
        top: largest counts, in descending order.
        chance: probabilities of small numbers of values.
        seen: last check in which each person or pair was met.
        check: number of the current check, shape (1,).
    """

    rows: IntArray
    other: IntArray
    touched: IntArray
    top: IntArray
    chance: FloatArray
    seen: IntArray
    check: IntArray

    @staticmethod
    def of(rules: Rules) -> Tally:
        """Make space for checking these rules."""
        # the whole table may have more values than the rows at hand
        values = int(np.diff(rules.shares_at).max(initial=0))
        codes = (rules.views, rules.codes, rules.person)
        domain = max(values, *(int(each.max(initial=0)) for each in codes)) + 2
        most = 2 + int(rules.number[:, 0].max(initial=0)) if len(rules.kind) else 2
        met = max(int(rules.person.max(initial=-1)), int(rules.pair.max(initial=-1))) + 1
        small = np.zeros(min(most, 2 + len(rules.views[0]) + domain), dtype=np.int64)
        return Tally(
            np.zeros(domain, np.int64),
            np.zeros(domain, np.int64),
            np.zeros(domain, np.int64),
            small,
            np.zeros(len(small) + 1),
            np.zeros(met, np.int64),
            np.zeros(1, np.int64),
        )


@compiled_in_place
def satisfied(rules: Rules, tally: Tally, sensitive: IntArray, row: IntArray, start: int, stop: int) -> bool:
    """Say whether the rows start .. stop - 1 satisfy all rules.

    Args:
        rules: the rules.
        tally: working space.
        sensitive: sensitive code of each place.
        row: source row of each place; read only where rows belong to persons.
        start: first place of the part.
        stop: end of the part.
    """
    persons = len(rules.person) > 0
    size = stop - start
    if persons:
        tally.check[0] += 1
        size = 0
        for i in range(start, stop):
            person = rules.person[row[i]]
            if tally.seen[person] != tally.check[0]:
                tally.seen[person] = tally.check[0]
                size += 1
    for r in range(len(rules.kind)):
        if rules.kind[r] == SIZE:
            if size < rules.number[r, 0]:
                return False
            continue
        view, touched, total = rules.column[r], 0, 0
        tally.check[0] += 1
        of_persons = rules.kind[r] == PERSON_ROWS
        once = persons and not of_persons and rules.kind[r] != VALUE_ROWS
        for i in range(start, stop):
            if once:
                pair = rules.pair[view, row[i]]
                if tally.seen[pair] == tally.check[0]:
                    continue
                tally.seen[pair] = tally.check[0]
            code = rules.person[row[i]] if of_persons else rules.views[view, sensitive[i]]
            if tally.rows[code] == 0:
                tally.touched[touched] = code
                touched += 1
            tally.rows[code] += 1
            total += 1
        holds = _holds(rules, r, tally, touched, size, total)
        for place in range(touched):
            tally.rows[tally.touched[place]] = 0
        if not holds:
            return False
    return True


@compiled_in_place
def _holds(rules: Rules, r: int, tally: Tally, touched: int, size: int, total: int) -> bool:
    kind, first, second = rules.kind[r], rules.number[r, 0], rules.number[r, 1]
    if kind == DISTINCT:
        return touched >= first - TOLERANCE
    if kind == PERSON_ROWS or kind == VALUE_ROWS:
        return _largest(tally, touched) * int(first) <= total * int(second)
    if kind == FREQUENCY:
        return _largest(tally, touched) * int(first) <= size * int(second)
    if kind == ENTROPY:
        inner = 0.0
        for place in range(touched):
            count = tally.rows[tally.touched[place]]
            inner += count * math.log(count)
        return math.log(total) - inner / total >= first - TOLERANCE
    if kind == RECURSIVE:
        if touched < first:
            return False
        tail = total - _largest_few(tally, touched, int(first) - 1)
        return _largest(tally, touched) * int(rules.number[r, 2]) < tail * int(second)
    if kind == EQUAL:
        distance = 0.0
        shares = rules.shares_at[r]
        for place in range(touched):
            code = tally.touched[place]
            distance += max(tally.rows[code] / total - rules.shares[shares + code], 0.0)
        return distance <= first + TOLERANCE
    if kind == ORDERED:
        return _ordered_distance(rules, r, tally, touched, total) <= first + TOLERANCE
    if kind == HIERARCHICAL:
        return _tree_distance(rules, r, tally, touched, total) <= first + TOLERANCE
    if kind == CONDITIONAL:
        return _conditional(rules, r, tally, touched, first)
    return _by_chance(rules, r, tally, touched, size)


@compiled_in_place
def _largest(tally: Tally, touched: int) -> int:
    largest = 0
    for place in range(touched):
        largest = max(largest, tally.rows[tally.touched[place]])
    return largest


@compiled_in_place
def _largest_few(tally: Tally, touched: int, few: int) -> int:
    """Sum of the largest `few` counts."""
    for place in range(few):
        tally.top[place] = 0
    for place in range(touched):
        count = tally.rows[tally.touched[place]]
        rank = few
        while rank > 0 and tally.top[rank - 1] < count:
            if rank < few:
                tally.top[rank] = tally.top[rank - 1]
            rank -= 1
        if rank < few:
            tally.top[rank] = count
    result = 0
    for place in range(few):
        result += tally.top[place]
    return result


@compiled_in_place
def _ordered_distance(rules: Rules, r: int, tally: Tally, touched: int, total: int) -> float:
    """Sum over values of |P - Q|, cumulative shares, over their number less one.

    `shares` holds Q, then its running sums from 0 on; P is constant between two values of the part, so each such
    stretch is summed from those and the place where Q passes P.
    """
    at = rules.shares_at[r]
    domain = (rules.shares_at[r + 1] - at - 1) // 2
    if domain < 2:
        return 0.0
    prefix = at + domain
    if touched * 8 < domain:
        sort_codes(tally.touched, touched)
    else:
        touched = 0
        for code in range(domain):
            if tally.rows[code] > 0:
                tally.touched[touched] = code
                touched += 1
    distance = rules.shares[prefix + tally.touched[0]]
    passed_rows = 0
    for place in range(touched):
        code = tally.touched[place]
        end = domain - 1 if place + 1 == touched else tally.touched[place + 1]
        passed_rows += tally.rows[code]
        level = passed_rows / total
        low, high = int(code), int(end)
        while low < high:
            middle = (low + high) // 2
            if rules.shares[at + middle] < level:
                low = middle + 1
            else:
                high = middle
        distance += level * (low - code) - (rules.shares[prefix + low] - rules.shares[prefix + code])
        distance += (rules.shares[prefix + end] - rules.shares[prefix + low]) - level * (end - low)
    return distance / (domain - 1)


@compiled_in_place
def _tree_distance(rules: Rules, r: int, tally: Tally, touched: int, total: int) -> float:
    """Sum over nodes of |e| step, e the share of part less table below the node; see `closeness`.

    `codes`: number of levels, then the node of each code at each level, 0 once it is counted. `shares`: the distance
    of a part without rows, then step and table share of each node.
    """
    codes, shares = rules.codes_at[r], rules.shares_at[r]
    levels, values = rules.codes[codes], rules.codes[codes + 1]
    distance = rules.shares[shares]
    for level in range(levels):
        for place in range(touched):
            code = tally.touched[place]
            tally.other[rules.codes[codes + 2 + level * values + code]] += tally.rows[code]
        for place in range(touched):
            node = rules.codes[codes + 2 + level * values + tally.touched[place]]
            rows = tally.other[node]
            if rows > 0:
                tally.other[node] = 0
                step, table = rules.shares[shares + 1 + 2 * node], rules.shares[shares + 2 + 2 * node]
                distance += (abs(rows / total - table) - table) * step
    return distance


@compiled_in_place
def _conditional(rules: Rules, r: int, tally: Tally, touched: int, least: float) -> bool:
    """Whether no value has a share above 1/l among the rows of its own last column part."""
    codes = rules.codes_at[r]
    for place in range(touched):
        code = tally.touched[place]
        tally.other[rules.codes[codes + code]] += tally.rows[code]
    holds = True
    for place in range(touched):
        code = tally.touched[place]
        rows = tally.other[rules.codes[codes + code]]
        holds = holds and tally.rows[code] / rows * least <= 1 + TOLERANCE
    for place in range(touched):
        tally.other[rules.codes[codes + tally.touched[place]]] = 0
    return holds


@compiled_in_place
def _by_chance(rules: Rules, r: int, tally: Tally, touched: int, size: int) -> bool:
    """Whether values are common enough in an independent group of this size; see `slicing.chance`.

    COMMON: numbers are rate, alpha, weight. LINKABLE: d, alpha, weight. A negative weight takes the table's shares.
    """
    first, alpha, weight = rules.number[r, 0], rules.number[r, 1], rules.number[r, 2]
    shares = rules.shares_at[r]
    few = int(first) if rules.kind[r] == LINKABLE else 0
    if rules.kind[r] == LINKABLE:
        if touched < few:
            return alpha <= TOLERANCE
        for below in range(few):
            tally.chance[below] = 0.0
        tally.chance[0] = 1.0
        sort_codes(tally.touched, touched)
    for place in range(touched):
        code = tally.touched[place]
        share = rules.shares[shares + code]
        if weight >= 0:
            share = (tally.rows[code] + weight * share) / (size + weight)
        occurs = -math.expm1(size * math.log1p(-min(share, 1 - 1e-16)))
        if rules.kind[r] == COMMON:
            both = first * first
            total = both + (1 - both) * occurs
            if total > 0 and both / total > alpha + TOLERANCE:
                return False
        else:
            for below in range(few - 1, -1, -1):
                tally.chance[below] *= 1 - occurs
                if below > 0:
                    tally.chance[below] += tally.chance[below - 1] * occurs
    if rules.kind[r] == COMMON:
        return True
    tail = 1.0
    for below in range(few):
        tail -= tally.chance[below]
    return tail >= alpha - TOLERANCE
