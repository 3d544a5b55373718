"""Linked: a column `row_id` says which row of the original a released row came from, NULL for a fake row.

For the data holder's own checks, never for publication.
"""

from __future__ import annotations

from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.model.release_formats.schema import Carrier, Claims, Shape

SOURCE = Carrier(
    "row_id",
    is_number,
    "whose its rows are, as it does not number rows",
    "the source row's number; a table that has it must not be published",
)


def claim(claims: Claims) -> bool:
    """Claim the row numbers; they change nothing of what the others say, so no measure needs to answer them."""
    claims.source = claims.take(SOURCE) or ""
    return False


SHAPE = Shape("linked", "says whose its rows are", claim, (SOURCE,), names=False)
