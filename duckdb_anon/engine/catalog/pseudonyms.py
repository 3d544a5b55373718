"""Originals as the releases of a database stand for them: keys are pseudonyms, which join as the keys do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from duckdb_anon.engine.catalog.catalog import Relation
from duckdb_anon.engine.catalog.column_roles import role_of
from duckdb_anon.model.identifier_case import fold

PSEUDONYM = "pseudonym"
"""What the comment of such a column says in place of a role."""


def pseudonyms(release: Relation) -> list[str]:
    """Columns of a release that are pseudonyms."""
    return [name for name in release.columns if role_of(release.comments.get(name)) == PSEUDONYM]


def stand_in(context: Any, name: str, release: Relation) -> Relation:
    """The original of a release of a database, or its shape, with pseudonyms in place of its keys.

    Where it is not there, its columns are those of the release with the types of the values that cells stand for.
    """
    original: Relation = context.relation("original", name)
    if not original.visible or original.sql == release.sql or original.columns == release.columns:
        contents = context.contents(release)
        columns = {
            name: contents.columns[fold(name)].value_type or kind
            for name, kind in release.columns.items()
            if fold(name) in contents.columns
        }
        comments = {name: text for name, text in release.comments.items() if name in columns}
        return Relation(name, original.sql, columns, comments, original.hint)
    kinds = {fold(key): release.columns[key] for key in pseudonyms(release)}
    columns = {column: kinds.get(fold(column), kind) for column, kind in original.columns.items()}
    return replace(original, columns=columns)
