"""Columns that join rows of individuals, although no label says so: hashes, account numbers, numbers of visits.

A column with a label that allows its release unchanged is refused if it has few rows for each of its values and is no
quantity: texts that are written like keys (digits, no blanks), UUIDs, and whole numbers that are called like keys.
A release refuses such columns; a plain call of a method or measure warns of identifiers that repeat.
Cost: an aggregation of each such column.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping

import duckdb

from duckdb_anon.engine.catalog.catalog import Catalog, Relation
from duckdb_anon.engine.catalog.column_roles import role_of
from duckdb_anon.engine.catalog.person_checks import repeated_beneath
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import AnonWarning, ColumnError
from duckdb_anon.model.function_specs import Roles
from duckdb_anon.model.release_formats.duckdb_types import is_integer
from duckdb_anon.report.profile.names import hinted, names_a_group, names_an_event

_FEWEST = 50
"""Different values from which on a column may join rows; in smaller tables, by chance."""
_ROWS = 50
"""Rows for each value up to which it does."""
_WRITTEN = 0.9
_REPEATED = 1.2
_LONGEST = 128  # a SHA-512 digest
_LIKE_A_KEY = r"\S*[0-9]\S*"
_QUANTITY = r"[-+]?[0-9]{1,5}([.,][0-9]+)?%?"
_KEYS = ("key", "person key", "medical record number", "health plan number", "account number")


def key_like(con: duckdb.DuckDBPyConnection, sql: str, columns: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Those of `columns` (name to type) whose values join rows, with their numbers of different values and of rows."""
    found = {}
    for name, kind in columns.items():
        plain = kind.strip().upper()
        named = hinted(name) in _KEYS and not names_a_group(name)
        if not (plain in ("UUID", "BLOB") or plain == "VARCHAR" or (is_integer(kind) and named)):
            continue
        key = f"regexp_full_match({ident(name)}, '{_LIKE_A_KEY}') and length({ident(name)}) <= {_LONGEST}"
        quantity = f"regexp_full_match({ident(name)}, '{_QUANTITY}') or try_cast({ident(name)} as date) is not null"
        written = f"avg(({key} and not ({quantity}))::integer)" if plain == "VARCHAR" else "1"
        distinct, rows, share = con.execute(
            f"select count(distinct {ident(name)}), count({ident(name)}), coalesce({written}, 0) from {sql}"
        ).fetchall()[0]
        if distinct >= max(_FEWEST, rows / _ROWS) and (named or share >= _WRITTEN):
            found[name] = (distinct, rows)
    return found


def refuse_keys(
    con: duckdb.DuckDBPyConnection, function: str, relation: Relation, roles: Roles, *, remedy: str = ""
) -> None:
    """Refuse to release rows that a column joins without a label that says so."""
    unchanged = {info.name: info.type for info in roles.keep if info.type}
    for name, (distinct, rows) in key_like(con, relation.sql, unchanged).items():
        raise ColumnError(
            f"{function}: {of_key_like(name, relation.given, distinct, rows)}. Released unchanged it joins the "
            "rows of individuals, here and with other tables. Label it "
            f"'anon: identifier' or 'anon: person', or {remedy or 'say force := true if it identifies no individual'}",
            code="key-column",
        )
    if roles.person is not None or remedy:
        return
    for name, distinct, rows in _repeated(con, relation, roles.identifier):
        raise ColumnError(
            f"{function}: {_of_repeated(name, relation, distinct, rows)}. Each row would be protected as one "
            "individual, not the individual with all its rows. "
            f"COMMENT ON COLUMN {relation.sql}.{ident(name)} IS 'anon: person', or say force := true",
            code="repeated-identifier",
        )


def warn_of_keys(catalog: Catalog, function: str, relation: Relation, beneath: Mapping[str, str]) -> None:
    """Warn that rows are counted where the key of an individual repeats and no column is labelled person.

    `beneath`: columns of a view that come from labelled ones, with the label, as `identifiers_read` returns them.
    """
    roles = {name: role_of(comment) for name, comment in relation.comments.items()}
    if "person" in roles.values():
        return
    counted = "Each row counts as one individual, so that k and risks look better than they are"
    for name, label in repeated_beneath(catalog, relation, beneath):
        warnings.warn(
            f"{function}: column '{name}' of {relation.given} is labelled {label}, and individuals have several rows; "
            f"a view has no labels of its own. {counted}. Say person := {literal(name)}",
            AnonWarning,
            stacklevel=2,
        )
    named = [name for name, role in roles.items() if role == "identifier" and name in relation.columns]
    for name, distinct, rows in _repeated(catalog.cursor, relation, named):
        warnings.warn(
            f"{function}: {_of_repeated(name, relation, distinct, rows)}. {counted}. "
            f"COMMENT ON COLUMN {relation.sql}.{ident(name)} IS 'anon: person'",
            AnonWarning,
            stacklevel=2,
        )


def _repeated(
    con: duckdb.DuckDBPyConnection, relation: Relation, names: Iterable[str]
) -> Iterator[tuple[str, int, int]]:
    """Identifiers that are called like keys of individuals and repeat, with their values and rows."""
    for name in names:
        if hinted(name) not in _KEYS or names_an_event(name):
            continue
        distinct, rows = con.execute(
            f"select count(distinct {ident(name)}), count({ident(name)}) from {relation.sql}"
        ).fetchall()[0]
        if distinct >= rows / _ROWS and rows >= _REPEATED * distinct > 0:
            yield name, distinct, rows


def of_key_like(name: str, table: str, distinct: int, rows: int) -> str:
    """What is found of a column that is written like a key, for messages."""
    return f"column '{name}' of {table} has {distinct} values in {rows} rows and is written like a key"


def _of_repeated(name: str, relation: Relation, distinct: int, rows: int) -> str:
    return (
        f"the identifier '{name}' of {relation.given} has {distinct} values in {rows} rows, and no column is labelled "
        "person"
    )
