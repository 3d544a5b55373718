"""Tables as measures see them: originals and releases of any shape, coded on one common domain.

Columns of the same name are coded together over all tables of a call, so that codes can be compared. A released column
is read by its type: STRUCT(lower, upper) is an interval, a list is a set of values, a MAP is value counts, another
STRUCT is a slice whose fields become columns, and a text under a hierarchy is a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from duckdb_anon.kernels.cells.cells import SWAPPED, Ranges
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Params, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_formats import Contents

_MOST_COMPARED = 4_000_000
"""Individuals times boxes that are compared at a time."""


@dataclass(frozen=True)
class ReadTable:
    """A table of any shape; row i of every column is the same row."""

    rows: int  # number of rows
    columns: dict[str, Ranges]  # the original's columns, whatever carries them: the cell of each row
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
            raise ColumnError(f"a table of slices has no buckets{SWAPPED}")
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
            raise ColumnError(f"there is no column '{name}'{SWAPPED}")
        column = self.columns[name]
        return column.domain.with_codes(column.value_codes())

    def boxes(self, names: Sequence[str]) -> Boxes:
        """The different combinations of cells of some columns."""
        columns = [self.columns[name] for name in names]
        keys = keys_of([column.names for column in columns])
        return Boxes(keys.of_row, keys.first, [column.taken(keys.first) for column in columns])

    def slices(self, names: Sequence[str]) -> dict[str, list[int]]:
        """Places of columns by the slice that they are fields of; a column of its own is a slice of its own."""
        found: dict[str, list[int]] = {}
        for position, name in enumerate(names):
            found.setdefault(self.columns[name].slice or f" {name}", []).append(position)
        return found


@dataclass(frozen=True, eq=False)
class Boxes:
    """The different combinations of cells of several columns."""

    of_row: IntArray  # box of each released row
    first_row: IntArray  # a released row of each box
    columns: list[Ranges]  # their cells, one a box

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.first_row)

    def matches(self, values: Sequence[NDArray[Any]]) -> scipy.sparse.csr_matrix:
        """Which boxes cover each individual, from codes by column: 1 where one does, shape (individuals, boxes)."""
        if all(cells.plain for cells in self.columns):
            pairs = zip(self.columns, values, strict=True)
            keys = keys_of([np.concatenate([cells.value_codes(), codes]) for cells, codes in pairs])
            of_box, of_individual = keys.of_row[: self.number], keys.of_row[self.number :]
            box = np.full(keys.number, -1, dtype=np.int64)
            box[of_box] = np.arange(self.number)
            found = np.flatnonzero(box[of_individual] >= 0)
            entries = (found, box[of_individual[found]])
            return scipy.sparse.csr_matrix((np.ones(len(found)), entries), (len(of_individual), self.number))
        alike = keys_of(values)
        step = max(1, _MOST_COMPARED // self.number)
        blocks = []
        for at in range(0, alike.number, step):
            tick()
            some = alike.first[at : at + step]
            covered = self.columns[0].covers(values[0][some])
            for cells, codes in zip(self.columns[1:], values[1:], strict=True):
                covered &= cells.covers(codes[some])
            blocks.append(scipy.sparse.csr_matrix(covered, dtype=np.float64))
        return scipy.sparse.vstack(blocks, format="csr")[alike.of_row]


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
