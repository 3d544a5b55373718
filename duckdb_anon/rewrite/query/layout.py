"""How a rewritten query is laid out: a clause a line, a step indented in its parentheses."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB


class _Layout(DuckDB.Generator):  # type: ignore[misc, valid-type]  # a class that sqlglot's metaclass puts there
    """DuckDB's SQL with lists, conditions and expressions on one line."""

    def sep(self, sep: str = " ") -> str:
        return sep or "\n"

    def seg(self, sql: str, sep: str = " ") -> str:
        return f"\n{sql}"

    def expressions(self, *args: Any, **options: Any) -> str:
        return str(super().expressions(*args, **{**options, "flat": True}))

    def paren_sql(self, expression: exp.Paren) -> str:
        return f"({self.sql(expression, 'this')})"

    def where_sql(self, expression: exp.Where) -> str:
        clause = f"WHERE {self.sql(expression, 'this')}"
        return clause if isinstance(expression.parent, exp.Filter) else self.seg(clause)

    def having_sql(self, expression: exp.Having) -> str:
        return self.seg(f"HAVING {self.sql(expression, 'this')}")

    def prepend_ctes(self, expression: exp.Expr, sql: str) -> str:
        with_ = self.sql(expression, "with_")
        return f"{with_}\n{sql}" if with_ else sql

    def with_sql(self, expression: exp.With) -> str:
        steps = ", ".join(self.sql(step) for step in expression.expressions)
        return f"WITH {'RECURSIVE ' if expression.args.get('recursive') else ''}{steps}"

    def set_operation(self, expression: exp.SetOperation) -> str:
        return f"\n{super().set_operation(expression)}"


def laid_out(query: exp.Expr) -> str:
    """Print a rewritten query."""
    generator = _Layout(pretty=True, normalize_functions="lower", max_text_width=10_000, dialect="duckdb")
    return str(generator.generate(query, copy=False))
