"""Cells that name their values one by one: sets, hierarchy nodes, bags of counts.

Each value of a set and each leaf below a node is equally likely; a value of a bag is as likely as its count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError, when_run
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_text
from duckdb_anon.rewrite.query.tables import TableInfo, list_type
from duckdb_anon.rewrite.query.template import mapped, name, own, select, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.known_expressions import equal_to
from duckdb_anon.rewrite.shapes.parts import SUBQUERIES, Part, Request, aliased

NULL_LABEL = "(null)"
MOST_ASKED_TWICE = 8
"""Conditions of more nodes are written once, though sets of one member are searched then."""


@dataclass(frozen=True)
class SetPart(Part):
    """A nominal attribute published as the list of values it may stand for; a NULL list is the value NULL."""

    even: ClassVar[bool] = True

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a member."""
        return select(
            "select _cell, unnest(coalesce(_cell, [null])) as {value} from {cells}",
            value=self.columns[0],
            cells=self.cells(),
        )

    def opened(self, cell: exp.Expr) -> exp.Expr | None:
        """The members."""
        return tree("coalesce({cell}, [null])", cell=cell) if self.even else None

    def size(self, cell: exp.Expr) -> exp.Expr | None:
        """The number of members."""
        return self._members(cell)

    def _members(self, cell: exp.Expr) -> exp.Expr:
        return tree("greatest(array_length({cell}), 1)", cell=cell)

    def of_row(self, request: Request, share: exp.Column) -> exp.Expr | None:
        """How many members are asked for; None where their values are."""
        condition = request.condition
        if request.value is not None or condition is None or condition.find(*SUBQUERIES, exp.Lambda):
            return None
        if any(column.table for column in all_of(condition, exp.Column)):  # of a query around this one
            return None
        if request.wanted == "mean" and not self.even:
            return None
        kind = list_type(self.release.types.get(fold(self.key.name), "")) if isinstance(self.key, exp.Column) else ""
        wanted = equal_to(condition, kind or "")
        if wanted is not None and len(wanted) == 1:
            entry = tree(_OF_ONE, cell=self.key, value=wanted[0])
            tests = {"mean": "{share}", "possible": "{share} <> 0", "certain": "{share} = 1"}
            return tree(tests[request.wanted], share=entry)  # one expression, which DuckDB reckons once

        def asked_of(value: exp.Expr) -> exp.Expr:
            return mapped(condition, lambda one: value if isinstance(one, exp.Column) else None)

        inside, cells = asked_of(own("member")), {"cell": self.key}
        if request.wanted == "mean" and sum(1 for _ in condition.walk()) <= MOST_ASKED_TWICE:
            return tree(
                "case when array_length({cell}) > 1 "
                "then array_length(list_filter({cell}, lambda _member: {inside})) / array_length({cell}) "
                "else ({first} is true)::int end",
                inside=inside,
                first=asked_of(tree("{cell}[1]", **cells)),
                **cells,
            )
        found = tree(
            "array_length(list_filter(coalesce({cell}, [null]), lambda _member: {inside}))", inside=inside, **cells
        )
        if request.wanted == "possible":
            return tree("{found} > 0", found=found)
        sign = "/" if request.wanted == "mean" else "="
        return tree(f"{{found}} {sign} {{size}}", found=found, size=self._members(self.key))


_OF_ONE = (
    "case when array_length({cell}) > 1 then list_contains({cell}, {value})::int / array_length({cell}) "
    "else ({cell}[1] is not distinct from {value})::int end"
)
"""The share of one value in a set: not 0 where it is in there, 1 where it is alone. Sets of one member, which are most
where classes are small, are looked at and not searched."""


@dataclass(frozen=True)
class NodePart(Part):
    """An attribute published as hierarchy nodes; a label that is no node of the hierarchy is a value.

    A text that is none is refused while planning (`engine.release_texts`); with low and high it is an error when the
    query runs, too, since the release may be another one then.

    NULL is a leaf of its own under the root, labelled '(null)'. Whether a root stands for NULL too is seen from
    the release only where that leaf occurs in it; elsewhere it weighs nothing, but bounds reckon with it.
    """

    hierarchy: TableInfo | None = None
    kind: str = "VARCHAR"

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a leaf below the node; NULL stands for itself, and perhaps below a root."""
        label = tree("nullif(_cell, '(null)')")
        if (unknown := self.unknown) is not None:
            label = tree("case when _cell <> '(null)' then error({unknown}) end", unknown=unknown)
        return select(
            f"""
            select * from (
              select _cell, case when _node is null then {{label}}::{self.kind} else _leaf end as {{value}},
                1 as _weight
              from {{cells}} left join {{leaves}} on _cell = _node
              union all
              select _cell, null::{self.kind}, _null_seen
              from (select _cell, max(coalesce(_cell = '(null)', true)::integer) over () as _null_seen
                from {{cells}})
              where _cell in ({{roots}})
            )""",
            value=self.columns[0],
            label=label,
            cells=self.cells(),
            leaves=self.leaves(),
            roots=self._roots(),
        )

    @property
    def unknown(self) -> exp.Expr | None:
        """The message of an error where a text is no node; None where such labels are values, or nothing is certain."""
        if not (self.release.certain and is_text(self.kind)):
            return None
        text = f"a text of '{self.columns[0]}' in {self.release.name} is not in the hierarchy, so it cannot be read"
        return exp.Literal.string(when_run(text))

    def _roots(self) -> exp.Expr:
        known = self.hierarchy
        if known is None or not known.columns:
            return exp.null()
        return select(
            "select {level}::varchar from {tree}", level=known.columns[-1][0], tree=aliased(known, name("tree"))
        )

    def leaves(self) -> exp.Query:
        """SELECT node, leaf: every node with the leaves at or below it."""
        known = self.hierarchy
        if known is None or not known.columns:
            raise RewriteError(
                f"column '{self.columns[0]}' was generalized along a hierarchy whose table the planner cannot "
                f"see{f' ({known.name})' if known else ''}; commit the table, or name it with hierarchies := {{...}}"
            )
        levels = [tree("{level}::varchar", level=name_of) for name_of, _ in known.columns]
        return select(
            f"select distinct unnest([{{levels}}]) as _node, {{leaf}}::{self.kind} as _leaf from {{tree}}",
            levels=levels,
            leaf=known.columns[0][0],
            tree=aliased(known, name("tree")),
        )


@dataclass(frozen=True)
class BagPart(Part):
    """A sensitive attribute published as MAP(value, count), one map a bucket; a MAP cannot name NULL."""

    column: exp.Expr = field(default_factory=exp.null)

    @property
    def bucket(self) -> exp.Expr:
        """The bucket, over a row of the release."""
        return self.key

    @property
    def total(self) -> exp.Expr | None:
        """The rows of the bucket, which `values` shows."""
        return own("size")

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a value of the bucket, weighted by its count; rows no count speaks of hold NULL."""
        return select(
            """
            select * from (
              select _cell, unnest(list_append(map_keys(_counts), null)) as {value},
                unnest(list_append(map_values(_counts), _size - _counted)) as _weight, _size
              from (select *, coalesce(list_sum(map_values(_counts)), 0)::bigint as _counted,
                greatest(_rows, _counted) as _size
                from (select {key} as _cell, any_value({counts}) as _counts, count(*) as _rows
                  from {release} group by _cell))
            ) where _weight > 0""",
            value=self.columns[0],
            key=self.key,
            counts=self.column,
            release=self.source(),
        )
