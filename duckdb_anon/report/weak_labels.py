"""Labels that are weaker than those that anon_profile proposes: such a column leaves more exactly than is advised.

A reason that the holder states, `accept.TABLE.COLUMN = "why"`, makes a statement of the warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

import duckdb

from duckdb_anon.engine.catalog.catalog import described, located, names_of
from duckdb_anon.engine.catalog.column_roles import role_of
from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.release_comment import read_description
from duckdb_anon.report.release_context import HoldersContext

_STRENGTH = {"insensitive": 0, "sensitive": 1, "quasi": 2, "person": 3, "identifier": 3}
_SAMPLE = 2000  # records that are looked at: names and types decide most proposals


def is_weaker(label: str | None, proposed: str | None) -> bool:
    """Whether a label protects a column less than the proposed one; a column without a label is not released.

    >>> is_weaker("insensitive", "quasi"), is_weaker("identifier", "quasi"), is_weaker(None, "quasi")
    (True, False, False)
    """
    return label in _STRENGTH and proposed in _STRENGTH and _STRENGTH[label] < _STRENGTH[proposed]


def weak_label(table: str, column: str, label: str | None, proposed: str | None, context: HoldersContext) -> str | None:
    """The warning on a label; None where it is as strong as the proposed one, or its reason is stated."""
    if not is_weaker(label, proposed) or context.accepted(table, column):
        return None
    return (
        f"{column} of {table} is labelled {label}, which is weaker than the proposed {proposed}. Relabel it, or state "
        f'accept.{table}.{column} = "why" in [statements]'
    )


def weak_labels(
    con: duckdb.DuckDBPyConnection, tables: Mapping[str, str], context: HoldersContext
) -> dict[tuple[str, str], str]:
    """Warnings by table and column; none where the profile extra is missing.

    Args:
        con: a loaded connection.
        tables: names as the context has them, each with the table as SQL names it.
        context: the reasons that the holder states.
    """
    if not (find_spec("stdnum") and find_spec("phonenumbers")):
        return {}
    warnings = {}
    for name, table in tables.items():
        labels = described(con, table)[1]
        profile = f"select column_name, role from anon_profile({literal(table)}, rows := {_SAMPLE})"
        for column, proposed in con.execute(profile).fetchall():
            warning = weak_label(name, column, role_of(labels.get(column)), proposed, context)
            if warning is not None:
                warnings[name, column] = warning
    return warnings


def release_warnings(con: duckdb.DuckDBPyConnection, comment: str) -> list[str]:
    """Warnings on the labels of a table that was released, given the comment of its release."""
    about = read_description(comment)
    if about is None or not about.original or located(con, about.original) is None:
        return []
    try:
        return list(weak_labels(con, {names_of(about.original)[-1]: about.original}, HoldersContext()).values())
    except duckdb.Error:  # the release is made; a table that cannot be profiled has no proposed labels
        return []
