"""A release's own labels come first.

Measures that hold a release against its original resolve roles on the original. What the release says of its columns
overrides that, column by column; one whose comment names the method that made it (`release`, `publish`) says it all,
so the original's quasi-identifiers, sensitive and insensitive columns that it does not show are none of its.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from duckdb_anon.engine.catalog import Relation
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import read_description

_ROLE = re.compile(r"\banon:\s*(quasi|sensitive|insensitive|person|identifier)\b", re.IGNORECASE)
_SHOWN = re.compile(r"\banon:\s*(quasi|sensitive|insensitive)\b", re.IGNORECASE)


def with_labels_of(original: Relation, releases: Sequence[Relation]) -> Relation:
    """`original` with the comments by which `releases` tell the roles of its columns.

    Where two releases differ, the first one counts.
    """
    comments = dict(original.comments)
    spelled = {fold(column): column for column in original.columns}
    for release in reversed(releases):
        said = {spelled.get(fold(name), name): text for name, text in release.comments.items() if _ROLE.search(text)}
        if said and is_described(release):
            comments = {name: text for name, text in comments.items() if name in said or not _SHOWN.search(text)}
        comments |= said
    return replace(original, comments=comments)


def is_described(release: Relation) -> bool:
    """Whether a release's comment names the method that made it."""
    return _names_method(release.comment)


@lru_cache(maxsize=64)
def _names_method(comment: str) -> bool:
    description = read_description(comment)
    return description is not None and bool(description.method)
