"""Suppressed: a constant column `suppressed` says how many original rows were left out.

Nothing is known of them, so they are taken to be like the released rows: each of n released rows stands for
1 + suppressed / n. They are the unusual ones in truth. A COUNT has hard bounds all the same: none or all of them
count.
"""

from __future__ import annotations

from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.model.release_formats.schema import Carrier, Claims, Shape, Weight

SUPPRESSED = Carrier("suppressed", is_number, "the number of rows left out", "number of rows that were left out")


def claim(claims: Claims) -> bool:
    """Claim the number of rows left out."""
    found = claims.take(SUPPRESSED)
    if found is None:
        return False
    claims.weights.append(Weight(found, "missing"))
    claims.complete = False
    return True


SHAPE = Shape("suppressed", "left rows out", claim, (SUPPRESSED,), names=False)
