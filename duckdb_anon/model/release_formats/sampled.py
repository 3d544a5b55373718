"""Sampled: a constant column `sampling_rate` says that each original row was kept with this probability.

Every released row then stands for 1 / rate original rows (Horvitz and Thompson 1952). No hard bounds exist; the
rows were drawn independently, so 95% intervals do.
"""

from __future__ import annotations

from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.model.release_formats.schema import Carrier, Claims, Shape, Weight

RATE = Carrier(
    "sampling_rate", is_number, "the probability that a row was kept", "chance that an original row was released"
)


def claim(claims: Claims) -> bool:
    """Claim the rate."""
    found = claims.take(RATE)
    if found is None:
        return False
    claims.weights.append(Weight(found, "rate"))
    claims.complete = False
    return True


SHAPE = Shape("sampled", "is a sample", claim, (RATE,), names=False)
