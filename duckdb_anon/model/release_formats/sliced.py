"""Sliced: one STRUCT column per attribute group, each permuted on its own inside its bucket.

Made by slicing (Li, Li, Zhang and Molloy 2012) and merging (Hasan et al. 2018). Within a bucket the groups are
independent. Fields may be generalized. Merging may have added fake rows that nothing in the release tells from real
ones, so there are no hard bounds.
"""

from __future__ import annotations

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.boxes import cell_of
from duckdb_anon.model.release_formats.buckets import BUCKET
from duckdb_anon.model.release_formats.duckdb_types import slice_fields, struct_fields
from duckdb_anon.model.release_formats.schema import Claims, Content, Shape


def claim(claims: Claims) -> bool:
    """Claim the bucket and the STRUCT columns made of the original's columns."""
    if claims.find(BUCKET) is None:
        return False
    slices = {name: fields for name, kind in claims.unclaimed.items() if (fields := _fields(claims, name, kind))}
    if not slices:
        return False
    for name, fields in slices.items():
        for field, kind in fields:
            own = claims.original_type(field)
            cell = cell_of(claims, field, kind)
            claims.columns[fold(field)] = Content(fold(field), name, field, kind, cell, "permuted", own)
        del claims.unclaimed[name]
    claims.bucket = claims.take(BUCKET) or ""
    claims.bounded = False
    return True


def _fields(claims: Claims, name: str, kind: str) -> tuple[tuple[str, str], ...]:
    """Fields of a slice; none for any other column."""
    fields = struct_fields(kind)
    if claims.original is None:
        return slice_fields(kind)
    own = claims.original_type(name) == kind or not all(claims.may_be_original(field) for field, _ in fields)
    return () if own else fields


SHAPE = Shape(
    "sliced",
    "has columns permuted apart inside buckets",
    claim,
    (BUCKET,),
    instead="slicing_diversity and disclosure tell its risk, relative_error answers queries on it",
)
