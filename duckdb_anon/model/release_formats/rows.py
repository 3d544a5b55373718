"""Rows: columns with the original's types are the original's values; the query itself is the estimator.

Made by MuCo, and by any method for the columns it leaves alone. MuCo's randomness keeps expectations close
without being invertible, so its rows are read as they are (Li et al., MuCo, experiments on SUM queries).
"""

from __future__ import annotations

from duckdb_anon.model.release_formats.boxes import cell_of
from duckdb_anon.model.release_formats.schema import Claims, Shape


def claim(claims: Claims) -> bool:
    """Claim every column that the original has under the same name."""
    for name, kind in list(claims.unclaimed.items()):
        if claims.may_be_original(name):
            claims.carry(name, "items" if cell_of(claims, name, kind) == "items" else "value")
    return True


SHAPE = Shape("rows", "has plain rows", claim)
