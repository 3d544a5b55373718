"""What must not be published, found before a row is copied.

A release is published when `release()` wrote it and its rows are still those of the digest in its description. Any
other table declared a release is published only when the caller names it, at the caller's responsibility. Both are
searched for seeds, identifiers and parameters that protect nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb

from duckdb_anon.engine.release_digest import holds_rows_of
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.errors import AnonError, listed
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import Description, read_description
from duckdb_anon.serve.source_tables import SourceTable

_SEED = re.compile(r"\bseed\b(\s*(:=|=>|=|:|is|was|of|number)?)*\s*\d", re.IGNORECASE)
_FEWEST = 10  # fewer values agree by chance
_NEARLY = 0.9
_NEUTRAL: Mapping[str, Callable[[float], bool]] = {
    "k": lambda v: v <= 1,
    "l": lambda v: v <= 1,
    "delta": lambda v: v >= 1,
    "p": lambda v: v >= 1,
    "t": lambda v: v >= 1,
}


def refuse(
    con: duckdb.DuckDBPyConnection,
    release: SourceTable,
    original: SourceTable | None,
    others: Sequence[SourceTable],
    allowed: bool,
) -> None:
    """Refuse a release that must not be published.

    Args:
        con: connection that sees all tables.
        release: a table declared a release.
        original: its original, where it is in the file.
        others: the other tables of the file, from which identifiers may have been copied.
        allowed: whether the caller vouches for a table that `release()` did not write.

    Raises:
        AnonError: naming the release and what is wrong with it.
    """
    description = read_description(release.comment) or Description()
    _no_seed(release)
    _protects(release, description)
    _no_persons(release, original, description)
    for table in (original, *others):
        if table is not None:
            _no_identifier(con, release, table, description)
    digest, checksum = description.digest, description.checksum
    if not allowed and not (digest and holds_rows_of(con, release.sql, digest, checksum)):
        state = "has other rows than its description" if digest else "does not record the digest of its rows"
        raise AnonError(
            f"publish: {release.name} {state}, so nothing guarantees what it contains. Write it with duckdb-anon "
            f"release or .release, or publish it at your own responsibility with --allow {release.name}"
        )


def _no_seed(release: SourceTable) -> None:
    texts = [release.comment, *(text or "" for _, text in release.columns.values())]
    if any(_SEED.search(text) for text in texts):
        raise AnonError(
            f"publish: the comments of {release.name} contain a seed, which repeats every random draw. Make the "
            "release again without seed"
        )


def _protects(release: SourceTable, description: Description) -> None:
    given = {name: _numbers(value) for name, value in description.parameters.items() if name in _NEUTRAL}
    limits = {name: values for name, values in given.items() if values}
    if limits and all(_NEUTRAL[name](value) for name, values in limits.items() for value in values):
        raise AnonError(
            f"publish: {release.name} was made by {description.call}, which protects nothing. Make it with a stricter "
            f"{listed(limits)}"
        )


def _numbers(value: Any) -> list[float]:
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
    return [float(v) for v in inside if isinstance(v, (int, float)) and not isinstance(v, bool)]


def _no_persons(release: SourceTable, original: SourceTable | None, description: Description) -> None:
    roles_of = {value.name: value.role for value in release.values()} | {c: release.role(c) for c in release.columns}
    if original is not None:
        labelled = {fold(c): original.role(c) for c in original.columns}
        roles_of = {
            c: (role if role != "attributes" else "") or labelled.get(fold(c), "") for c, role in roles_of.items()
        }
    forced = bool(description.parameters.get("force"))
    wrong = [
        c for c, role in roles_of.items()
        if (role == "identifier" and not forced) or (role == "person" and not description.method)
    ]  # fmt: skip
    if wrong:
        roles = listed(dict.fromkeys(roles_of[c] for c in wrong))
        raise AnonError(
            f"publish: {release.name} has {listed(wrong)}, labelled {roles}. Such columns identify individuals. Make "
            "the release without them"
        )


def _no_identifier(
    con: duckdb.DuckDBPyConnection, release: SourceTable, original: SourceTable, description: Description
) -> None:
    """Refuse values of an identifier, under another name, in a list or field, or hashed without a key."""
    naming = [c for c in original.columns if original.role(c) in ("identifier", "person")]
    known = {fold(c) for c in original.columns}
    if not naming or description.parameters.get("force"):
        return
    spelled = [form for c in naming for form in _spellings(f"({ident(c)})::varchar")]
    names = " union ".join(f"select {form} as v from {original.sql}" for form in spelled)
    for value in release.values():
        if value.role not in ("", "insensitive") or (fold(value.name) in known and value.name not in naming):
            continue
        texts = f"select lower(trim(({value.sql})::varchar)) as v from {release.sql}"
        rows, distinct, found = con.execute(
            f"with names as ({names}), texts as ({texts}) select count(v), count(distinct v), "
            "count(distinct v) filter (where v in (select v from names)) from texts"
        ).fetchall()[0]
        if distinct >= _FEWEST and 2 * distinct >= rows and found >= _NEARLY * distinct:
            raise AnonError(
                f"publish: {found} of {distinct} values of {value.name} in {release.name} are those of "
                f"{listed(naming)} of {original.name}, which identify individuals. Drop the column"
            )


def _spellings(text: str) -> list[str]:
    return [f"lower(trim({text}))", f"md5({text})", f"sha1({text})", f"sha256({text})"]
