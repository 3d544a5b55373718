"""How a rewritten query is laid out: a clause a line, a step indented in its parentheses."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

_ATOMS = (
    *(exp.Column, exp.Paren, exp.Literal, exp.Boolean, exp.Null, exp.Round, exp.Coalesce, exp.Greatest, exp.Least),
    *(exp.Sum, exp.Count, exp.Min, exp.Max, exp.Unnest, exp.Explode, exp.ArrayContains),
)
"""What a type may follow after `::` without parentheses."""


class _Layout(DuckDB.Generator):  # type: ignore[misc, valid-type]  # a class that sqlglot's metaclass puts there
    """DuckDB's SQL with lists, conditions and expressions on one line."""

    inline = False
    """Whether a SELECT inside an expression is printed, which stays on its line."""

    def sep(self, sep: str = " ") -> str:
        return " " if self.inline else sep or "\n"

    def seg(self, sql: str, sep: str = " ") -> str:
        return f" {sql}" if self.inline else f"\n{sql}"

    def subquery_sql(self, expression: exp.Subquery, sep: str = " AS ") -> str:
        inner, parent = expression.this, expression.parent
        source = isinstance(parent, (exp.From, exp.Join)) and not (_single(inner) and not expression.alias)
        if self.inline or source or isinstance(parent, exp.CTE) or not _short(inner):
            return str(super().subquery_sql(expression, sep))
        self.inline = True
        try:
            return f"({self.sql(inner).strip()})"
        finally:
            self.inline = False

    def expressions(self, *args: Any, **options: Any) -> str:
        return str(super().expressions(*args, **{**options, "flat": True}))

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        plain = type(expression) is exp.Cast and isinstance(expression.this, _ATOMS)
        if not plain or any(value for key, value in expression.args.items() if key not in ("this", "to")):
            return str(super().cast_sql(expression, safe_prefix))
        return f"{self.sql(expression, 'this')}::{self.sql(expression, 'to')}"

    def paren_sql(self, expression: exp.Paren) -> str:
        return f"({self.sql(expression, 'this')})"

    def where_sql(self, expression: exp.Where) -> str:
        clause = f"WHERE {self.sql(expression, 'this')}"
        return clause if isinstance(expression.parent, exp.Filter) else self.seg(clause)

    def having_sql(self, expression: exp.Having) -> str:
        return self.seg(f"HAVING {self.sql(expression, 'this')}")

    def qualify_sql(self, expression: exp.Qualify) -> str:
        return self.seg(f"QUALIFY {self.sql(expression, 'this')}")

    def prepend_ctes(self, expression: exp.Expr, sql: str) -> str:
        with_ = self.sql(expression, "with_")
        return f"{with_}\n{sql}" if with_ else sql

    def with_sql(self, expression: exp.With) -> str:
        steps = ", ".join(self.sql(step) for step in expression.expressions)
        return f"WITH {'RECURSIVE ' if expression.args.get('recursive') else ''}{steps}"

    def set_operation(self, expression: exp.SetOperation) -> str:
        return f"\n{super().set_operation(expression)}"


def _short(inner: exp.Expr) -> bool:
    """Whether a SELECT of one table fits on a line of the expression it stands in."""
    known = {"expressions", "from_", "where", "having", "limit"}
    return isinstance(inner, exp.Select) and not any(value for key, value in inner.args.items() if key not in known)


def _single(inner: exp.Expr) -> bool:
    """Whether a SELECT reads one column of a table."""
    chosen, source = inner.args.get("expressions") or [], inner.args.get("from_")
    column = len(chosen) == 1 and isinstance(chosen[0], (exp.Column, exp.Literal))
    return column and source is not None and isinstance(source.this, exp.Table)


def laid_out(query: exp.Expr) -> str:
    """Print a rewritten query."""
    options: dict[str, Any] = {"pretty": True, "normalize_functions": "lower", "max_text_width": 10_000}
    try:
        generator = _Layout(dialect="duckdb", **options)
    except TypeError:  # the compiled sqlglot (sqlglot[c], where another package wants it) has no subclasses
        return query.sql("duckdb", **options)
    return str(generator.generate(query, copy=False))
