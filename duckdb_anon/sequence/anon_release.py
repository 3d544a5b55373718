"""anon_release: what `release()` does, from SQL: one row that says what was written.

The release is made on another connection to the caller's database: what it commits stays, also after ROLLBACK. So it is
refused in a transaction that has changed the table, its rows or its labels, but not in any open one: SQLAlchemy opens
one by itself.
With `previous` it continues a release (`sequence.next_release`). A plain CREATE TABLE ... AS FROM a method has no
description, is in no register, and nothing guards it. Cost: that of the method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duckdb_anon.engine.records.call_text import table_called
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Task
from duckdb_anon.report.weak_labels import release_warnings


def _plan(context: Any, params: Params) -> tuple[Mapping[str, Any], dict[str, str]]:
    table = table_called(context.catalog.cursor, params["call"])
    if table is not None:  # release() refuses what is no call of a method
        context.relation("call", table)
    return dict(params), {}


def _work(con: Any, arguments: Mapping[str, Any], rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    from duckdb_anon.release_api import release

    description, _, note = release(con, **arguments).partition("\n")
    notes = "; ".join(filter(None, (note, *release_warnings(con, description))))
    return [{"name": arguments["name"], "description": description, "note": notes or None}]


MEASURE = Task(
    name="anon_release",
    summary="run a method, write its release with a description, and enter it in the register",
    example="FROM anon_release('monthly', 'mondrian(''people'', 10)', independent := true)",
    section="Preparing a call",
    smallest="name := 'again', call := 'mondrian(''people'', 2)', independent := true, replace := true",
    parameters=(
        Parameter("name", "table to write, or a file that ends in .parquet", "text", REQUIRED),
        Parameter("call", "one call of a method, 'mondrian(''people'', 10)'", "text", REQUIRED),
        Parameter("previous", "the release that this one continues", "text"),
        Parameter("key", "column that identifies a record; the person column where individuals have several", "text"),
        Parameter("independent", "true releases the original regardless of its earlier releases", "boolean", False),
        Parameter("replace", "true replaces a table or file of that name", "boolean", False),
        Parameter(
            "deleted", "with previous: deleted records stay ('keep') or go with their groups ('withdraw')", "text",
            "keep", ("keep", "withdraw"),
        ),
        Parameter(
            "changed",
            "with previous: changed records stay as published ('keep') or, for anatomy, take their new "
            "quasi-identifiers in the same bucket ('replace')", "text", "keep", ("keep", "replace"),
        ),
    ),
    returns={"name": "VARCHAR", "description": "VARCHAR", "note": "VARCHAR"},
    plan=_plan,
    work=_work,
    tables=(),
)  # fmt: skip
