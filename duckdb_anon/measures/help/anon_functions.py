"""anon_functions: every function with its parameters, what they mean, an example, and the paper it comes from.

The column `about` is what the module of a function says of it: what is promised, where it departs from the paper,
what it costs.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from duckdb_anon.engine.plan import parameters_of
from duckdb_anon.engine.quoting import literal
from duckdb_anon.model.entries import REQUIRED, Entry, Method, Parameter, Params, PureSql, Query, Report

_FUNCTION = ("function", "kind", "signature", "summary", "paper", "example", "about")
_PARAMETER = ("function", "parameter", "default", "meaning")
_SHOWN = ("function", "kind", "signature", "summary", "parameter", "default", "meaning", "paper", "example", "about")


def listing(entries: Callable[[], Iterable[Entry]]) -> Query:
    """The entry of `anon_functions`; `entries` is asked when it is called, since the registry holds this one too."""

    def plan(context: Any, params: Params) -> str:
        listed = list(entries())
        functions = _values("_anon_functions", _FUNCTION, [_about(entry) for entry in listed])
        parameters = _values("_anon_parameters", _PARAMETER, [row for entry in listed for row in _parameters(entry)])
        shown = ", ".join(f'"{column}"' for column in _SHOWN)
        return (
            f'select {shown} from {functions} join {parameters} using ("function") '
            "order by _anon_functions._anon_row, _anon_parameters._anon_row"
        )

    return Query(
        name="anon_functions",
        summary="this list: one row a function and parameter",
        paper="",
        example="FROM anon_functions() WHERE \"function\" = 'muco'",
        parameters=(),
        plan=plan,
        tables=(),
    )


def signature(entry: Entry) -> str:
    """How a function is called, required arguments first."""
    return f"{entry.name}({', '.join(_spelled(entry, p) for p in parameters_of(entry))})"


def _spelled(entry: Entry, parameter: Parameter) -> str:
    default = _default(entry, parameter)
    return parameter.name if default is None else f"{parameter.name} := {default}"


def _default(entry: Entry, parameter: Parameter) -> str | None:
    tables = getattr(entry, "tables", ("tbl",))
    if parameter.default is REQUIRED or parameter.name in tables:
        return None
    return literal(parameter.default)


def _values(name: str, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> str:
    """Rows as a table in SQL, numbered."""
    listed = ",\n".join(f"({', '.join(literal(cell) for cell in row)}, {number})" for number, row in enumerate(rows))
    names = ", ".join(f'"{column}"' for column in columns)
    return f"(values {listed}) as {name}({names}, _anon_row)"


def _about(entry: Entry) -> tuple[str | None, ...]:
    kind = "method" if isinstance(entry, Method) else "measure"
    return (entry.name, kind, signature(entry), entry.summary, entry.paper, entry.example, about(entry))


def about(entry: Entry) -> str | None:
    """The docstring of the module a function's work is done in; pure SQL has comments in its file instead."""
    if isinstance(entry, PureSql):
        return None
    work = entry.release if isinstance(entry, Method) else entry.compute if isinstance(entry, Report) else entry.plan
    return inspect.getdoc(sys.modules[work.__module__])


def _parameters(entry: Entry) -> list[tuple[str | None, ...]]:
    parameters = parameters_of(entry)
    if not parameters:
        return [(entry.name, None, None, None)]
    return [(entry.name, p.name, _default(entry, p), p.doc) for p in parameters]
