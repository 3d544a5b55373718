"""Cells to lists and columns: the second half of the walk that `decode` begins.

Cost: a pass over the cells of each released column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from duckdb_anon.engine.answer import AnswerLists
from duckdb_anon.engine.different_cells import different
from duckdb_anon.engine.drawn_off import ReleasedRows
from duckdb_anon.engine.number_formatting import texts
from duckdb_anon.model import released_columns as c
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import ColumnPlan
from duckdb_anon.model.progress import tick


def prepared(plan: ColumnPlan, cells: Any) -> Any:
    """The cells of a released column as they are packed: where the plan says so, each different one of groups once."""
    return different(cells) if plan.different else cells


@dataclass
class Packer:
    """Fills the lists a `Decoder` asked for, the kernel's rows being put in a new order.

    Attributes:
        attributes: those the cells' codes belong to, by name.
        source_row: the source row number of each kernel row.
        rows: the released rows, filled column by column.
        looked_up: as the `Decoder` was told.
    """

    attributes: Mapping[str, Attribute]
    source_row: IntArray
    rows: ReleasedRows
    looked_up: Collection[str] = ()
    lists: AnswerLists = field(default_factory=AnswerLists)
    frames: set[str] = field(default_factory=set)
    dictionaries: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)

    def column(self, plan: ColumnPlan, cells: Any) -> None:
        """Add the lists of one released column, in the order `Decoder.column` asks for them.

        Args:
            plan: how the column is released.
            cells: its cells, those of groups each once where the plan says so, see `prepared`.
        """
        tick()
        if plan.cells is c.Real and isinstance(cells, c.Whole):
            cells = c.Real(cells.values.astype(np.float64))
        if not isinstance(cells, plan.cells):
            raise TypeError(f"column '{plan.name}' was planned as {plan.cells.__name__}, got {type(cells).__name__}")
        attribute = plan.column or plan.name
        if isinstance(cells, c.Struct):
            for part in plan.fields:
                self.column(part, prepared(part, cells.fields[part.name]))
        elif isinstance(cells, c.Source) and attribute in self.looked_up:
            self._dictionary(attribute)
            codes = self.attributes[attribute].codes
            self._codes(codes if _every(cells.rows, len(codes)) else np.where(cells.rows < 0, -1, codes[cells.rows]))
        elif isinstance(cells, c.Source):
            if plan.frame not in self.sources:
                self.sources.add(plan.frame)
                self.rows.wholes.append(np.where(cells.rows < 0, -1, self.source_row[cells.rows]))
        elif isinstance(cells, c.Value):
            scale = self.attributes[attribute].scale_for("Value")
            self.lists.s.append(texts(scale, cells.numbers))
            self._codes(cells.index)
        elif isinstance(cells, c.Whole):
            self.rows.wholes.append(cells.values)
        elif isinstance(cells, c.Real):
            self.rows.reals.append(cells.values)
        elif isinstance(cells, (c.Node, c.NodeSet)):
            self._nodes(plan, cells)
        else:
            self._valued(plan, cells, attribute)

    def _nodes(self, plan: ColumnPlan, cells: c.Node | c.NodeSet) -> None:
        groups = len(cells.node) if isinstance(cells, c.Node) else len(cells.offsets) - 1
        self._frame(plan.frame, cells.index, groups)
        self.lists.s.append(cells.labels)
        if isinstance(cells, c.Node):
            self.lists.i.append(cells.node)
        else:
            self.lists.l.append((cells.offsets, cells.nodes + 1))

    def _valued(self, plan: ColumnPlan, cells: Any, attribute: str) -> None:
        if self._dictionary(attribute):
            if plan.declared_type:
                self.lists.s.append(self.attributes[attribute].declared)
            if isinstance(cells, c.Interval):
                scale = self.attributes[attribute].scale
                self.lists.s.append(texts(scale, cells.new) if scale is not None and cells.new is not None else [])
        if isinstance(cells, c.Coded):
            self._codes(cells.codes)
        elif isinstance(cells, c.Channel):
            if not plan.declared_type and (cells.codes >= self.attributes[attribute].domain).any():
                raise ColumnError(
                    f"column '{attribute}' declares values that no row has, but the planner cannot see its type; "
                    "commit the table first, or take the table's values: domain := 'observed'"
                )
            self.lists.d.append(np.array([cells.p]))
            self.lists.l.append((np.array([0, len(cells.codes)]), cells.codes + 1))
        elif isinstance(cells, c.Interval):
            self._frame(plan.frame, cells.index, len(cells.lower))
            self.lists.i += [cells.lower, cells.upper]
        elif isinstance(cells, c.ValueSet):
            self._frame(plan.frame, cells.index, len(cells.offsets) - 1)
            self.lists.l.append((cells.offsets, cells.codes + 1))
        else:
            self._frame(plan.frame, cells.index, len(cells.offsets) - 1)
            self.lists.l += [(cells.offsets, cells.codes + 1), (cells.offsets, cells.counts)]

    def _dictionary(self, attribute: str) -> bool:
        """Add the rows that show the values of an attribute, the first time it is asked for; tell whether it was."""
        if attribute in self.dictionaries:
            return False
        self.dictionaries.add(attribute)
        self.lists.i.append(self.source_row[self.attributes[attribute].first_row])
        return True

    def _frame(self, frame: str, index: IntArray, groups: int) -> None:
        if frame not in self.frames:
            self.frames.add(frame)
            self._codes(index)
            self.lists.i.append(np.array([groups], dtype=np.int64))

    def _codes(self, codes: CodeArray | IntArray) -> None:
        self.rows.codes.append(codes.astype(np.int32, copy=False))


def _every(rows: IntArray, count: int) -> bool:
    """Whether these are all rows in their order."""
    return len(rows) == count and bool((rows == np.arange(count)).all())
