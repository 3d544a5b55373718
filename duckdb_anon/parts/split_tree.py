"""Cuts as a tree of parts, and the tree as SQL: which part does a row belong to?

Rows are known by their codes, columns `_anon_c0`, `_anon_c1`, ... of a relation. A tree needs no table of parts and
no pass to carry a cut out: it is a nested CASE over codes, which DuckDB and Spark evaluate while they count.
Cost: as many comparisons a row as the tree is deep, and one a run of neighbouring codes that go to one side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from duckdb_anon.kernels.partition.split_from_counts import Cut
from duckdb_anon.model.coded_table import IntArray

CODE = "_anon_c"
"""Columns of codes are called so, with the number of the attribute."""


@dataclass
class CutPart:
    """A group of rows: a part, or the parts it was cut into.

    Attributes:
        number: unique in the tree.
        rows: rows (persons, where parts are of persons).
        cut: how it was cut, None for a part.
        children: the parts of the cut.
        settled: whether no cut is left to try.
    """

    number: int
    rows: int
    cut: Cut | None = None
    children: list[CutPart] = field(default_factory=list)
    settled: bool = False

    def leaves(self) -> Iterator[CutPart]:
        """Parts that are not cut."""
        if self.cut is None:
            yield self
        for child in self.children:
            yield from child.leaves()

    def sql(self) -> str:
        """SQL of the number of the part a row belongs to.

        >>> root = CutPart(0, 10, Cut(1, np.array([0, 0, 1, 0]), 2), [CutPart(1, 6), CutPart(2, 4)])
        >>> root.sql()
        'case when _anon_c1 <= 1 or _anon_c1 = 3 then 1 else 2 end'
        """
        if self.cut is None:
            return str(self.number)
        *first, last = self.children
        cases = "".join(f" when {_holds(self.cut, place)} then {child.sql()}" for place, child in enumerate(first))
        return f"case{cases} else {last.sql()} end"


def _holds(cut: Cut, place: int) -> str:
    """Condition that a row goes to one part of a cut."""
    column = f"{CODE}{cut.attribute}"
    runs = _runs(np.flatnonzero(cut.part == place))
    last = len(cut.part) - 1
    parts = []
    for low, high in runs:
        if low == high:
            parts.append(f"{column} = {low}")
        elif low == 0:
            parts.append(f"{column} <= {high}")
        elif high == last:
            parts.append(f"{column} >= {low}")
        else:
            parts.append(f"{column} between {low} and {high}")
    return " or ".join(parts) or "false"


def _runs(codes: IntArray) -> list[tuple[int, int]]:
    if len(codes) == 0:
        return []
    ends = np.flatnonzero(np.diff(codes) > 1)
    return list(zip(codes[np.r_[0, ends + 1]].tolist(), codes[np.r_[ends, len(codes) - 1]].tolist(), strict=True))
