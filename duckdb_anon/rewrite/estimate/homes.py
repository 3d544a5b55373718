"""The home of an expression: the one independent part of a row that it speaks of.

Exact columns (`EXACT`) and inexact parts are read where the release is read. Columns the final query groups by, joins
on, or mixes in one indivisible expression are spelled out value by value before it runs (`BY_VALUE`), together with
the columns of other tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.estimate.expectation import BY_VALUE, EXACT, whens
from duckdb_anon.rewrite.query.template import column, mapped
from duckdb_anon.rewrite.query.walking import all_of, columns_of
from duckdb_anon.rewrite.shapes.released import Model


class Homes:
    """Assigns expressions of one SELECT to parts."""

    def __init__(self, alias: str, model: Model, others: Iterable[str]) -> None:
        """Read columns of `alias` through `model`; `others` are the aliases of the other tables.

        Args:
            alias: name of the table in the query.
            model: what the release says.
            others: other tables of the query.
        """
        self.alias, self.model = alias, model
        self.others = set(others)
        self.by_value: set[str] = set()

    def columns(self, node: exp.Expr) -> set[str]:
        """Columns of the original in an expression, its subqueries included."""
        return columns_of(node, self.alias)

    def spell_out(self, columns: Iterable[str]) -> bool:
        """Spell columns out by value, with all others of their parts; tell whether that was news."""
        before = len(self.by_value)
        for one in columns:
            part = self.model.part_of.get(one)
            self.by_value.update(part.columns if part else (one,))
        return len(self.by_value) > before

    def of(self, node: exp.Expr) -> str | None:
        """The one part an expression speaks of, None if there are several."""
        found, flexible = set(), False
        queries = False
        for one in all_of(node, exp.Column, exp.Query):
            if not isinstance(one, exp.Column):
                queries = True
            elif one.table == self.alias:
                name = fold(one.name)
                part = self.model.part_of.get(name)
                if part is None and name in self.by_value:
                    flexible = True
                else:
                    found.add(BY_VALUE if name in self.by_value else part.name if part else EXACT)
            elif one.table in self.others:
                found.add(BY_VALUE)
        if queries and any(self.columns(query) for query in all_of(node, exp.Query)):
            found.add(BY_VALUE)
        if not found:
            return EXACT
        if len(found) > 1 or (flexible and not found <= {EXACT, BY_VALUE}):
            return None
        return found.pop()

    def mixed(self, node: exp.Expr) -> Iterator[exp.Expr]:
        """Indivisible pieces of a condition or amount that speak of several parts."""
        node = node.unnest()
        if self.of(node) is not None:
            return
        if isinstance(node, (exp.And, exp.Or, exp.Add, exp.Sub, exp.Mul, exp.Div)):
            yield from self.mixed(node.left)
            yield from self.mixed(node.right)
        elif isinstance(node, (exp.Not, exp.Neg)):
            yield from self.mixed(node.this)
        elif isinstance(node, exp.Coalesce):
            for option in [node.this, *node.expressions]:
                yield from self.mixed(option)
        elif isinstance(node, (exp.Case, exp.If)):
            for branch in whens(node):
                yield from self.mixed(branch.this)
                yield from self.mixed(branch.args["true"])
            other = node.args.get("default") or node.args.get("false")
            if other is not None:
                yield from self.mixed(other)
        else:
            yield node

    def text(self, node: exp.Expr) -> exp.Expr:
        """An expression on exact columns over a row of the release."""

        def spelled(one: exp.Expr) -> exp.Expr | None:
            if isinstance(one, exp.Column) and one.table == self.alias:
                return self.model.exact[fold(one.name)]
            return None

        return mapped(node.unnest(), spelled)

    def bare(self, node: exp.Expr | None) -> exp.Expr | None:
        """An expression on one part, its columns without their table."""

        def stripped(one: exp.Expr) -> exp.Expr | None:
            if isinstance(one, exp.Column) and one.table == self.alias:
                return column(fold(one.name))
            return None

        return mapped(node, stripped) if node is not None else None
