"""Mutual cover: random output tables that hide the records of a group behind one another.

Released: for each record and attribute a value drawn from the record's row of a random output table over the
values of its group. Guarantee, delta-probability: in every column no record has more than the share delta of
the mass, so a published value is shared by at least 1/delta records that may show it. It does not bound the
risk of re-identification by delta; see Li et al. (2020), arXiv 2008.10771, section 3. Among all such tables
the expected distance to the original values is least (section 4), then blended with a table that keeps the
histogram (`balance`, see `solve`). Departure: output values are those of the group, which loses nothing for
|difference|, tree and 0/1 distances. Cost: a sort, then one small linear program for each distinct pattern of
gaps and counts.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np

from duckdb_anon.kernels.random_output_tables.delta import Delta
from duckdb_anon.kernels.random_output_tables.lp_grouping import Classes, find_classes
from duckdb_anon.kernels.random_output_tables.output_tables import MutualCover, OutputTable
from duckdb_anon.kernels.random_output_tables.patterns import Patterns, find_patterns
from duckdb_anon.kernels.random_output_tables.pieces import cut_wide_groups
from duckdb_anon.kernels.random_output_tables.solve import random_output_tables
from duckdb_anon.kernels.random_output_tables.unchanged import randomize_unchanged
from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray

__all__ = ["Delta", "MutualCover", "OutputTable", "cover", "randomize_unchanged"]

_EXACT_WIDTH = 256
_BALANCED_WIDTH = 10


def cover(
    attribute: Attribute,
    group_of_row: IntArray,
    delta: Fraction | Decimal | float,
    balance: float = 0.5,
    tick: Callable[[], None] | None = None,
) -> MutualCover:
    """Build the random output tables of one attribute for all groups.

    Args:
        attribute: codes and distances of the column, n rows.
        group_of_row: group of each row, numbers from 0, shape (n,).
        delta: largest share of one record in the mass of a column, in (0, 1].
        balance: 0 gives the least expected distance (to 1e-7 of the group's range a record; groups of more
            than 256 different values are cut first and come close), 1 keeps the expected histogram of every
            group. Above 0 groups of more than 10 different values are cut where that costs least, see `pieces`.
        tick: called between batches; may raise to stop the work.

    Returns:
        The tables, verified: `draw` publishes, `cost` and `table` report.

    Raises:
        ParameterError: delta is out of range.
        RequirementError: a group has fewer than ceil(1/delta) rows.

    >>> codes = np.array([0, 0, 1], dtype=np.int32)
    >>> age = Attribute("age", "ordered", codes, np.array([28.0, 29.0]), 2, -1, np.array([0, 2]))
    >>> tables = cover(age, np.zeros(3, dtype=np.int64), 0.5, balance=0.0)
    >>> round(float(tables.cost[0]), 6), round(tables.max_ratio, 6)
    (1.0, 0.5)
    """
    required = Delta.of(delta)
    classes = find_classes(attribute, group_of_row)
    required.require(np.bincount(group_of_row, minlength=classes.groups).astype(np.int64))
    entries = []
    width = _EXACT_WIDTH if balance == 0.0 else _BALANCED_WIDTH
    pieces = cut_wide_groups(classes, required.smallest_group, width)
    for patterns in find_patterns(attribute.kind, classes, pieces):
        tables = random_output_tables(attribute.kind, patterns.gaps, patterns.count, required.value, balance, tick)
        entries.append(_expand(patterns, tables))
    result = _assemble(attribute, classes, entries)
    result.verify(required)
    return result


_Entries = tuple[IntArray, IntArray, FloatArray]


def _expand(patterns: Patterns, tables: FloatArray) -> _Entries:
    """Copy the positive entries of each pattern's table to the groups that pose it."""
    pattern, row, column = np.nonzero(tables)
    probability = tables[pattern, row, column]
    start = np.searchsorted(pattern, np.arange(len(tables) + 1))
    size = np.diff(start)[patterns.pattern_of]
    member = np.repeat(np.arange(len(size)), size)
    entry = start[patterns.pattern_of][member] + np.arange(len(member)) - (np.cumsum(size) - size)[member]
    return patterns.member[member, row[entry]], patterns.member[member, column[entry]], probability[entry]


def _assemble(attribute: Attribute, classes: Classes, entries: list[_Entries]) -> MutualCover:
    """Sort entries by class and output value into one flat table."""
    total = len(classes.code)
    if not entries:
        empty = np.zeros(0, dtype=np.int64)
        return MutualCover(attribute, classes, np.zeros(1, dtype=np.int64), empty, np.zeros(0))
    row, column, probability = (np.concatenate(part) for part in zip(*entries, strict=True))
    order = np.argsort(row * total + column, kind="stable")
    offsets = np.searchsorted(row[order], np.arange(total + 1)).astype(np.int64)
    return MutualCover(attribute, classes, offsets, column[order], probability[order])
