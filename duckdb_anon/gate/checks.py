"""What must not leave the data holder, found before a row is written.

Every door passes here: `publish`, `run`, `release` to files and `write_parquet`. A table that `release()` wrote passes
when its rows and description are unchanged and keep its promise. Any other table declared a release passes only when
the caller names it, and claims no method. Neither may carry an identifier, a seed, or parameters that protect nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import duckdb

from duckdb_anon.engine.catalog.column_roles import NAMING
from duckdb_anon.engine.records.release_digest import holds_rows_of
from duckdb_anon.engine.records.release_seal import KEY, PUBLIC_KEY, signer_of
from duckdb_anon.engine.sql_quoting import ident, idents
from duckdb_anon.gate.identifier_traces import trace_of
from duckdb_anon.gate.references import reference_of
from duckdb_anon.gate.source_tables import SourceTable, original_of, tables_of
from duckdb_anon.model.errors import AnonError, listed
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import Description, read_description
from duckdb_anon.model.release_formats import carriers
from duckdb_anon.report.profile.key_columns import key_like, of_key_like
from duckdb_anon.report.verify_release import verify

_SEED = re.compile(r"\bseed\b(\s*(:=|=>|=|:|is|was|of|number)?)*\s*\d", re.IGNORECASE)
_MOST_SHARE, _UNIQUES, _COPY = 0.5, 20, 0.95
_STATES = {
    "rows": "has other rows than its description",
    "description": "has another description than release() wrote",
}
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
    original: SourceTable | None = None,
    allowed: bool = False,
    *,
    tables: Sequence[SourceTable] | None = None,
    made_now: bool = False,
    keys: Collection[str] | None = None,
) -> None:
    """Refuse a release that must not leave.

    `allowed`: whether the caller vouches for a table that `release()` did not write; `made_now`: whether the rows come
    from the method this moment, which has checked them itself; `keys`: columns written like keys that the caller
    vouches for; None where such columns are not looked for.

    Raises:
        AnonError: naming the release and what is wrong with it.
    """
    tables = tables_of(con) if tables is None else tables
    original = original or original_of(release, tables)
    named = [table for table in tables if table.naming() and not table.is_view]
    others = [table for table in named if original is None or table.sql != original.sql]
    description = read_description(release.comment) or Description()
    _no_seed(function, release)
    protects(function, release.name, description)
    if not (description.parameters.get("force") or description.together.get("force")):
        fresh = _fresh_numbers(release, description)
        _no_naming_column(function, release, fresh)
        found = trace_of(con, release, original, others, fresh)
        if found is not None:
            raise AnonError(f"{function}: {found}. Such values identify individuals. Make the release without them")
        vouched = {*map(fold, fresh), *(keys or ())}
        refuse_references(con, function, release, [c for c in release.columns if fold(c) not in vouched], others)
        if keys is not None and not description.digest:
            _no_key(con, function, release, keys)
    _no_copy(con, function, release, original, description)
    if not made_now:
        _written_by_release(con, function, release, description, allowed)


def refuse_references(
    con: duckdb.DuckDBPyConnection,
    function: str,
    table: SourceTable,
    columns: Collection[str],
    others: Sequence[SourceTable] | None = None,
) -> None:
    """Refuse columns that hold the numbers of a labelled key of another table.

    `columns`: those that are released unchanged; `others`: tables with labelled keys (default: all that are attached).
    """
    named = [t for t in tables_of(con) if t.naming() and not t.is_view] if others is None else others
    found = reference_of(con, table, columns, [other for other in named if other.sql != table.sql])
    if found is not None:
        raise AnonError(
            f"{function}: {found}. Released unchanged, it joins both. Label it identifier or person; "
            "force releases it where it identifies no individual",
            code="key-column",
        )


def require_signature(function: str, release: SourceTable) -> None:
    """Refuse a release whose signature does not hold, or that has none while a public key is named."""
    signer = signer_of(release.comment, {column: text for column, (_, text) in release.columns.items()})
    if signer is None or signer[1]:
        return
    description = read_description(release.comment)
    if description is not None and description.signature:
        raise AnonError(
            f"{function}: {release.name} has a signature that does not hold: it is of another description, or of "
            f"another owner than {PUBLIC_KEY} names. Make the release again",
            code="signature",
        )
    raise AnonError(
        f"{function}: {release.name} is not signed, and {PUBLIC_KEY} names who must sign. Make it again with {KEY}, "
        f"which names the private key, or leave {PUBLIC_KEY} out",
        code="signature",
    )


def require_signed(con: duckdb.DuckDBPyConnection, function: str, release: SourceTable) -> None:
    """Refuse to serve a release without a signature that holds for its rows, while a public key is named."""
    require_signature(function, release)
    description = read_description(release.comment) or Description()
    if description.signature and not holds_rows_of(con, release.sql, description.digest, description.checksum):
        raise AnonError(f"{function}: {release.name} {_STATES['rows']}. Publish it again", code="signature")


def _no_key(con: duckdb.DuckDBPyConnection, function: str, release: SourceTable, keys: Collection[str]) -> None:
    """Refuse columns that join rows of individuals, but the pseudonyms of `release_database`."""
    plain = {
        name: kind
        for name, (kind, _) in release.columns.items()
        if release.role(name) in ("", "insensitive") and fold(name) not in keys
    }
    for name, (distinct, rows) in key_like(con, release.sql, plain).items():
        raise AnonError(
            f"{function}: {of_key_like(name, release.name, distinct, rows)}. It joins the rows of individuals, here "
            "and with other tables. Make the release without it, or "
            f"publish it at your own responsibility with --allow {release.name}.{name}",
            code="key-column",
        )


def _no_copy(
    con: duckdb.DuckDBPyConnection,
    function: str,
    release: SourceTable,
    original: SourceTable | None,
    description: Description,
) -> None:
    """Refuse rows of the original under the name of a method, whatever it promises.

    Records that are unique on the quasi-identifiers must not stand in the release with their sensitive values; where
    one value has most rows they may by chance. Methods that keep quasi-identifiers do not keep sensitive values.
    """
    columns = [c for c in release.columns if release.role(c) in ("quasi", "sensitive")]
    if original is None or not description.method:
        return
    there = {fold(c) for c in original.columns}
    qi, sensitive = ([c for c in columns if release.role(c) == role] for role in ("quasi", "sensitive"))
    if not qi or any(fold(c) not in there for c in columns):
        return
    same = " and ".join(f"o.{ident(c)}::varchar is not distinct from r.{ident(c)}::varchar" for c in columns)
    # without a sensitive value no record stands there by chance
    most_rows = f"select max(n) / sum(n) from (select count(*) as n from {release.sql} group by {idents(sensitive)})"
    found, unchanged, most = con.execute(
        f"with uniques as (select {idents(columns)} from {original.sql} "
        f"qualify count(*) over (partition by {idents(qi)}) = 1), "
        f"kept as (select o.* from uniques as o semi join {release.sql} as r on {same}) "
        "select (select count(*) from uniques), (select count(*) from kept), "
        f"({most_rows if sensitive else 'select 0'})"
    ).fetchall()[0]
    if found >= _UNIQUES and most <= _MOST_SHARE and unchanged > _COPY * found:
        raise AnonError(
            f"{function}: {unchanged} of {found} unique records of {original.name} stand unchanged in {release.name}, "
            f"which claims to be made by {description.call}. Make the release again",
            code="copied-records",
        )


def _written_by_release(
    con: duckdb.DuckDBPyConnection, function: str, release: SourceTable, description: Description, allowed: bool
) -> None:
    if not description.digest:
        state = "does not record the digest of its rows"
    else:
        comments = {column: text for column, (_, text) in release.columns.items()}
        failed = [one for one in verify(con, release.sql, release.comment, comments) if one.holds is False]
        if not failed:
            return
        promise = f"{failed[0].check} := {failed[0].promised}"
        broken = f"breaks its promise of {promise}"
        unmeasured = failed[0].check not in _STATES and failed[0].measured is None
        state = f"cannot be measured for {promise} ({failed[0].note})" if unmeasured else broken
        state = _STATES.get(failed[0].check, state)
    if not allowed:
        raise AnonError(
            f"{function}: {release.name} {state}, so nothing guarantees what it contains. Write it with duckdb-anon "
            f"release or anon_release, or publish it at your own responsibility with --allow {release.name}"
        )
    claim = description.call or ("release_database" if description.together else "")
    if claim:
        raise AnonError(
            f"{function}: {release.name} {state}, but claims to be made by {claim}. A claim that nothing "
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
    """Refuse parameters that protect nothing."""
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
