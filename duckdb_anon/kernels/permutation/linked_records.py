"""Columns of several tables permuted inside groups of individuals, whose members have equal numbers of rows.

Groups are cut first where that saves most rows: each member of a group keeps as many rows of each table, below each
of its rows, as the member with the fewest. Inside these strata cuts lower the squared error of demographics and of
the profile of the rows (mean of ordered columns, shares of frequent values of others). The rows of a group's members
that have the same place make a cell, in which columns are permuted, each by itself or together with another one.

Guarantee: all members of a group keep the same rows in the same places, and every permutation is uniform and
independent of the others, so an adversary who knows the groups and every original value of these columns finds the
rows of an individual with probability 1 / |group|. `calibrate` exchanges values afterwards until counts across tables
fit (`marginal_calibration`, which says what this reveals); targets are rounded to the most rows of an individual.
Cost: sorts of the rows, the cuts of the individuals, and the exchanges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.partition.privacy_models import KAnonymity
from duckdb_anon.kernels.partition.sort_count import rank_in_run
from duckdb_anon.kernels.permutation.marginal_calibration import BASE, repaired
from duckdb_anon.kernels.permutation.permute_within_groups import permuted, rows_by_group
from duckdb_anon.model.coded_table import Attribute, IntArray
from duckdb_anon.model.progress import tick

_NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)
_LEVELS = 256  # of a share or mean that groups are cut by
_FREQUENT = 8  # values of a column whose shares groups are cut by
_PLACES = 12  # rows of a parent, the fullest first, whose numbers of rows below groups are cut by
_SAVED = 0.02  # share of a stratum's rows that a cut saves at least


@dataclass(frozen=True)
class Rows:
    """Rows of a table; the first table is that of the individuals, which are its rows."""

    parent: int  # number of the table above, whose rows these belong to; -1 for the individuals
    parent_row: IntArray  # row of that table, shape (rows,)
    individual: IntArray  # shape (rows,)
    columns: Sequence[Attribute]  # those that are permuted
    # for each column the number of an earlier one that it moves with, -1 for none: those of the table, then those of
    # the tables above, the nearest first
    moves_with: Sequence[int] = ()
    sensitive: Sequence[Attribute] = ()  # columns that stay with their rows, whose counts are calibrated too


@dataclass(frozen=True)
class Kept:
    """Rows of a table that are kept, cell after cell, in each the members of a group in one order."""

    row: IntArray  # number of the row in its table, shape (kept,)
    parent: IntArray  # its parent among the kept rows of the table above
    cell: IntArray  # ascending
    start: IntArray  # where each cell starts, and the end


def linked_groups(tables: Sequence[Rows], least: int) -> IntArray:
    """Group of each individual, shape (individuals,): at least `least` in each."""
    individuals = len(tables[0].individual)
    cut_by = [*tables[0].columns, *(a for table in tables[1:] for a in _profile(table, individuals))]
    group, found = np.empty(individuals, dtype=np.int64), 0
    rows, starts = rows_by_group(_strata(_numbers(tables), least))
    for low, high in pairwise(starts):
        members = rows[low:high]
        inside = np.zeros(len(members), dtype=np.int64)
        if len(members) >= 2 * least and cut_by:
            some = [attribute.with_codes(attribute.codes[members]) for attribute in cut_by]
            inside = partition(some, None, KAnonymity(least), cut="sse", tick=tick)
        group[members] = found + inside
        found += int(inside.max(initial=-1)) + 1
    return group


def _numbers(tables: Sequence[Rows]) -> IntArray:
    """Numbers of rows that groups are to agree on, shape (individuals, numbers).

    Of a table below the individuals, their numbers of rows; of one below another table, the numbers of rows below each
    row of an individual, the fullest first.
    """
    individuals = len(tables[0].individual)
    found = [np.zeros(individuals, dtype=np.int64)]
    for table in tables[1:]:
        owner = tables[table.parent].individual
        below = np.bincount(table.parent_row, minlength=len(owner))
        order = np.lexsort((-below, owner))
        owner, below = owner[order], below[order]
        place = rank_in_run(owner)
        for p in range(min(_PLACES, int(place.max(initial=-1)) + 1)):
            at = place == p
            found.append(np.bincount(owner[at], below[at], individuals).astype(np.int64))
    return np.stack(found, axis=1)


def _strata(numbers: IntArray, least: int) -> IntArray:
    """Cut individuals by numbers of rows, where that saves most rows, into strata of at least `least`."""
    kinds, kind, weight = np.unique(numbers, axis=0, return_inverse=True, return_counts=True)
    stratum, found, waiting = np.zeros(len(kinds), dtype=np.int64), 0, [np.arange(len(kinds))]
    while waiting:
        tick()
        some = waiting.pop()
        cut = _best_cut(kinds[some], weight[some], least)
        if cut is None:
            stratum[some] = found
            found += 1
        else:
            waiting += [some[cut], some[~cut]]
    return stratum[kind.reshape(-1)]


def _best_cut(numbers: IntArray, weight: IntArray, least: int) -> NDArray[np.bool_] | None:
    """Which kinds go to the one side of the cut that saves most rows; None where none is allowed or saves enough."""
    total, best, chosen = int(weight.sum()), _SAVED * float((numbers.sum(axis=1) * weight).sum()), None
    if total < 2 * least:
        return None
    lowest = numbers.min(axis=0)
    for column in np.flatnonzero(numbers.max(axis=0) > lowest):
        value = numbers[:, column]
        members = np.bincount(value, weight).astype(np.int64)
        above = np.cumsum(members[::-1])[::-1]  # individuals with so many rows or more
        allowed = (above >= least) & (total - above >= least)
        saved = np.where(allowed, above * (np.arange(len(above)) - lowest[column]), 0)
        at = int(saved.argmax())
        if saved[at] > best:
            best, chosen = float(saved[at]), value >= at
    return chosen


def _profile(table: Rows, individuals: int) -> list[Attribute]:
    """For each column what an individual's rows have on average: places of ordered values, shares of others."""
    many = np.maximum(np.bincount(table.individual, minlength=individuals), 1)
    found = []
    for attribute in table.columns:
        counts = attribute.counts
        if attribute.kind == "ordered":
            measured = [(np.cumsum(counts) / max(1, counts.sum()))[attribute.codes]]
        else:
            measured = [attribute.codes == code for code in np.argsort(-counts, kind="stable")[:_FREQUENT]]
        for values in measured:
            mean = np.bincount(table.individual, values, individuals) / many
            level = np.minimum(mean * _LEVELS, _LEVELS - 1).astype(np.int32)
            found.append(Attribute(attribute.name, "ordered", level, np.arange(_LEVELS + 0.0), _LEVELS, -1, _NO_ROWS))
    return found


def kept_rows(tables: Sequence[Rows], group: IntArray, rng: np.random.Generator) -> list[Kept]:
    """The rows that are kept: in each place of a group as many as the member with the fewest has there.

    Rows with most rows below come first. Otherwise chance decides which are kept, and their columns their order.
    """
    below = [np.ones(len(table.individual), dtype=np.int64) for table in tables]
    for table, many in reversed(list(zip(tables[1:], below[1:], strict=True))):
        np.add.at(below[table.parent], table.parent_row, many)
    members, starts = rows_by_group(group)
    found = [Kept(members.astype(np.int64), np.zeros(len(members), dtype=np.int64), group[members], starts)]
    for table, many in zip(tables[1:], below[1:], strict=True):
        tick()
        found.append(_kept(table, many, found[table.parent], len(tables[table.parent].individual), rng))
    return found


def _kept(table: Rows, below: IntArray, above: Kept, rows_above: int, rng: np.random.Generator) -> Kept:
    place_of_row = np.full(rows_above, -1)
    place_of_row[above.row] = np.arange(len(above.row))
    parent = place_of_row[table.parent_row]
    rows = np.flatnonzero(parent >= 0)
    many = np.bincount(parent[rows], minlength=len(above.row))
    fewest = np.minimum.reduceat(many, above.start[:-1]) if len(above.row) else many
    fullest = below.max(initial=0) - below
    rows = _sorted(rng.permutation(rows), [parent, fullest])
    rows = rows[rank_in_run(parent[rows]) < fewest[above.cell[parent[rows]]]]
    # chance decided above between rows that are alike
    rows = _sorted(rows, [parent, fullest, *(attribute.ranks for attribute in table.columns)])
    first_cell = np.concatenate([[0], np.cumsum(fewest)]).astype(np.int64)
    cell = np.empty(len(parent), dtype=np.int64)
    cell[rows] = first_cell[above.cell[parent[rows]]] + rank_in_run(parent[rows])
    rows = _sorted(rows, [cell, parent])
    cell = cell[rows]
    return Kept(rows, parent[rows], cell, np.searchsorted(cell, np.arange(first_cell[-1] + 1)))


def _sorted(rows: IntArray, keys: Sequence[NDArray[Any]]) -> IntArray:
    """Rows by keys, which are not negative, those that are alike in the order that they have."""
    listed = [key[rows] for key in keys]
    joint, size = np.zeros(len(rows), dtype=np.int64), 1
    for key in listed:
        size *= int(key.max(initial=0)) + 1
        joint = joint * (int(key.max(initial=0)) + 1) + key
    order = np.argsort(joint, kind="stable") if size < 2**62 else np.lexsort(listed[::-1])
    return np.asarray(rows[order])


def permuted_tables(
    tables: Sequence[Rows], kept: Sequence[Kept], rng: np.random.Generator, *, calibrate: bool
) -> list[IntArray]:
    """For each table and column the kept row that each kept row takes its value from, shape (columns, kept)."""
    sources: list[IntArray] = []
    seen: list[list[tuple[Attribute, IntArray]]] = []  # columns of each table and of those above, and their sources
    for number, (table, rows) in enumerate(zip(tables, kept, strict=True)):
        tick()
        inherited = []
        if table.parent >= 0:
            above = kept[table.parent]
            # the row of the same cell below that row of the cell above
            shift = rows.start[rows.cell] - above.start[above.cell[rows.parent]]
            inherited = [
                (attribute.with_codes(attribute.codes[rows.parent]), shift + source[rows.parent])
                for attribute, source in seen[table.parent]
            ]
        own = [attribute.with_codes(attribute.codes[rows.row]) for attribute in table.columns]
        source = np.empty((len(own), len(rows.row)), dtype=np.int64)
        leading = [k for k, _ in enumerate(own) if not table.moves_with or table.moves_with[k] < 0]
        source[leading] = permuted(rows.cell, len(leading), rng)
        if calibrate and leading and len(rows.row):
            stays = [attribute.with_codes(attribute.codes[rows.row]) for attribute in table.sensitive]
            if number == 0:
                stays += [_counts(other.parent, len(rows.row)) for t, other in enumerate(kept) if tables[t].parent == 0]
            most = int(np.bincount(table.individual[rows.row]).max())
            moving = np.stack([*source[leading], *(taken for _, taken in inherited)])
            repaired(
                [own[k] for k in leading], stays, rows.cell, moving, rng, fixed=[column for column, _ in inherited],
                base=max(BASE, most), pairs=True,
            )  # fmt: skip
            source[leading] = moving[: len(leading)]
        for k, lead in enumerate(table.moves_with):
            if lead >= 0:
                source[k] = source[lead] if lead < len(own) else inherited[lead - len(own)][1]
        sources.append(source)
        seen.append([*zip(own, source, strict=True), *inherited])
    return sources


def _counts(holder: IntArray, holders: int) -> Attribute:
    """How many rows each row of a table has below it."""
    many = np.bincount(holder, minlength=holders).astype(np.int32)
    largest = int(many.max()) + 1
    return Attribute("rows", "ordered", many, np.arange(largest + 0.0), largest, -1, _NO_ROWS)
