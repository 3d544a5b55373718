"""SQL that was written for DuckDB, in the words of another engine.

Cost: a parse and a generation.
"""

from __future__ import annotations

import sqlglot

from duckdb_anon.model.errors import RewriteError

DIALECTS = ("duckdb", "spark")


def spoken(sql: str, dialect: str) -> str:
    """Translate one statement from DuckDB's dialect.

    Raises:
        RewriteError: it uses what the other engine has no words for.

    >>> spoken("select count(*) as n from t group by grouping sets ((a), (b))", "spark")
    'SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a), (b))'
    """
    if dialect == "duckdb":
        return sql
    try:
        return sqlglot.transpile(sql, read="duckdb", write=dialect, unsupported_level=sqlglot.ErrorLevel.RAISE)[0]
    except (sqlglot.errors.UnsupportedError, sqlglot.errors.ParseError) as error:
        raise RewriteError(f"{dialect} has no words for this: {str(error).splitlines()[0]}") from error
