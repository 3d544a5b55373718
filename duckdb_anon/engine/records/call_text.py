"""Planned calls of methods: noted for a release's description, written again on another table, and read from text.

The planner runs on the thread that executes the statement, so a note is kept a thread. A statement may plan several
calls (a table argument may call a method itself): the first that began is the outermost, the statement's own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from duckdb_anon.engine.catalog.catalog import Relation
from duckdb_anon.kernels.rng_streams import derived_seed
from duckdb_anon.model.function_specs import ColumnPlan, Method, Params, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import literal
from duckdb_anon.model.release_comment import HIDDEN, Description, Label, attributes_comment, table_name
from duckdb_anon.model.release_formats import released_name
from duckdb_anon.model.release_formats.duckdb_types import kind_of_type


@dataclass(frozen=True)
class Recorded:
    """One planned call of a method."""

    entry: Method  # the method
    relation: Relation  # its table argument, resolved
    roles: Roles  # columns by role
    arguments: Mapping[str, Any]  # the call's own arguments that were given; neither roles nor the table
    params: Params  # its parameters, defaults and what was settled while planning filled in
    layout: tuple[ColumnPlan, ...]  # the released columns

    def description(self, date: str, version: str) -> Description:
        """The comment of the release."""
        arguments = {name: value for name, value in self.arguments.items() if name not in HIDDEN}
        persons = self.entry.unit == "person" and self.roles.person is not None
        return Description(table_name(self.relation.given), self.entry.name, arguments, date, version, persons)

    def column_comments(self) -> dict[str, str]:
        """Comment of each released column that shows one of the original's, by its name."""
        labels = self._labels()
        comments: dict[str, str] = {}
        for plan in self.layout:
            label = labels.get(plan.column or plan.name)
            inside = {f.name: labels[f.column or f.name] for f in plan.fields if (f.column or f.name) in labels}
            if plan.fields and inside and released_name(plan.name, ()) == plan.name:  # no carrier
                comments[plan.name] = attributes_comment(inside)
            elif not plan.fields and label is not None:
                comments[plan.name] = label.comment()
        return comments

    def _labels(self) -> dict[str, Label]:
        roles, labels = self.roles.by_name(), dict[str, Label]()
        for info in (*self.roles.coded, *self.roles.keep):
            labels[info.name] = Label(roles[info.name])
            if roles[info.name] in ("quasi", "sensitive"):
                categorical = info.kind == "nominal" and kind_of_type(info.type) == "ordered"
                labels[info.name] = Label(roles[info.name], categorical, info.hierarchy)
        return labels


class _Notes(threading.local):
    """The thread's note, if one is being taken."""

    check: Callable[[Recorded], None] | None = None
    outermost: object | None = None
    recorded: Recorded | None = None


_notes = _Notes()


@contextmanager
def recording(check: Callable[[Recorded], None]) -> Iterator[Callable[[], Recorded | None]]:
    """Note the outermost call planned on this thread inside the block; none of its calls is run."""
    _notes.check, _notes.outermost, _notes.recorded = check, None, None
    try:
        yield lambda: _notes.recorded
    finally:
        _notes.check, _notes.outermost, _notes.recorded = None, None, None


def begin(call: object) -> None:
    """Note that the planner takes up a call."""
    if _notes.check is not None and _notes.outermost is None:
        _notes.outermost = call


def note(call: object, recorded: Callable[[], Recorded]) -> None:
    """Keep what the call became, if it is the outermost one."""
    if _notes.check is not None and _notes.outermost is call and _notes.recorded is None:
        found = recorded()
        _notes.check(found)
        _notes.recorded = found


def will_run() -> bool:
    """Whether the call this thread plans is going to be run on its table as it is."""
    return _notes.check is None


def call_on(recorded: Recorded, table: str) -> str:
    """Write a call with all roles as arguments, since comments stay with their table."""
    arguments = dict(recorded.arguments)
    if recorded.entry.resolve_params is not None and "columns" in recorded.params:
        arguments["columns"] = recorded.params["columns"]
    given = [literal(table), *(f"{name} := {literal(value)}" for name, value in arguments.items())]
    given += [f"{name} := {literal(value)}" for name, value in roles_as_arguments(recorded.roles).items()]
    return f"{recorded.entry.name}({', '.join(given)})"


def roles_as_arguments(roles: Roles) -> dict[str, Any]:
    """Roles as the arguments that would give them.

    >>> from duckdb_anon.model.function_specs import ColumnInfo
    >>> roles_as_arguments(Roles(qi=(ColumnInfo("age", "INTEGER", "nominal"),)))
    {'qi': ['age'], 'sensitive': [], 'keep': [], 'categorical': ['age']}
    """
    arguments: dict[str, Any] = {
        "qi": [info.name for info in roles.qi],
        "sensitive": [info.name for info in roles.sensitive],
        "keep": [info.name for info in roles.keep],
    }
    if roles.person is not None:
        arguments["person"] = roles.person.name
    categorical = [
        info.name
        for info in roles.qi + roles.sensitive
        if info.kind == "nominal" and (not info.type or kind_of_type(info.type) == "ordered")
    ]
    if categorical:
        arguments["categorical"] = categorical
    hierarchies = replace(roles, keep=()).trees()
    if hierarchies:
        arguments["hierarchies"] = hierarchies
    return arguments


def on_table(call: str, table: str) -> str:
    """A call without its table, on a table; one that names it already stays as it is.

    >>> on_table("muco(0.2)", "people.parquet"), on_table("anon_functions", "people")
    ("muco('people.parquet', 0.2)", 'anon_functions')
    """
    name, bracket, rest = call.partition("(")
    if not bracket or rest.lstrip().startswith(literal(table)):
        return call
    return f"{name}({literal(table)}{', ' if rest.strip() != ')' else ''}{rest}"


def seed_of_part(seed: int | None, part: int) -> int | None:
    """A seed of its own for each part, so that no two of them draw alike; None where chance is the system's."""
    return None if seed is None else derived_seed(seed, f"part {part}")


def function_called(con: duckdb.DuckDBPyConnection, call: str) -> str | None:
    """Name of the one table function that `FROM call` calls, None where it does anything else.

    >>> con = duckdb.connect()
    >>> function_called(con, "Muco('people', 0.2)"), function_called(con, "muco('people', 0.2) LIMIT 3")
    ('muco', None)
    """
    function = _called(con, call)
    return None if function is None else fold(str(function.get("function_name", "")))


def table_called(con: duckdb.DuckDBPyConnection, call: str) -> str | None:
    """The table of a call, which is its argument `tbl`, or the first one; None where that is no text.

    >>> table_called(duckdb.connect(), "muco(delta := 0.2, tbl := 'people')")
    'people'
    """
    function = _called(con, call) or {}
    # DuckDB 2.0 lists arguments with their names, 1.5 as expressions with an alias
    older = [{"name": part.get("alias"), "expression": part} for part in function.get("children", [])]
    given = [(part.get("name"), part["expression"]) for part in function.get("arguments") or older]
    named = [expression for name, expression in given if fold(str(name)) == "tbl"]
    found: dict[str, Any] = next(iter([*named, *(expression for _, expression in given)]), {})
    value = found.get("literal", {}).get("text") if "literal" in found else found.get("value", {}).get("value")
    return value if isinstance(value, str) else None


def _called(con: duckdb.DuckDBPyConnection, call: str) -> dict[str, Any] | None:
    """DuckDB's tree of the one table function that `FROM call` calls."""
    try:
        if len(duckdb.extract_statements(f"from {call}")) != 1:
            return None
        text = con.execute("select json_serialize_sql(?::varchar)", [f"from {call}\n"]).fetchall()[0][0]
    except duckdb.Error:
        return None
    answer = json.loads(text)
    node = answer["statements"][0]["node"] if not answer.get("error") else {}
    source = node.get("from_table", {})
    plain = [item.get("class") for item in node.get("select_list", [])] == ["STAR"]
    around = (
        node.get("where_clause") or node.get("modifiers") or node.get("sample") or node.get("cte_map", {}).get("map")
    )
    if source.get("type") != "TABLE_FUNCTION" or not plain or around:
        return None
    function: dict[str, Any] = source.get("function", {})
    return function
