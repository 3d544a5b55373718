"""Buckets: exact rows, and in each bucket a MAP from sensitive value to count (Xiao and Tao 2006, Anatomy).

Inside a bucket the sensitive value of a row is any of the bucket's, as likely as its count and independent of the
row's other columns.
"""

from __future__ import annotations

from duckdb_anon.model.release_formats.duckdb_types import bag_type, list_type, struct_fields
from duckdb_anon.model.release_formats.schema import Carrier, Claims, Shape

BUCKET = Carrier(
    "bucket",
    lambda kind: not (bag_type(kind) or list_type(kind) or struct_fields(kind)),
    "the bucket",
    "number of the bucket: inside it, columns are permuted independently",
)


def claim(claims: Claims) -> bool:
    """Claim the bucket and the counts."""
    names = [
        name
        for name, kind in claims.unclaimed.items()
        if bag_type(kind) is not None and claims.may_be_form(name) and not bag_type(claims.original_type(name))
    ]
    if not names:
        return False
    for name in names:
        claims.carry(name, "counts", "permuted")
    claims.bucket = claims.take(BUCKET) or claims.bucket
    return True


SHAPE = Shape("buckets", "shows its sensitive values as counts of buckets", claim, (BUCKET,))
