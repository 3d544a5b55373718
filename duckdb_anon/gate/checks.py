"""What must not leave the data holder, found before a row is written.

Every door passes here: `publish`, `run`, `release` to files and `write_parquet`. A table that `release()` wrote passes
when its rows and description are unchanged and keep its promise. Any other table declared a release passes only when
the caller names it, and claims no method. Neither may carry an identifier, a seed, or parameters that protect nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb

from duckdb_anon.engine.column_roles import NAMING
from duckdb_anon.engine.release_digest import holds_rows_of
from duckdb_anon.gate.identifier_traces import trace_of
from duckdb_anon.gate.source_tables import SourceTable
from duckdb_anon.model.errors import AnonError, listed
from duckdb_anon.model.release_comment import Description, read_description
from duckdb_anon.model.release_formats import carriers

_SEED = re.compile(r"\bseed\b(\s*(:=|=>|=|:|is|was|of|number)?)*\s*\d", re.IGNORECASE)
_NEUTRAL: Mapping[str, Callable[[float], bool]] = {
    "k": lambda v: v <= 1,
    "l": lambda v: v <= 1,
    "delta": lambda v: v >= 1,
    "p": lambda v: v >= 1,
    "t": lambda v: v >= 1,
}


def refuse(
    con: duckdb.DuckDBPyConnection,
    function: str,
    release: SourceTable,
    original: SourceTable | None,
    others: Sequence[SourceTable],
    allowed: bool = False,
) -> None:
    """Refuse a release that must not leave.

    Args:
        con: connection that sees all tables.
        function: the door, for messages.
        release: a table declared a release.
        original: its original, where it is there.
        others: the other tables with columns that name individuals, from which identifiers may have been copied.
        allowed: whether the caller vouches for a table that `release()` did not write.

    Raises:
        AnonError: naming the release and what is wrong with it.
    """
    description = read_description(release.comment) or Description()
    _no_seed(function, release)
    protects(function, release.name, description)
    if not description.parameters.get("force"):
        fresh = _fresh_numbers(release, description)
        _no_naming_column(function, release, fresh)
        found = trace_of(con, release, original, others, fresh)
        if found is not None:
            raise AnonError(f"{function}: {found}. Such values identify individuals. Make the release without them")
    _written_by_release(con, function, release, description, allowed)


def _written_by_release(
    con: duckdb.DuckDBPyConnection, function: str, release: SourceTable, description: Description, allowed: bool
) -> None:
    digest, checksum = description.digest, description.checksum
    if digest and holds_rows_of(con, release.sql, digest, checksum):
        return
    state = "has other rows than its description" if digest else "does not record the digest of its rows"
    if not allowed:
        raise AnonError(
            f"{function}: {release.name} {state}, so nothing guarantees what it contains. Write it with duckdb-anon "
            f"release or .release, or publish it at your own responsibility with --allow {release.name}"
        )
    if description.method:
        raise AnonError(
            f"{function}: {release.name} {state}, but claims to be made by {description.call}. A claim that nothing "
            f"supports is not published. Write it with duckdb-anon release, or COMMENT ON TABLE ... IS 'anon: release'"
        )


def _no_seed(function: str, release: SourceTable) -> None:
    texts = [release.comment, *(text or "" for _, text in release.columns.values())]
    if any(_SEED.search(text) for text in texts):
        raise AnonError(
            f"{function}: the comments of {release.name} contain a seed, which repeats every random draw. Make the "
            "release again without seed"
        )


def protects(function: str, name: str, description: Description) -> None:
    """Refuse parameters that protect nothing.

    Args:
        function: the door, for messages.
        name: the release.
        description: what it says of itself.

    Raises:
        AnonError: every parameter of the guarantee is at the value that allows everything.
    """
    given = {name: _numbers(value) for name, value in description.parameters.items() if name in _NEUTRAL}
    limits = {name: values for name, values in given.items() if values}
    if limits and all(_NEUTRAL[name](value) for name, values in limits.items() for value in values):
        raise AnonError(
            f"{function}: {name} was made by {description.call}, which protects nothing. Make it with a stricter "
            f"{listed(limits)}"
        )


def _numbers(value: Any) -> list[float]:
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
    return [float(v) for v in inside if isinstance(v, (int, float)) and not isinstance(v, bool)]


def _fresh_numbers(release: SourceTable, description: Description) -> tuple[str, ...]:
    """Columns of numbers that a method deals: of buckets, and of persons whose rows it writes apart."""
    if not description.method or not description.digest:
        return ()
    numbers = [column for column, (kind, _) in release.columns.items() if kind == "BIGINT"]
    own = [c for c in numbers if not release.role(c) and any(carrier.stands_for(c) for carrier in carriers())]
    exploded = [c for c in numbers if release.role(c) == "person" and description.parameters.get("explode")]
    return (*own, *exploded)


def _no_naming_column(function: str, release: SourceTable, fresh: Sequence[str]) -> None:
    roles = {value.name: value.role for value in release.values() if value.role in NAMING and value.name not in fresh}
    if roles:
        raise AnonError(
            f"{function}: {release.name} has {listed(roles)}, labelled {listed(dict.fromkeys(roles.values()))}. Such "
            "columns identify individuals. Make the release without them"
        )
