"""What aggregates count of rows of an outer join that find no row of the original.

    FROM regions r LEFT JOIN people p ON p.region = r.name
    sum(CASE WHEN p.age > 30 THEN 1 ELSE 0 END)      0 of a region without people, where people alone give NULL

Such a row stands in the rewritten query's join, too, with NULLs; what it adds is added to the estimate. A row that some
released row may match is taken to be matched, so what is answered so has no bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.estimate.aggregates import Aggregate, valued_rows
from duckdb_anon.rewrite.estimate.expectation import split
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.query.parse import plain
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.template import copied, every, tree
from duckdb_anon.rewrite.query.unmatched import is_null, never_true, unmatched
from duckdb_anon.rewrite.query.walking import columns_of


@dataclass(frozen=True)
class UnmatchedRows:
    """The rows of one LEFT JOIN that find no row of the original.

    Attributes:
        join: the join.
        alias: the original's alias.
        original: the original.
    """

    join: exp.Join
    alias: str
    original: TableInfo

    @classmethod
    def of(cls, select: exp.Select, table: exp.Table, original: TableInfo) -> UnmatchedRows | None:
        """Those of a SELECT; None where there are none. An outer join whose WHERE leaves them out becomes an inner one.

        Args:
            select: the SELECT.
            table: the original in it.
            original: the original.
        """
        join = table.parent
        if not isinstance(join, exp.Join) or (join.side or "").upper() != "LEFT":
            return None
        found = cls(join, table.alias_or_name, original)
        if not found.filters(select.args["where"].this if select.args.get("where") else None):
            return found
        join.set("side", None)
        return None

    def adds(self, aggregate: Aggregate) -> bool:
        """Whether an aggregate counts such rows."""
        if never_true(self._of(aggregate.condition)):
            return False
        return aggregate.value is None or not is_null(self._of(aggregate.value))

    def matched(self, aggregate: Aggregate) -> Aggregate:
        """An aggregate of the other rows: a count that asks of no column of the original would take them all."""
        if aggregate.value is not None or columns_of(aggregate.condition, self.alias):
            return aggregate
        return replace(aggregate, condition=every([aggregate.condition, tree("{key} is not null", key=self.key)]))

    def added_to(self, found: exp.Expr, aggregate: Aggregate, rest: exp.Expr | None, steps: Steps) -> exp.Expr:
        """An estimate with what such rows add to it.

        Args:
            found: the estimate from rows that are matched.
            aggregate: what is estimated, of all rows.
            rest: conditions of the query that are still to be satisfied.
            steps: steps of the rewritten query.
        """
        among = every([tree("{key} is null", key=self.key), self._of(aggregate.condition)])
        if aggregate.value is None:
            return tree("{found} + count(*) filter (where {among})", found=found, among=among)
        value = self._of(aggregate.value)
        if aggregate.kind in ("min", "max"):
            chosen = "least" if aggregate.kind == "min" else "greatest"
            text = f"{chosen}({{found}}, {aggregate.kind}({{value}}) filter (where {{among}}))"
            return tree(text, found=found, value=value, among=among)
        total = tree("sum({value}) filter (where {among})", value=value, among=among)
        if aggregate.kind == "sum":
            return tree("coalesce({found} + {total}, {found}, {total})", found=found, total=total)
        rows = valued_rows(aggregate, rest, steps)
        return tree(
            "(coalesce({found} * {rows}, 0) + coalesce({total}, 0)) / "
            "nullif({rows} + count({value}) filter (where {among}), 0)",
            found=found,
            rows=rows,
            total=total,
            value=value,
            among=among,
        )

    def require_conditions(self, exact: list[exp.Expr], rest: exp.Expr | None, apart: list[exp.Expr]) -> None:
        """Raise where a condition of WHERE is judged before the join, but such rows may satisfy it.

        Args:
            exact: conditions on exact columns.
            rest: what rows answer in part.
            apart: aggregates with steps of their own, which know of no such rows.

        Raises:
            RewriteError: naming the condition or the aggregate.
        """
        for node in apart:
            if any(isinstance(one, (exp.Coalesce, exp.Case, exp.If, exp.Is)) for one in node.walk()):
                raise RewriteError(
                    f"{plain(node)} on the optional side of a join cannot be estimated: rows that find none of "
                    f"{self.original.name} may count; ask it of a column alone"
                )
        for one in [*exact, *([rest] if rest is not None else [])]:
            if columns_of(one, self.alias):
                raise RewriteError(
                    f"{plain(one)} may hold for rows that find none of {self.original.name}, on the optional side of a "
                    "join, which cannot be estimated; write NOT EXISTS for them, or ask WHERE ... IS NOT NULL of a "
                    "column for the others"
                )

    def filters(self, where: exp.Expr | None) -> bool:
        """Whether a condition of WHERE leaves such rows out, so that the join may as well be an inner one."""
        parts = split(where) if where is not None else []
        return any(columns_of(one, self.alias) and never_true(self._of(one)) for one in parts)

    @cached_property
    def key(self) -> exp.Column:
        """A column of the original that is NULL beside such rows only.

        Raises:
            RewriteError: ON compares none for equality.
        """
        on = self.join.args.get("on")
        for one in split(on) if on is not None else []:
            for side in (one.this, one.expression) if isinstance(one, exp.EQ) else ():
                if isinstance(side, exp.Column) and side.table == self.alias:
                    return copied(side)
        raise RewriteError(
            f"{self.original.name} stands on the optional side of a join that does not compare a column of it for "
            "equality, so rows that find none are not known; put it on the side that keeps its rows"
        )

    def _of(self, node: exp.Expr) -> exp.Expr:
        return unmatched(node, self.alias, self.original)
