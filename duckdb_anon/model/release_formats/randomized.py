"""Randomized: a constant column `rr` tells how each column was randomized (Guo, Ying and Wu 2011).

It is a STRUCT from column to STRUCT(p, domain): a value was kept with probability p, else drawn evenly from the
other values of the domain. The inverted channel gives unbiased counts that may be negative, so no hard bounds exist.
"""

from __future__ import annotations

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_channels, struct_fields
from duckdb_anon.model.release_formats.schema import Carrier, Claims, Shape

CHANNELS = Carrier(
    "rr",
    is_channels,
    "how the rows were randomized",
    "how values were randomized: probability of keeping the true one, and the values drawn from",
)


def claim(claims: Claims) -> bool:
    """Claim the channels and the columns they name."""
    found = claims.find(CHANNELS)
    if found is None:
        return False
    claims.channels = found
    named = {fold(field) for field, _ in struct_fields(claims.unclaimed.pop(found))}
    for name in [n for n in claims.unclaimed if fold(n) in named and claims.may_be_original(n)]:
        claims.carry(name, "value", "randomized")
    claims.bounded = False
    return True


SHAPE = Shape(
    "randomized",
    "is randomized, each value its own only with some probability",
    claim,
    (CHANNELS,),
    instead="rr_risk tells its risk, rr_reconstruct, correlation and relative_error what it says",
)
