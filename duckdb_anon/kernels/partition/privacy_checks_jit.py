"""Whether a group satisfies its rules: counts in the working space of a thread, compiled.

Cost: linear in the group's rows, more for what the rules of t-closeness ask of each of its values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled_in_place, instead
from duckdb_anon.kernels.partition.rules import (
    COMMON,
    CONDITIONAL,
    DISTINCT,
    ENTROPY,
    EQUAL,
    FREQUENCY,
    HIERARCHICAL,
    LINKABLE,
    ORDERED,
    PERSON_ROWS,
    RECURSIVE,
    SIZE,
    TOLERANCE,
    Rules,
    Tally,
)
from duckdb_anon.kernels.partition.sorting import sort_codes
from duckdb_anon.model.coded_table import CodeArray

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


@compiled_in_place
def satisfied(rules: Rules, tally: Tally, sensitive: CodeArray, row: NDArray[Any], start: int, stop: int) -> bool:
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
        once = persons and not of_persons and not rules.rows[r]
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
        holds = _holds(rules, r, tally, touched, total if rules.rows[r] else size, total)
        for place in range(touched):
            tally.rows[tally.touched[place]] = 0
        if not holds:
            return False
    return True


@compiled_in_place
def large_enough(rules: Rules, tally: Tally, sensitive: CodeArray, row: NDArray[Any], start: int, stop: int) -> bool:
    """Say what `satisfied` does where all rules are about the number of rows.

    Args:
        rules: the rules.
        tally: working space.
        sensitive: sensitive code of each place.
        row: source row of each place.
        start: first place of the part.
        stop: end of the part.
    """
    for r in range(len(rules.kind)):
        if stop - start < rules.number[r, 0]:
            return False
    return True


@compiled_in_place
def _endless(rules: Rules, r: int, tally: Tally, touched: int, total: int) -> float:
    """Stand in for a distance that no rule is about."""
    return math.inf


@compiled_in_place
def _never(rules: Rules, r: int, tally: Tally, touched: int, size: float) -> bool:
    """Stand in for a check that no rule asks for."""
    return False


def checking(kernel: Kernel, rules: Rules) -> Kernel:
    """Return a kernel that can check such rules and no others, which takes half as long to compile.

    Args:
        kernel: a compiled function that calls `satisfied`, directly or not.
        rules: what it is going to be given.
    """
    asked = set(rules.kind.tolist())
    if asked <= {SIZE} and not len(rules.person):
        return instead(kernel, {satisfied: large_enough})
    distances = {ORDERED: _ordered_distance, HIERARCHICAL: _tree_distance}
    others: dict[Any, Any] = {check: _endless for kind, check in distances.items() if kind not in asked}
    others |= {} if CONDITIONAL in asked else {_conditional: _never}
    others |= {} if asked & {COMMON, LINKABLE} else {_by_chance: _never}
    return instead(kernel, others)


@compiled_in_place
def _holds(rules: Rules, r: int, tally: Tally, touched: int, size: int, total: int) -> bool:
    kind, first, second = rules.kind[r], rules.number[r, 0], rules.number[r, 1]
    if kind == DISTINCT:
        return touched >= first - TOLERANCE
    if kind == PERSON_ROWS:
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
