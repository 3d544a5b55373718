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
    slices: dict[str, tuple[tuple[str, str], ...]] = {}
    taken: set[str] = set()  # slices partition the attributes, and come before columns that are released as they are
    for name, kind in claims.unclaimed.items():
        fields = _fields(claims, name, kind)
        names = {fold(field) for field, _ in fields}
        if fields and not names & taken:
            slices[name] = fields
            taken |= names
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
    """Fields of a slice; none for any other column. Slices partition the attributes, so no field is a column too."""
    fields = struct_fields(kind) if claims.original is not None else slice_fields(kind)
    names = {fold(field) for field, _ in fields}
    if names & {fold(column) for column in claims.release if column != name}:
        return ()
    if claims.original is None:
        return fields if not claims.labelled or names & set(claims.labelled) else ()
    own = claims.original_type(name) == kind or not all(claims.may_be_original(field) for field in names)
    return () if own else fields


SHAPE = Shape(
    "sliced",
    "has columns permuted apart inside buckets",
    claim,
    (BUCKET,),
    instead="slicing_diversity and disclosure tell its risk, relative_error answers queries on it",
)
