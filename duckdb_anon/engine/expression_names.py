"""What DuckDB calls a column that a query computes and gives no name: its own spelling of the expression.

`count(*)` is called `count_star()`, `a + 1` is called `(a + 1)`; versions of DuckDB differ in details, so the one that
runs is asked. Nothing is bound or run: DuckDB's parser reads the expression. Cost: some 0.1 ms an expression, once.
"""

from __future__ import annotations

from functools import lru_cache

import duckdb


@lru_cache(maxsize=4096)
def duckdb_name(expression: str) -> str | None:
    """The name of a column that is this expression; None where DuckDB reads no single expression in the text.

    Args:
        expression: SQL, as it stands in SELECT.

    >>> duckdb_name("COUNT(*)"), duckdb_name("sum(a)/ 2"), duckdb_name("a from t")
    ('count_star()', '(sum(a) / 2)', None)
    """
    try:
        return str(duckdb.SQLExpression(expression).get_name())
    except duckdb.Error:
        return None
