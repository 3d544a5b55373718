"""anon_parameters: one row per parameter of a function, or of every function: its default and its meaning."""

from __future__ import annotations

from typing import Any

from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.measures.help.anon_functions import default_of, rows_as_table
from duckdb_anon.model.errors import ParameterError, nearest
from duckdb_anon.model.function_specs import Parameter, Params, Query

_COLUMNS = ("function", "parameter", "default", "meaning")


def plan(context: Any, params: Params) -> str:
    """One row per parameter, in the order in which they are given."""
    name = params["name"]
    if name is not None and name.lower() not in context.entries:
        raise ParameterError(
            f"anon_parameters: there is no function '{name}'{nearest(name, context.entries)}. "
            "FROM anon_functions() lists them"
        )
    entries = [entry for entry in context.entries.values() if name is None or entry.name == name.lower()]
    rows = [(e.name, p.name, default_of(e, p), p.doc) for e in entries for p in parameters_of(e)]
    return rows_as_table(_COLUMNS, rows)


MEASURE = Query(
    name="anon_parameters",
    summary="parameters of one function, or of all: default and meaning",
    paper="",
    example="FROM anon_parameters('muco')",
    section="Help",
    parameters=(Parameter("name", "name of a function (default: all)", "text"),),
    plan=plan,
    tables=(),
)
