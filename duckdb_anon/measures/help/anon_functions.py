"""anon_functions, anon_parameters: one row per function, with its example and its paper; one row per parameter.

The column `about` is what the module of a function says of it: what is promised, where it departs from the paper,
what it costs.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Sequence
from typing import Any

from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import ParameterError, nearest
from duckdb_anon.model.function_specs import REQUIRED, Entry, Method, Parameter, Params, PureSql, Query, Report

_COLUMNS = ("function", "summary", "section", "signature", "example", "paper", "about")
_PARAMETER_COLUMNS = ("function", "parameter", "default", "meaning")


@Query(
    summary="this list: one row per function",
    example="FROM anon_functions() WHERE \"function\" = 'muco'",
    section="Help",
    tables=(),
)
def anon_functions(context: Any, params: Params) -> str:
    """One row per function, in the order of the function pages."""
    return rows_as_table(
        _COLUMNS,
        [(e.name, e.summary, e.section, signature(e), e.example, e.paper, about(e)) for e in context.entries.values()],
    )


def rows_as_table(columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> str:
    """SELECT of rows of texts, in their order; one literal, which DuckDB reads faster than one a cell."""
    named = ", ".join(f'_anon_row[{k}] as "{column}"' for k, column in enumerate(columns, 1))
    listed = f"from_json({literal(json.dumps(rows))}, '[[\"VARCHAR\"]]')"
    return f"select {named} from (select unnest({listed}) as _anon_row)"


def signature(entry: Entry) -> str:
    """How a function is called, required arguments first."""
    defaults = [(p.name, default_of(entry, p)) for p in parameters_of(entry)]
    spelled = (name if default is None else f"{name} := {default}" for name, default in defaults)
    return f"{entry.name}({', '.join(spelled)})"


def default_of(entry: Entry, parameter: Parameter) -> str | None:
    """SQL of a parameter's default; None where it is required."""
    tables = getattr(entry, "tables", ("tbl",))
    if parameter.default is REQUIRED or parameter.name in tables:
        return None
    return literal(parameter.default)


def about(entry: Entry) -> str | None:
    """The docstring of the module a function's work is done in; pure SQL has comments in its file instead."""
    if isinstance(entry, PureSql):
        return None
    work = entry.release if isinstance(entry, Method) else entry.compute if isinstance(entry, Report) else entry.plan
    return inspect.getdoc(sys.modules[work.__module__])


@Query(
    summary="parameters of one function, or of all: default and meaning",
    example="FROM anon_parameters('muco')",
    section="Help",
    parameters=(Parameter("name", "name of a function (default: all)", "text"),),
    tables=(),
)
def anon_parameters(context: Any, params: Params) -> str:
    """One row per parameter, in the order in which they are given."""
    name = params["name"]
    if name is not None and name.lower() not in context.entries:
        raise ParameterError(
            f"there is no function '{name}'{nearest(name, context.entries)}. FROM anon_functions() lists them"
        )
    entries = [entry for entry in context.entries.values() if name is None or entry.name == name.lower()]
    rows = [(e.name, p.name, default_of(e, p), p.doc) for e in entries for p in parameters_of(e)]
    return rows_as_table(_PARAMETER_COLUMNS, rows)
