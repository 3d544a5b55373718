"""Whether a rewritten query gives the original's answer, on releases that change nothing (`rewrite_tables.SELF`)."""

import math
from typing import Any

import duckdb

ROLES = "qi := ['age', 'sex', 'region', 'born', 'weight'], sensitive := 'disease'"
Rows = list[tuple[Any, ...]]


def rewritten(con: duckdb.DuckDBPyConnection, query: str, shape: str) -> str:
    """Rewrite a query for the identity release of a shape."""
    row = con.execute(
        f"select rewrite_query($1, 'people', 'identity_{shape}', {ROLES}, spread := 'uniform')", [query]
    ).fetchone()
    return str(row[0])


def assert_gives(con: duckdb.DuckDBPyConnection, text: str, names: list[str], truth: Rows, shape: str) -> None:
    """A query shows columns of these names and these rows, in any order."""
    found = con.execute(text)
    assert [d[0] for d in found.description] == names, shape
    assert_same(found.fetchall(), truth, shape)


def assert_same(told: Rows, truth: Rows, shape: str = "") -> None:
    """The same rows, in any order."""
    mine, own = sorted(told, key=str), sorted(truth, key=str)
    assert len(mine) == len(own), (shape, mine, own)
    for row, other in zip(mine, own, strict=True):
        assert all(map(_same, row, other)) and len(row) == len(other), (shape, mine[:5], own[:5])


def _same(one: Any, other: Any) -> bool:
    """Equal, or the same number in another type; NaN is the same as NaN alone."""
    if one is None or other is None or isinstance(one, str):
        return bool(one == other)
    try:
        if math.isnan(float(one)) or math.isnan(float(other)):
            return math.isnan(float(one)) and math.isnan(float(other))
        return math.isclose(float(one), float(other), rel_tol=1e-6, abs_tol=1e-6)
    except (TypeError, ValueError):
        return bool(one == other)
