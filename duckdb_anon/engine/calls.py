"""A planned call written again: the same method with the same roles and parameters on another table.

Cost: none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from duckdb_anon.engine.call_text import Recorded
from duckdb_anon.model.function_specs import Roles
from duckdb_anon.model.release_comment import argument_text, value_text
from duckdb_anon.model.release_formats.duckdb_types import kind_of_type

_MOST_SEED = 2**127


def call_on(
    recorded: Recorded, table: str, settled: Mapping[str, Any] | None = None, trees: Mapping[str, str] | None = None
) -> str:
    """Write a call with all roles as arguments, since comments stay with their table.

    Args:
        recorded: the call.
        table: what takes the place of its table.
        settled: parameters in place of its own.
        trees: names of the hierarchies where it will run, by the names the call knows them by.
    """
    arguments = {**recorded.arguments, **(settled or {})}
    if recorded.entry.resolve_params is not None and "columns" in recorded.params:
        arguments.setdefault("columns", recorded.params["columns"])
        arguments["columns"] = recorded.params["columns"]
    given = [value_text(table), *(f"{name} := {argument_text(value)}" for name, value in arguments.items())]
    given += [f"{name} := {value_text(value)}" for name, value in roles_as_arguments(recorded.roles, trees).items()]
    return f"{recorded.entry.name}({', '.join(given)})"


def roles_as_arguments(roles: Roles, trees: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Roles as the arguments that would give them.

    >>> from duckdb_anon.model.function_specs import ColumnInfo
    >>> roles_as_arguments(Roles(qi=(ColumnInfo("age", "INTEGER", "nominal"),)))
    {'qi': ['age'], 'sensitive': [], 'keep': [], 'categorical': ['age']}
    """
    coded = roles.qi + roles.sensitive
    arguments: dict[str, Any] = {
        "qi": [info.name for info in roles.qi],
        "sensitive": [info.name for info in roles.sensitive],
        "keep": [info.name for info in roles.keep],
    }
    if roles.person is not None:
        arguments["person"] = roles.person.name
    categorical = [i.name for i in coded if i.kind == "nominal" and kind_of_type(i.type) == "ordered"]
    if categorical:
        arguments["categorical"] = categorical
    hierarchies = {i.name: (trees or {}).get(i.hierarchy, i.hierarchy) for i in coded if i.hierarchy}
    if hierarchies:
        arguments["hierarchies"] = hierarchies
    return arguments


def on_table(call: str, table: str) -> str:
    """A call without its table, on a table; one that names it already stays as it is.

    >>> on_table("muco(0.2)", "people.parquet"), on_table("anon_functions", "people")
    ("muco('people.parquet', 0.2)", 'anon_functions')
    """
    name, bracket, rest = call.partition("(")
    if not bracket or rest.lstrip().startswith(value_text(table)):
        return call
    return f"{name}({value_text(table)}{', ' if rest.strip() != ')' else ''}{rest}"


def seed_of_part(seed: int | None, part: int) -> int | None:
    """A seed of its own for each part, so that no two of them draw alike; None where chance is the system's."""
    if seed is None:
        return None
    return int.from_bytes(hashlib.sha256(f"{seed} of part {part}".encode()).digest()) % _MOST_SEED
