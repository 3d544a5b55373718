"""Retained: a constant column `retention` says that each sensitive value was kept with this probability.

Otherwise it was drawn anew from the distribution of the released values, which replacement leaves as it was in
expectation.
"""

from __future__ import annotations

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.model.release_formats.schema import Carrier, Claims, Shape

RETENTION = Carrier(
    "retention", is_number, "the probability that a value was kept", "chance that a sensitive value was kept"
)


def claim(claims: Claims) -> bool:
    """Claim the probability and the sensitive columns it speaks of."""
    found = claims.take(RETENTION)
    if found is None:
        return False
    claims.retention = found
    for name in [n for n in claims.unclaimed if fold(n) in claims.sensitive]:
        claims.carry(name, "value", "replaced")
    return True


SHAPE = Shape("retained", "has a share of its sensitive values replaced", claim, (RETENTION,), names=False)
