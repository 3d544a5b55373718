"""SQL that was written for DuckDB, in the words of another engine.

What sqlglot does not know by name it would pass on as it is, to fail on the other engine; so such functions are named
here with their words there, and any other is refused. Cost: a parse and a generation.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from duckdb_anon.model.errors import RewriteError, listed

DIALECTS = ("duckdb", "spark")
# Spark has no whole numbers of 16 bytes; its decimals hold all but the largest of them, and say where they do not
_WIDE = (exp.DataType.Type.INT128, exp.DataType.Type.UINT128)
_SPARK = {"error": "raise_error", "map_values": "map_values", "map_keys": "map_keys"}


def spoken(sql: str, dialect: str) -> str:
    """Translate one statement from DuckDB's dialect.

    Args:
        sql: the statement.
        dialect: one of `DIALECTS`.

    Raises:
        RewriteError: it uses what the other engine has no words for.

    >>> spoken("select count(*) as n from t group by grouping sets ((a), (b))", "spark")
    'SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a), (b))'
    """
    if dialect == "duckdb":
        return sql
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
        unknown = set()
        for call in tree.find_all(exp.Anonymous):
            name = str(call.this).lower()
            if name not in _SPARK:
                unknown.add(name)
            else:
                call.set("this", _SPARK[name])
        if unknown:
            raise RewriteError(f"{dialect} has no words for {listed(sorted(unknown))}, which the estimate needs")
        for wide in list(tree.find_all(exp.DataType)):
            if wide.this in _WIDE:
                wide.replace(exp.DataType.build("decimal(38, 0)", dialect="duckdb"))
        return tree.sql(dialect=dialect, unsupported_level=sqlglot.ErrorLevel.RAISE)
    except (sqlglot.errors.UnsupportedError, sqlglot.errors.ParseError) as error:
        raise RewriteError(f"{dialect} has no words for this: {str(error).splitlines()[0]}") from error
