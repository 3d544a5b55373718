"""What a method hands back: for each released column, cells in codes and row numbers.

A kernel returns `dict[str, Cells]`, one entry a released column, all of the same length (the number of
released rows). The entry `ROWS` is the source row each released row comes from; columns that pass through
(insensitive ones, `row_id`) take their values from it. The engine decodes cells in SQL, so every column keeps
its own DuckDB type. Row numbers and codes refer to the source table and to `Attribute.codes`. The engine
shuffles the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.number_scale import Numbers

Spread = Literal["learnt", "uniform"]
"""How the records of a generalized cell are spread over its values: by shares learnt from all cells of the column, or
evenly."""

OF_NULL, OF_RARE_NULL = 1 / 3, 1 / 10
"""Share of NULL among the records of intervals without ends, whose classes hold NULL and values: where other records of
the column are released as NULL, and where none is, since too few are NULL for a class of their own.

In 356 releases of `mondrian` and `hybrid`, k from 2 to 50, with 0.2% to 50% NULL at random and concentrated, it was
0.31 and 0.14 of these records. Records that another tool suppressed have such intervals too, without a NULL beside
them, and most are not NULL, so the second is less."""


ROWS = ""


@dataclass(frozen=True)
class Source:
    """The value this column has in source row `rows[i]`; -1 gives NULL."""

    rows: IntArray


@dataclass(frozen=True)
class Coded:
    """The value with code `codes[i]` of the attribute `attribute`; -1 gives NULL.

    Where the layout gives the column's `declared_type`, code domain + j is the attribute's declared[j].
    """

    attribute: str
    codes: CodeArray


@dataclass(frozen=True)
class Value:
    """New values of the column's own type, which no row need have: numbers[index[i]]; index -1 gives NULL.

    For ordered attributes (numbers, decimals, dates, times, timestamps). `numbers` are on the attribute's own
    `Attribute.scale`, whole steps of the type or anything between, which the engine rounds half to even and moves
    to the ends of the type: a mean of integers becomes an integer, one of dates a date. To make some:

        scale = attribute.scale_for("microaggregate")
        means = scale.numbers[attribute.codes[rows_of_group]].mean()  # finite values only: codes < special_from
        Value(attribute.name, means_of_groups, group_of_row)

    int64 numbers are exact over the whole type; float64 ones to 53 bits (timestamps: 1 us up to the year 2255).
    Steps far from 0 (microseconds since 1970, nanoseconds) are summed without loss as differences from one of
    them: `scale.numbers - scale.numbers[0]`.
    """

    attribute: str
    numbers: Numbers
    index: IntArray


@dataclass(frozen=True)
class Interval:
    """STRUCT(lower T, upper T), both ends inside, for released row i that of group `index[i]`.

    `lower`, `upper` hold one code a group. lower = -1: NULL and values mixed, published as
    {lower: NULL, upper: NULL}, which covers everything. A group of NULLs only is published as NULL.
    Codes from `Attribute.domain` on are values that no row has: new[code - domain], on the attribute's scale.
    """

    attribute: str
    lower: CodeArray
    upper: CodeArray
    index: IntArray
    new: Numbers | None = None


@dataclass(frozen=True)
class ValueSet:
    """T[]: the values row i may stand for: codes[offsets[g]:offsets[g + 1]] with g = index[i]."""

    attribute: str
    offsets: IntArray
    codes: CodeArray
    index: IntArray


@dataclass(frozen=True)
class Node:
    """VARCHAR label of a hierarchy node: labels[node[index[i]]]."""

    labels: tuple[str, ...]
    node: CodeArray
    index: IntArray


@dataclass(frozen=True)
class NodeSet:
    """VARCHAR[]: labels of several nodes: labels[nodes[offsets[g]:offsets[g + 1]]] with g = index[i]."""

    labels: tuple[str, ...]
    offsets: IntArray
    nodes: CodeArray
    index: IntArray


@dataclass(frozen=True)
class Counts:
    """MAP(T, BIGINT): value to count, entries offsets[g]:offsets[g + 1] of codes and counts, g = index[i]."""

    attribute: str
    offsets: IntArray
    codes: CodeArray
    counts: IntArray
    index: IntArray


@dataclass(frozen=True)
class Whole:
    """BIGINT values, such as a bucket number."""

    values: IntArray


@dataclass(frozen=True)
class Real:
    """DOUBLE values, such as a noisy count."""

    values: NDArray[np.float64]


@dataclass(frozen=True)
class Channel:
    """STRUCT(p DOUBLE, domain T[]), the same in every row that has it: how an attribute was randomized.

    `codes` is the declared domain in order; codes from `Attribute.domain` on are its `declared` values.
    """

    attribute: str
    p: float
    codes: CodeArray


@dataclass(frozen=True)
class Struct:
    """STRUCT column whose fields are cells of their own (sliced releases)."""

    fields: dict[str, Cells]


Cells = Source | Coded | Value | Interval | ValueSet | Node | NodeSet | Counts | Whole | Real | Channel | Struct
