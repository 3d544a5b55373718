"""Tables as measures see them: originals and releases of any shape, coded on one common domain.

Columns of the same name are coded together over all tables of a call, so that codes can be compared. A
released column is read by its type: STRUCT(lower, upper) is an interval, a list is a set of values, a MAP is
value counts, another STRUCT is a slice whose fields become columns, and a text under a hierarchy is a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Params, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import Contents

BoolArray = NDArray[np.bool_]
_SWAPPED = ", and a table of true values is needed. Is a release in the place of its original?"


@dataclass(frozen=True)
class Randomization:
    """How a released column was randomized."""

    p: float  # probability that a released value is the true one
    domain: CodeArray  # codes of the values it was drawn from, in the common domain, shape (size,)


@dataclass(frozen=True)
class ReadColumn:
    """One column of one table; which arrays are set says how its cells are read."""

    domain: Attribute  # the attribute the codes are of, which all tables of a call share; it has no rows of its own
    codes: CodeArray | None = None  # code of each row; of sets and counts one after another
    lower: CodeArray | None = None  # of intervals, codes of both ends; -1, -1 means anything, NULL included
    upper: CodeArray | None = None
    offsets: IntArray | None = None  # of sets and counts, row i has codes[offsets[i]:offsets[i + 1]]
    counts: IntArray | None = None  # count of each code
    node: CodeArray | None = None  # node number in `domain.hierarchy`; of lists of nodes one after another
    slice: str = ""  # name of the STRUCT column it was a field of, '' for none
    channel: Randomization | None = None  # how it was randomized, where the release's `rr` column has it

    @property
    def plain(self) -> bool:
        """Whether a cell is one value."""
        return self.codes is not None and self.offsets is None

    @property
    def counted(self) -> bool:
        """Whether a cell holds the counts of the values of a bucket."""
        return self.counts is not None

    @property
    def interval(self) -> bool:
        """Whether a cell is an interval."""
        return self.lower is not None

    @property
    def several(self) -> bool:
        """Whether a cell has members: those of a set, values with their counts, or nodes."""
        return self.offsets is not None

    @property
    def ordered(self) -> bool:
        """Whether a cell is a number, or an interval of numbers."""
        return self.domain.kind == "ordered" and not self.several

    @property
    def lists_nodes(self) -> bool:
        """Whether a cell is a list of nodes of a hierarchy, one for each value of a person."""
        return self.several and self.codes is None

    @property
    def cells(self) -> str:
        """What its cells are, for messages."""
        if self.plain:
            return "plain values"
        if self.interval:
            return "intervals"
        if self.several:
            return "counts" if self.counted else "sets"
        return "nodes"

    def value_codes(self) -> CodeArray:
        """Codes of a column of plain values."""
        if not self.plain or self.codes is None:
            raise ColumnError(f"column '{self.domain.name}' has no plain values{_SWAPPED}")
        return self.codes


@dataclass(frozen=True)
class ReadTable:
    """A table of any shape; row i of every column is the same row."""

    rows: int  # number of rows
    columns: dict[str, ReadColumn]  # the original's columns, whatever carries them
    contents: Contents = field(default_factory=Contents)  # what the table carries; empty for an original
    # values of each carrier of `contents`, by its column, shape (rows,): buckets numbered from 0, NaN for NULL
    numbers: Mapping[str, FloatArray] = field(default_factory=dict)

    def row_weights(self) -> FloatArray:
        """How many original rows each row stands for, shape (rows,): negative where noise made it so."""
        weights = np.ones(self.rows)
        for weight in self.contents.weights:
            number = self.numbers[weight.column]
            if weight.meaning == "rows":
                weights = weights * number
            elif weight.meaning == "rate":
                weights = weights / number
            else:
                weights = weights * (1 + number / max(self.rows, 1))
        return weights

    @property
    def counted(self) -> bool:
        """Whether rows stand for numbers of original rows, and not for one each."""
        return any(weight.meaning == "rows" for weight in self.contents.weights)

    def buckets(self) -> IntArray:
        """Bucket of each row, numbered from 0 in their order; only where `contents.bucket` is."""
        if not self.contents.bucket:
            raise ColumnError(f"a table of slices has no buckets{_SWAPPED}")
        return self.numbers[self.contents.bucket].astype(np.int64)

    @property
    def kept(self) -> float:
        """Probability that a replaced value is the row's own; 1 where nothing was replaced."""
        column = self.contents.retention
        return float(self.numbers[column][0]) if column and self.rows else 1.0

    def replaced(self, name: str) -> bool:
        """Whether only a share `kept` of a column's values are the rows' own."""
        content = self.contents.columns.get(fold(name))
        return content is not None and content.truth == "replaced"

    def sources(self) -> FloatArray | None:
        """Original row of each row where the release has it, NaN for fakes; None where it has not."""
        return self.numbers.get(self.contents.source)

    def attribute(self, name: str) -> Attribute:
        """Column `name` (plain values) as an attribute with rows."""
        if name not in self.columns:
            raise ColumnError(f"there is no column '{name}'{_SWAPPED}")
        column = self.columns[name]
        return column.domain.with_codes(column.value_codes())


@dataclass(frozen=True)
class MeasureCall:
    """A call of a measure: the tables it reads, and what is asked of them."""

    read: Mapping[str, ReadTable]  # by the names of their parameters; last those that `Report.further` selects
    roles: Roles
    params: Params  # the arguments, and in `tables` how SQL calls the tables
    rng: np.random.Generator
    queried: Any = None  # tables that are asked in SQL, an `engine.queried_tables.QueriedTables`

    @property
    def original(self) -> ReadTable:
        """The original, where there is one."""
        return self.read["original"]

    @property
    def release(self) -> ReadTable:
        """The release, where there is one."""
        return self.read["release"]

    @property
    def qi(self) -> list[str]:
        """Names of the quasi-identifiers."""
        return [info.name for info in self.roles.qi]

    @property
    def sensitive(self) -> list[str]:
        """Names of the sensitive columns."""
        return [info.name for info in self.roles.sensitive]

    @property
    def labelled(self) -> list[str]:
        """Names of both."""
        return [*self.qi, *self.sensitive]

    @property
    def person(self) -> str | None:
        """Name of the column that identifies individuals; None for none."""
        return None if self.roles.person is None else self.roles.person.name
