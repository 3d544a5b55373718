"""Sliced releases as the pure-SQL measures read them: what forms the classes, and slices as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from duckdb_anon.engine.catalog import Relation
from duckdb_anon.engine.sql_quoting import ident


def classes_of_slices(
    slices: Mapping[str, Sequence[str]], bucket: str, qi: Sequence[str], sensitive: Sequence[str]
) -> list[str]:
    """What forms the classes of a sliced release.

    Buckets do, as inside one nobody knows which slices belong together; and, where a sensitive column is measured,
    the quasi-identifiers that share its slice, as they stand beside it.

    Args:
        slices: fields of each STRUCT column.
        bucket: the column that numbers the buckets.
        qi: the quasi-identifiers.
        sensitive: the sensitive column(s).
    """
    permuted = {field for fields in slices.values() for field in fields}
    if not permuted & set(qi):
        return list(qi)
    beside = {field for fields in slices.values() if set(sensitive) & set(fields) for field in fields}
    return [bucket, *(name for name in qi if name in beside)]


def unsliced(relation: Relation, slices: Mapping[str, Sequence[str]]) -> str:
    """A sliced release with the fields of its STRUCT columns as columns of their own, as a SELECT in parentheses."""
    columns = []
    for name in relation.columns:
        fields = slices.get(name)
        columns += [f"{ident(name)}.{ident(f)} as {ident(f)}" for f in fields] if fields else [ident(name)]
    return f"(select {', '.join(columns)} from {relation.sql})"
