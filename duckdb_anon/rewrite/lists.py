"""Cells that name their values one by one: sets, hierarchy nodes, bags of counts, permuted columns.

Each value of a set and each leaf below a node is equally likely; a value of a bag is as likely as its count;
a cell of a permuted column is as likely as any other of its bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.parts import Part, aliased, quoted
from duckdb_anon.rewrite.schema import TableInfo

NULL_LABEL = "(null)"


@dataclass(frozen=True)
class SetPart(Part):
    """A nominal attribute published as the list of values it may stand for; a NULL list is the value NULL."""

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a member."""
        member = f"unnest(coalesce(_cell, [null])) as {quoted(self.columns[0])}"
        return exp.select("_cell", member, "1 as _weight", dialect="duckdb").from_(self.cells().subquery("_cells"))


@dataclass(frozen=True)
class NodePart(Part):
    """An attribute published as hierarchy nodes; a label that is no node of the hierarchy is a value.

    NULL is a leaf of its own under the root, labelled '(null)'. Whether a root stands for NULL too is seen from
    the release only where that leaf occurs in it; elsewhere it weighs nothing, but bounds reckon with it.
    """

    hierarchy: TableInfo | None = None
    kind: str = "VARCHAR"

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a leaf below the node; NULL stands for itself, and perhaps below a root."""
        column = quoted(self.columns[0])
        value = f"nullif(_cells._cell, '{NULL_LABEL}')::{self.kind}"
        leaf = f"case when _leaf.node is null then {value} else _leaf.leaf end as {column}"
        below = exp.select("_cells._cell", leaf, "1 as _weight", dialect="duckdb")
        below = below.from_(self.cells().subquery("_cells")).join(
            self._leaves().subquery("_leaf"), on="_cells._cell = _leaf.node", join_type="left", dialect="duckdb"
        )
        seen = f"max(coalesce(_cell = '{NULL_LABEL}', true)::integer) over () as seen"
        cells = exp.select("_cell", seen, dialect="duckdb").from_(self.cells().subquery("_cells"))
        nulls = exp.select("_root._cell", f"null::{self.kind} as {column}", "_root.seen as _weight", dialect="duckdb")
        nulls = nulls.from_(cells.subquery("_root")).where(f"_root._cell in ({self._roots()})", dialect="duckdb")
        return exp.select("*").from_(below.union(nulls, distinct=False).subquery("_node"))

    def _roots(self) -> str:
        tree = self.hierarchy
        if tree is None or not tree.columns:
            return "null"
        level = f"_h.{quoted(tree.columns[-1][0])}::varchar"
        return exp.select(level, dialect="duckdb").from_(aliased(tree, "_h")).sql("duckdb")

    def _leaves(self) -> exp.Query:
        """SELECT node, leaf: every node with the leaves at or below it."""
        tree = self.hierarchy
        if tree is None or not tree.columns:
            raise RewriteError(
                f"column '{self.columns[0]}' was generalized along a hierarchy whose table the planner cannot "
                f"see{f' ({tree.name})' if tree else ''}; commit the table, or name it with hierarchies := {{...}}"
            )
        levels = [quoted(name) for name, _ in tree.columns]
        selects: list[exp.Query] = [
            exp.select(f"_h.{level}::varchar as node", f"_h.{levels[0]}::{self.kind} as leaf", dialect="duckdb").from_(
                aliased(tree, "_h")
            )
            for level in levels
        ]
        united = selects[0]
        for one in selects[1:]:
            united = united.union(one)
        return united


@dataclass(frozen=True)
class BagPart(Part):
    """A sensitive attribute published as MAP(value, count), one map a bucket; a MAP cannot name NULL."""

    column: str = ""

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a value of the bucket, weighted by its count; rows no count speaks of hold NULL."""
        name = quoted(self.columns[0])
        bags = exp.select(
            f"{self.key} as _cell", f"any_value({self.column}) as bag", "count(*) as size", dialect="duckdb"
        )
        bags = bags.from_(self.source()).group_by("_cell")
        missing = "greatest(size - coalesce(list_sum(map_values(bag)), 0), 0)"
        entries = exp.select(
            "_cell",
            f"unnest(list_append(map_keys(bag), null)) as {name}",
            f"unnest(list_append(map_values(bag), ({missing})::bigint)) as _weight",
            dialect="duckdb",
        ).from_(bags.subquery("_bag"))
        return exp.select("*").from_(entries.subquery("_entry")).where("_weight > 0", dialect="duckdb")


@dataclass(frozen=True)
class ColumnPart(Part):
    """A struct column whose cells were permuted inside their buckets.

    Attributes:
        fields: original column to SQL of its field over `_r`, for fields with values of their own.
        inner: parts of generalized fields, by original column.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    inner: Mapping[str, Part] = field(default_factory=dict)

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a cell of the bucket, times the values its generalized fields may stand for."""
        wanted = [column for column in self.inner if column in used]
        weights = [f"_w{i}._weight / _w{i}.total" for i in range(len(wanted))]
        columns = [f"{sql} as {quoted(column)}" for column, sql in self.fields.items() if column in used]
        columns += [f"_w{i}.{quoted(column)} as {quoted(column)}" for i, column in enumerate(wanted)]
        chosen = exp.select(f"{self.key} as _cell", *columns, dialect="duckdb")
        chosen = chosen.select(f"{' * '.join(weights) or '1'} as _weight", dialect="duckdb")
        chosen = chosen.from_(self.source())
        for i, column in enumerate(wanted):
            part = self.inner[column]
            inside = part.values([column]).subquery("_u")
            total = "sum(_weight) over (partition by _cell) as total"
            weighted = exp.select("*", total, dialect="duckdb").from_(inside).subquery(f"_w{i}")
            on = f"{part.key} is not distinct from _w{i}._cell"
            chosen = chosen.join(weighted, on=on, dialect="duckdb")
        return chosen
