"""How the contract tests call a method."""

from __future__ import annotations

from duckdb_anon.model.function_specs import Method


def smallest_call(entry: Method, table: str) -> str:
    """The name of a table and the arguments that a call cannot do without, which may be none.

    Args:
        entry: the method.
        table: what the table is called.
    """
    return f"'{table}', {entry.smallest}" if entry.smallest else f"'{table}'"
