"""Counts: a released row is a box with a `noisy_count` of the original rows in it.

Noise may make counts negative; they are summed as they are, which keeps sums unbiased. No hard bounds exist.
"""

from __future__ import annotations

from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.model.release_formats.schema import Carrier, Claims, Shape, Weight

COUNT = Carrier("noisy_count", is_number, "how many rows a cell holds", "how many rows this row stands for, with noise")


def claim(claims: Claims) -> bool:
    """Claim the counts."""
    found = claims.take(COUNT)
    if found is None:
        return False
    claims.weights.append(Weight(found, "rows"))
    claims.bounded = claims.complete = False
    return True


SHAPE = Shape(
    "counts",
    "holds noisy counts, a row a cell and not a person",
    claim,
    (COUNT,),
    instead="what such a release promises is the epsilon it was made with, and relative_error answers queries on it",
)
