"""Answers of queries, as tests hold them against each other."""

from typing import Any

import duckdb


def dicts(con: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    """Rows by column name."""
    cursor = con.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def answered(con: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """The first row."""
    return dicts(con, sql)[0]


def differing(con: duckdb.DuckDBPyConnection, a: str, b: str) -> int:
    """Rows that one of two tables has more often than the other."""
    sql = f"select count(*) from ((from {a} except all from {b}) union all (from {b} except all from {a}))"
    return int(con.execute(sql).fetchall()[0][0])
