"""Edged: a constant column `sensitive_edges` says that each sensitive value stands for values of at least so many rows.

Values at the ends stand for all beyond, others for their neighbours, 'other' for all rare names. They are read as they
stand, so that no bound holds for certain.
"""

from __future__ import annotations

from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.model.release_formats.schema import Carrier, Claims, Shape

EDGES = Carrier(
    "sensitive_edges",
    is_number,
    "how many carry a sensitive value",
    "fewest rows, or persons, of the original that carry a sensitive value as released",
)


def claim(claims: Claims) -> bool:
    """Claim the number; values are still values, so no measure needs to answer them."""
    found = claims.take(EDGES)
    if found is not None:
        claims.edges, claims.bounded = found, False
    return False


SHAPE = Shape("edged", "has coarser sensitive values", claim, (EDGES,), names=False)
