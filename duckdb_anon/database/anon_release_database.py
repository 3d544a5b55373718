"""anon_release_database and anon_database_risk: `release_database` and `database_risk` from SQL.

They run on another connection to the caller's database: what a release commits stays. So they are refused in a
transaction that has changed a table, its rows or its labels.
Cost: that of the functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from duckdb_anon.database.plan import OPTIONS
from duckdb_anon.model.errors import AnonError, ParameterError
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Task

_CALL = "tables := ['{original}'], individuals := '{original}', key := '{number}', k := 2"


def _plan(context: Any, params: Params) -> tuple[Mapping[str, Any], dict[str, str]]:
    for table in params["tables"]:
        context.relation("tables", table)
    by_table: dict[str, dict[str, str]] = {}
    for name, text in params["treatments"].items():
        table, _, column = name.rpartition(".")
        if not table:
            raise ParameterError(
                f"{context.function}: treatments name '{name}'. Write TABLE.COLUMN, {{'visits.note': 'redact'}}"
            )
        by_table.setdefault(table, {})[column] = text
    return {**params, "treatments": by_table}, {}


def _parameters(*more: Parameter) -> tuple[Parameter, ...]:
    tables = Parameter("tables", "names of the tables that are released together", "names", REQUIRED)
    treatments = Parameter("treatments", "treatments of columns, {'visits.note': 'redact'}", "mapping", {})
    return (tables, *OPTIONS, treatments, *more)


@contextmanager
def _as(function: str, python: str) -> Iterator[None]:
    """Let messages name the SQL function."""
    try:
        yield
    except AnonError as error:
        text = str(error)
        if text.startswith(f"{python}: "):
            raise type(error)(f"{function}{text.removeprefix(python)}", code=error.code) from error
        raise


def _release(con: Any, info: Mapping[str, Any], rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    from duckdb_anon.database.release import release_database

    given = {name: value for name, value in info.items() if name != "tables"}
    with _as(RELEASE.name, "release_database"):
        made = release_database(con, info["tables"], **given)
    note = made.lines()[-1]
    return [
        {
            "table_name": f"{info['schema']}.{table.name}",
            "rows": table.rows,
            "dropped_rows": table.dropped_rows,
            "columns": ", ".join(f"{name}: {done}" for name, done in table.columns.items()),
            "dropped_columns": ", ".join(table.dropped) or None,
            "note": note,
        }
        for table in made.tables
    ]


def _risk(con: Any, info: Mapping[str, Any], rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    from duckdb_anon.database.risk import database_risk

    given = {name: value for name, value in info.items() if name != "tables"}
    with _as(RISK.name, "release_database"), _as(RISK.name, "database_risk"):
        return [asdict(risk) for risk in database_risk(con, info["tables"], **given)]


RELEASE = Task(
    name="anon_release_database",
    summary="release several tables together: they still join, and what is known of an individual does not find it",
    example="FROM anon_release_database(['patients', 'visits'], individuals := 'patients', key := 'pid', "
    "delta := 0.1, keys := {'visits.pid': 'patients.pid'}, independent := true, replace := true)",
    section="Preparing a call",
    smallest=f"{_CALL}, independent := true, replace := true",
    parameters=_parameters(
        Parameter("schema", "schema to write; the tables keep their names", "text", "release"),
        Parameter("evidence", "HTML file to write: tables, treatments, risk on the join, what was dropped", "text"),
        Parameter("independent", "true releases the tables regardless of their earlier releases", "boolean", False),
        Parameter("replace", "true replaces a schema of that name, with everything in it", "boolean", False),
    ),
    returns={
        "table_name": "VARCHAR", "rows": "BIGINT", "dropped_rows": "BIGINT", "columns": "VARCHAR",
        "dropped_columns": "VARCHAR", "note": "VARCHAR",
    },
    plan=_plan,
    work=_release,
    tables=(),
)  # fmt: skip
RISK = Task(
    name="anon_database_risk",
    summary="share of individuals that are found in joined tables, with pseudonyms alone and in their release",
    paper="Wilson (1927), for the intervals",
    example="FROM anon_database_risk(['patients', 'visits'], individuals := 'patients', key := 'pid', k := 5, "
    "keys := {'visits.pid': 'patients.pid'}, targets := 100)",
    section="Risk",
    smallest=_CALL,
    parameters=_parameters(
        Parameter("targets", "number of random individuals that are looked for", "integer", 500, low=1),
        Parameter("seed", "makes the choice of individuals and events repeatable", "integer", 1, low=0),
    ),
    returns={
        "known": "VARCHAR", "pseudonyms": "DOUBLE", "identity": "DOUBLE", "low": "DOUBLE", "high": "DOUBLE",
        "targets": "BIGINT", "judged": "BOOLEAN",
    },
    plan=_plan,
    work=_risk,
    tables=(),
)  # fmt: skip
