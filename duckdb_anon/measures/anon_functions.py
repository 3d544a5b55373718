"""anon_functions: every function with its parameters, what they mean, and the paper it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from duckdb_anon.engine.plan import parameters_of
from duckdb_anon.engine.quoting import literal
from duckdb_anon.spec import REQUIRED, Entry, Method, Parameter, Params, Query

_COLUMNS = ("function", "kind", "signature", "summary", "parameter", "default", "meaning", "paper")


def listing(entries: Callable[[], Iterable[Entry]]) -> Query:
    """The entry of `anon_functions`; `entries` is asked when it is called, since the registry holds this one too."""

    def plan(context: Any, params: Params) -> str:
        rows = [row for entry in entries() for row in _rows(entry)]
        values = ",\n".join("(" + ", ".join(literal(cell) for cell in row) + ")" for row in rows)
        names = ", ".join(f'"{c}"' for c in _COLUMNS)
        return f"select * from (values {values}) as _anon_functions({names})"

    return Query(
        name="anon_functions",
        summary="this list: one row a function and parameter",
        paper="",
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


def _rows(entry: Entry) -> list[tuple[str | None, ...]]:
    kind = "method" if isinstance(entry, Method) else "measure"
    about = (entry.name, kind, signature(entry), entry.summary)
    parameters = parameters_of(entry)
    if not parameters:
        return [(*about, None, None, None, entry.paper)]
    return [(*about, p.name, _default(entry, p), p.doc, entry.paper) for p in parameters]
