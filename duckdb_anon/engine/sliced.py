"""Sliced releases as the pure-SQL measures read them: which columns are slices, and what forms the classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.quoting import ident


def slices_of(relation: Relation, catalog: Catalog) -> dict[str, list[str]]:
    """Fields of each STRUCT column of a sliced release; nothing for other tables."""
    if "bucket" not in {name.lower() for name in relation.columns}:
        return {}
    flat = {name: catalog.flattened({name: kind}) for name, kind in relation.columns.items()}
    return {name: list(fields) for name, fields in flat.items() if fields != {name: relation.columns[name]}}


def classes_of_slices(slices: Mapping[str, Sequence[str]], qi: Sequence[str], sensitive: Sequence[str]) -> list[str]:
    """What forms the classes of a sliced release.

    Buckets do, as inside one nobody knows which slices belong together; and, where a sensitive column is measured,
    the quasi-identifiers that share its slice, as they stand beside it.
    """
    permuted = {field for fields in slices.values() for field in fields}
    if not permuted & set(qi):
        return list(qi)
    beside = {field for fields in slices.values() if set(sensitive) & set(fields) for field in fields}
    return ["bucket", *(name for name in qi if name in beside)]


def unsliced(relation: Relation, slices: Mapping[str, Sequence[str]]) -> str:
    """A sliced release with the fields of its STRUCT columns as columns of their own, as a SELECT in parentheses."""
    columns = []
    for name in relation.columns:
        fields = slices.get(name)
        columns += [f"{ident(name)}.{ident(f)} as {ident(f)}" for f in fields] if fields else [ident(name)]
    return f"(select {', '.join(columns)} from {relation.sql})"
