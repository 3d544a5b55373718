"""Bags of values read from each row's own map, for queries without bounds.

Every row of a bucket carries the bucket's map of counts, and many buckets have equal maps. So the map itself tells
cells apart, and rows need no join with their bucket: a condition on the value is the share of the map's counts that
satisfy it. Bounds take the bucket, whose rows are permuted among themselves (`duckdb_anon.rewrite.bounds.permutation`).

The counts of a map speak of all rows of its bucket: Anatomy refuses NULLs, which no map can name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from duckdb_anon.rewrite.query.template import mapped, own, select, tree
from duckdb_anon.rewrite.shapes.listed import BagPart
from duckdb_anon.rewrite.shapes.parts import Request
from duckdb_anon.rewrite.shapes.released import Model


@dataclass(frozen=True)
class OwnBagPart(BagPart):
    """A bag whose cells are the maps; `key` is `column`."""

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a value of the map, weighted by its count; a NULL map is the value NULL."""
        return self._listed(self.cells())

    def values_in(self, used: Sequence[str], step: exp.Identifier) -> exp.Select:
        """The same of the maps that a step has."""
        return self._listed(
            select("select distinct {cell} as _cell from {step}", cell=own(f"cell_{self.name}"), step=step)
        )

    def _listed(self, cells: exp.Select) -> exp.Select:
        return select(
            """
            select * from (
              select _cell, unnest(coalesce(map_keys(_cell), [null])) as {value},
                unnest(coalesce(map_values(_cell), [1])) as _weight from {cells}
            ) where _weight > 0""",
            value=self.columns[0],
            cells=cells,
        )

    def of_row(self, request: Request, share: exp.Column) -> exp.Expr | None:
        """The share of the map's counts whose value is asked for."""
        condition = request.condition
        if request.wanted != "mean" or request.value is not None or condition is None:
            return None
        if condition.find(exp.Query, exp.Lambda) or any(one.table for one in condition.find_all(exp.Column)):
            return None
        value = tree("_entry.key")
        return tree(
            "coalesce(list_sum(list_transform(map_entries({bag}), lambda _entry: case when {condition} "
            "then _entry.value else 0 end)) / list_sum(map_values({bag})), case when {of_null} then 1 else 0 end)",
            bag=self.column,
            condition=mapped(condition, lambda one: value if isinstance(one, exp.Column) else None),
            of_null=mapped(condition, lambda one: exp.null() if isinstance(one, exp.Column) else None),
        )


def with_own_bags(model: Model) -> Model:
    """Read bags from each row's own map.

    Args:
        model: what a release says.
    """
    if not any(type(part) is BagPart for part in model.parts):
        return model
    parts = tuple(_own(part) if type(part) is BagPart else part for part in model.parts)
    return replace(model, parts=parts, part_of={column: part for part in parts for column in part.columns})


def _own(part: BagPart) -> OwnBagPart:
    return OwnBagPart(part.name, part.columns, part.column, part.release, column=part.column)
