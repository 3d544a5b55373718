"""Functions that SQL calls without parentheses, written as calls: DuckDB takes their names for columns where it can.

    select current_date, count(*) from t      select today() as current_date, count(*) from t

A rewritten query gives each expression its name, and `current_date as current_date` reads itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.walking import all_of

_CALLS: dict[type[exp.Func], tuple[str, str]] = {
    exp.CurrentDate: ("current_date", "today"),
    exp.CurrentTime: ("current_time", "get_current_time"),
    exp.CurrentTimestamp: ("current_timestamp", "get_current_timestamp"),
    exp.Localtime: ("localtime", "current_localtime"),
    exp.Localtimestamp: ("localtimestamp", "current_localtimestamp"),
    exp.CurrentCatalog: ("current_catalog", "current_catalog"),
    exp.CurrentUser: ("current_user", "current_user"),
    exp.SessionUser: ("session_user", "session_user"),
}
"""What is written without parentheses, and the function that it calls."""


def as_calls(tree: exp.Query, tables: Sequence[TableInfo]) -> None:
    """Write such functions as calls, in place.

    Args:
        tree: a parsed query.
        tables: those whose columns are known.

    Raises:
        RewriteError: a column has the name of one of them, so which one is meant depends on where it stands.
    """
    found = [node for node in all_of(tree, *_CALLS) if not node.this]
    if not found:
        return
    aliases = [one for one in all_of(tree, exp.Alias) if type(one.this) not in _CALLS]
    taken = {fold(name) for info in tables for name, _ in info.columns} | {fold(one.alias) for one in aliases}
    taken |= {fold(name.name) for alias in all_of(tree, exp.TableAlias) for name in alias.columns}
    for node in found:
        bare, call = _CALLS[type(node)]
        if bare in taken:
            raise RewriteError(
                f'{bare} is a column here and a function; write "{bare}" in quotes for the column, or give it another '
                "name for the function"
            )
        node.replace(exp.Anonymous(this=call))
