"""anon_outputs: the ledger of a table: what was asked, by whom, when, and what was decided.

It is of the data holder alone: queries of refused answers are in it. `rules` names the rules that suppressed values.
Cost: reading the ledger.
"""

from __future__ import annotations

from typing import Any

from duckdb_anon.engine.records.register import SCHEMA
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Query
from duckdb_anon.model.quoting import ident, literal

_COLUMNS = {
    "number": "BIGINT", "day": "TIMESTAMP", '"user"': "VARCHAR", "query": "VARCHAR", "decision": "VARCHAR",
    "cells": "BIGINT", "suppressed": "BIGINT", "rules": "VARCHAR", "approved_by": "VARCHAR", "why": "VARCHAR",
}  # fmt: skip


@Query(
    summary="answers that safe_output has given from a table: query, user, time, decision and rules",
    example="FROM anon_outputs('people')",
    section="Safe outputs",
    smallest="original := 'people'",
    parameters=(Parameter("original", "a table or view that has a policy for answers", "text", REQUIRED),),
    tables=(),
)
def anon_outputs(context: Any, params: Params) -> str:
    """One row an answer."""
    relation = context.relation("original", params["original"])
    if relation.place is None:
        raise AnonError(f"'{params['original']}' is not a committed table or view; name one that has a policy")
    database, *place = relation.place[:3]
    found = context.catalog.cursor.execute(
        "select 1 from duckdb_tables() where (database_name, schema_name, table_name) = (?, ?, 'outputs')",
        [database, SCHEMA],
    ).fetchall()
    if not found:
        return "select " + ", ".join(f"null::{kind} as {name}" for name, kind in _COLUMNS.items()) + " where false"
    ledger = f"{ident(database)}.{SCHEMA}.outputs"
    return f"select {', '.join(_COLUMNS)} from {ledger} where original = {literal('.'.join(place))} order by number"
