"""SQL that was written for DuckDB, in the words of another engine.

What sqlglot does not know by name it would pass on as it is, to fail on the other engine; so such functions are named
here with their words there, and any other is refused. Cost: a parse and a generation.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from duckdb_anon.model.errors import RewriteError, listed
from duckdb_anon.model.folding import fold

DIALECTS = ("duckdb", "spark")
_NOW = {name: "current_timestamp" for name in ("now", "get_current_timestamp", "transaction_timestamp")}
_SPARK = {"error": "raise_error", "map_values": "map_values", "map_keys": "map_keys", **_NOW}
_WIDER = {
    exp.DType.INT128: "DECIMAL(38, 0)",
    exp.DType.UINT128: "DECIMAL(38, 0)",
    exp.DType.UBIGINT: "DECIMAL(20, 0)",
    exp.DType.UINT: "BIGINT",
    exp.DType.USMALLINT: "INT",
    exp.DType.UTINYINT: "SMALLINT",
    exp.DType.TIMESTAMP_S: "TIMESTAMP",
    exp.DType.TIMESTAMP_MS: "TIMESTAMP",
}
"""Types of DuckDB that others lack, and types of theirs that hold all of their values, or as many as there are."""
_UNKNOWN = {exp.DType.BIGNUM, exp.DType.TIMESTAMP_NS, exp.DType.TIME, exp.DType.UUID, exp.DType.BIT}


def spoken(sql: str, dialect: str) -> str:
    """Translate one statement from DuckDB's dialect.

    Args:
        sql: the statement.
        dialect: one of `DIALECTS`.

    Raises:
        RewriteError: it uses what the other engine has no words for.

    >>> spoken("select a::hugeint as n from t", "spark")
    'SELECT CAST(a AS DECIMAL(38, 0)) AS n FROM t'
    >>> spoken("select count(*) as n from t group by grouping sets ((a), (b))", "spark")
    'SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a), (b))'
    """
    if dialect == "duckdb":
        return sql
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
        unknown = set()
        for call in tree.find_all(exp.Anonymous):
            name = fold(str(call.this))
            if name not in _SPARK:
                unknown.add(name)
            else:
                call.set("this", _SPARK[name])
        if unknown:
            raise RewriteError(f"{dialect} has no words for {listed(sorted(unknown))}, which the estimate needs")
        for select in tree.find_all(exp.Select):
            if sum(1 for one in select.expressions for _ in one.find_all(exp.Explode, exp.Unnest)) > 1:
                raise RewriteError(f"{dialect} unnests one list a SELECT, and the estimate needs several side by side")
        for kind in list(tree.find_all(exp.DataType)):
            if kind.this in _UNKNOWN:
                raise RewriteError(f"{dialect} has no type for {kind.sql('duckdb')}")
            if kind.this in _WIDER:
                kind.replace(exp.DataType.build(_WIDER[kind.this], dialect=dialect))
        return str(tree.sql(dialect, unsupported_level=sqlglot.ErrorLevel.RAISE))
    except (sqlglot.errors.UnsupportedError, sqlglot.errors.ParseError) as error:
        raise RewriteError(f"{dialect} has no words for this: {str(error).splitlines()[0]}") from error
