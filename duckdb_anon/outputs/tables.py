"""The cells of an answer as systems for secondary suppression, one for counts and one for each magnitude.

Cells of one system are sums of the same atoms: groups of several grouping sets, and parts of a group by FILTER. A
reader knows of a hidden count which rule hides it, so a primary one is at least 1 and below the threshold, and another
one at least the threshold; the derived interval of a primary count must contain 1 to threshold - 1. That of a sum must
reach as far from the sum as the rules of concentration ask. Variances and the like are hidden with the pattern of
counts, so that each total with a hidden part has another one. Quantiles, smallest and largest values are not additive:
they follow the counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import scipy

from duckdb_anon.outputs.block import PARAMETERS, Aggregate, Block
from duckdb_anon.outputs.cells import Atoms, Row
from duckdb_anon.outputs.policy import Policy
from duckdb_anon.outputs.rules import SECONDARY
from duckdb_anon.outputs.secondary import Bools, Floats, System, protect

Cell = tuple[int, int]  # row and aggregate


def suppress_secondary(
    block: Block, policy: Policy, rows: Sequence[Row], atoms: Atoms, known: Collection[Cell]
) -> None:
    """Add the rule `secondary` to values from which suppressed ones could be derived; `known` ones stay shown."""
    kinds: dict[tuple[str, ...], list[int]] = {}
    for place, aggregate in enumerate(block.aggregates):
        if kind := _kind(aggregate):
            kinds.setdefault(kind, []).append(place)
    related = [
        (kind, places) for kind, places in kinds.items()
        if len(block.sets) > 1 or len({block.aggregates[place].condition for place in places}) > 1
    ]  # fmt: skip
    if not any(row.rules[place] for _, places in related for row in rows for place in places):
        return
    members = members_of(atoms, rows)
    for kind, places in sorted(related):  # counts first: what is hidden with them costs nothing afterwards
        cells = [(number, place) for number, row in enumerate(rows) for place in places
                 if row.groups[block.aggregates[place].condition].rows > 0]  # fmt: skip
        if not cells:
            continue
        fixed = np.array([cell in known for cell in cells], bool)
        system = replace(_system(block, policy, atoms, rows, cells, members, kind), fixed=fixed)
        for (number, place), hidden in zip(cells, protect(system), strict=True):
            if hidden and not rows[number].rules[place]:
                hide(block, rows[number], place, SECONDARY)


def cells_of(block: Block, atoms: Atoms, rows: Sequence[Row]) -> tuple[list[Cell], tuple[Bools, list[str]]]:
    """The values of an answer that have rows, as sets of atoms, with their statistics."""
    cells = [(number, place) for number, row in enumerate(rows) for place, aggregate in enumerate(block.aggregates)
             if row.groups[aggregate.condition].rows > 0]  # fmt: skip
    conditions = [block.aggregates[place].condition for _, place in cells]
    inside = members_of(atoms, rows)[[number for number, _ in cells]].toarray() > 0
    return cells, (inside & atoms.holds.T[conditions], [_statistic(block.aggregates[place]) for _, place in cells])


def _statistic(aggregate: Aggregate) -> str:
    """What answers are compared by: a sum and a mean of the same magnitude are one statistic."""
    if aggregate.measured is not None:
        return f"sum {aggregate.measured}"
    if aggregate.function == "count":
        return "individuals" if aggregate.fraction else "count"
    return " ".join([aggregate.function, aggregate.fraction, *aggregate.arguments])


def _kind(aggregate: Aggregate) -> tuple[str, ...]:
    """What is added up: ('count',), ('sum', magnitude), or another statistic of columns; () for nothing."""
    if aggregate.function == "count" and not aggregate.fraction:
        return ("count",)
    if aggregate.measured is not None:
        return ("sum", aggregate.measured)
    return ("other", *aggregate.arguments) if aggregate.function in PARAMETERS or aggregate.fraction else ()


def hide(block: Block, row: Row, place: int, rule: str) -> None:
    """Hide a value; with a count, all statistics of the same individuals: a mean and a sum give their number."""
    aggregate = block.aggregates[place]
    for other, each in enumerate(block.aggregates):
        same = other == place or (aggregate.function == "count" and each.filter == aggregate.filter)
        if same and not row.rules[other]:
            row.rules[other] = rule


def members_of(atoms: Atoms, rows: Sequence[Row]) -> scipy.sparse.csr_array:
    """Rows x atoms: whether a row of the answer sums over an atom, whatever the condition."""
    place = {(row.grouped, tuple(row.keys[k] for k in row.grouped)): n for n, row in enumerate(rows)}
    pairs = [
        (place[chosen, tuple(keys[k] for k in chosen)], atom)
        for chosen in {row.grouped for row in rows} for atom, keys in enumerate(atoms.keys)
    ]  # fmt: skip
    at = np.array(pairs, dtype=int).reshape(-1, 2).T
    return scipy.sparse.csr_array((np.ones(at.shape[1]), (at[0], at[1])), shape=(len(rows), len(atoms.keys)))


def _system(
    block: Block, policy: Policy, atoms: Atoms, rows: Sequence[Row], cells: Sequence[Cell],
    members: scipy.sparse.csr_array, kind: tuple[str, ...],
) -> System:  # fmt: skip
    conditions = np.array([block.aggregates[place].condition for _, place in cells])
    inside = scipy.sparse.csr_array(members[[number for number, _ in cells]].multiply(atoms.holds.T[conditions]))
    values = atoms.sums[kind[1]] if kind[0] == "sum" else atoms.rows
    hidden = np.array([bool(rows[number].rules[place]) for number, place in cells])
    totals = np.asarray(inside @ values)
    write = _sums if kind[0] == "sum" else _counts if kind[0] == "count" else _others
    bounds = np.array([write(block, policy, rows[n], place, total)
                       for (n, place), total in zip(cells, totals, strict=True)])  # fmt: skip
    low, high, least, most = bounds.T
    used = np.asarray(inside.sum(axis=0)) > 0
    nonnegative = kind[0] != "sum" or _without_negatives(block, rows, cells, totals)
    low = np.where(nonnegative, low, -np.inf)
    sets = tuple({row.grouped for row in rows})
    codes = _codes(atoms, used) if len(set(conditions)) == 1 else None
    inside = scipy.sparse.csr_array(inside[:, used])
    inside.eliminate_zeros()
    fixed = np.zeros(len(cells), bool)
    return System(inside, values[used], hidden, low, high, least, most, nonnegative, fixed, codes, sets)


def _counts(block: Block, policy: Policy, row: Row, place: int, total: float) -> tuple[float, ...]:
    group, least = row.groups[block.aggregates[place].condition], policy.threshold
    is_row = block.table.person is None
    if row.rules[place] in ("", SECONDARY):
        return least, np.inf, np.nan, np.nan
    if group.individuals < least:
        most = least - 1 if is_row else total + least - group.individuals
        return 1, (most if is_row else np.inf), 1, most
    # hidden because few individuals are outside it: of them any number below the threshold must be possible
    few = min(each for each in (group.outside, row.others, least) if each > 0)
    return least, np.inf, max(total - (least - 1 - few), least), total + few - 1


def _sums(block: Block, policy: Policy, row: Row, place: int, total: float) -> tuple[float, ...]:
    if row.rules[place] in ("", SECONDARY):
        return 0, np.inf, np.nan, np.nan
    aggregate = block.aggregates[place]
    found = row.contributions[aggregate.condition, aggregate.measured or ""]
    largest = found.largest[0] if found.largest else 0.0
    concentrated = sum(found.largest[: policy.largest]) / policy.share - found.total
    room = max(policy.p_percent / 100 * largest, concentrated, 0.0)
    room = room if np.isfinite(room) else 0.0
    return 0, np.inf, max(total - room, min(total, 0.0)), total + room


def _others(block: Block, policy: Policy, row: Row, place: int, total: float) -> tuple[float, ...]:
    is_primary = row.rules[place] not in ("", SECONDARY)
    return 0, np.inf, total - 1 if is_primary else np.nan, total + 1 if is_primary else np.nan


def _without_negatives(block: Block, rows: Sequence[Row], cells: Sequence[Cell], totals: Floats) -> bool:
    """Whether no contribution is negative: amounts without sign add up to the sums."""
    sizes = [
        rows[n].contributions[block.aggregates[p].condition, block.aggregates[p].measured or ""].total for n, p in cells
    ]
    return bool(np.all(np.abs(np.array(sizes) - totals) <= 1e-9 * np.maximum(np.abs(sizes), 1)))


def _codes(atoms: Atoms, used: Bools) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Atoms x keys, the values of each key numbered."""
    keys = [key for key, is_used in zip(atoms.keys, used, strict=True) if is_used]
    found = np.zeros((len(keys), len(keys[0]) if keys else 0), dtype=np.int64)
    for column in range(found.shape[1]):
        numbers: dict[str | None, int] = {}
        found[:, column] = [numbers.setdefault(key[column], len(numbers)) for key in keys]
    return found
