"""label_statements: the suggestions of anon_profile as SQL, to be read, changed and run.

One COMMENT ON COLUMN a column that has no role yet; what a column's comment says already stays in front. Nothing is
written. Cost: that of anon_profile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from duckdb_anon.engine.column_roles import role_of
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import Params, Task
from duckdb_anon.report.anon_profile import OPTIONS, plan_profile, profile

_PART = r'(?:"(?:[^"]|"")+"|\w+)'
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}")
_FILE = re.compile(r"\.(csv|tsv|txt|parquet|json|jsonl|ndjson|xlsx)$", re.IGNORECASE)


def _plan(context: Any, params: Params) -> tuple[Mapping[str, Any], dict[str, str]]:
    planned, lists = plan_profile(context, params)
    if _FILE.search(planned["table"]) or not _NAME.fullmatch(planned["table"]):
        raise ParameterError(
            f"label_statements: '{planned['table']}' is no table that comments could be written on; make it one with "
            "CREATE TABLE ... AS, or name the roles in the calls of methods and measures, with qi and sensitive"
        )
    return planned, lists


def _work(con: Any, planned: Mapping[str, Any], rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    statements = []
    for (facts, suggestion, _), (_, _, comment) in zip(profile(planned, rows), planned["columns"], strict=True):
        if suggestion.role and not role_of(comment):
            statement = label_statement(planned["table"], facts.name, suggestion.role, comment)
            statements.append({"statement": statement, "reason": suggestion.reason})
    return statements


def label_statement(table: str, column: str, role: str, comment: str) -> str:
    """The statement that gives a column its role and keeps its comment; `table` as SQL names it.

    >>> print(label_statement("people", "age", "quasi", "in years"))
    COMMENT ON COLUMN people."age" IS 'in years; anon: quasi';
    """
    text = f"{comment}; anon: {role}" if comment else f"anon: {role}"
    return f"COMMENT ON COLUMN {table}.{ident(column)} IS {literal(text)};"


MEASURE = Task(
    name="label_statements",
    summary="COMMENT statements with the roles that anon_profile proposes, for columns without a label",
    paper="see anon_profile",
    example="FROM label_statements('ages')",
    section="Preparing a call",
    parameters=OPTIONS,
    returns={"statement": "VARCHAR", "reason": "VARCHAR"},
    plan=_plan,
    work=_work,
    database="own",
)
