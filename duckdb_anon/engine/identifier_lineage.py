"""Which columns of a view or of a `(SELECT ...)` are columns that a table's comment calls an identifier.

A comment belongs to the table's column; what reads the table has none. So the statements are read, views through views,
by DuckDB's own parser: a column that stands under its own name or another (`name AS who`) is the table's column, one
that is computed (`left(postcode, 2)`) is not, unless it takes the identifier's name. What cannot be parsed stands for
every table it mentions, what cannot be seen for every table there is. Cost: two small queries of the catalogue, a parse
a view.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.column_roles import role_of
from duckdb_anon.model.identifier_case import fold, folded_sql

_VIEW = re.compile(r"^\s*create\b.*?\bview\b.*?\bas\b", re.IGNORECASE | re.DOTALL)


def identifiers_read(catalog: Catalog, relation: Relation) -> Mapping[str, str]:
    """Columns of `relation` that are labelled identifier in a table it reads, in lower case, and that table.

    Args:
        catalog: of the caller's database.
        relation: a view or a SELECT; of a table there are none, its own comments say what it has. What the planner
            cannot see (a CTE, a DataFrame, a temporary table) may read any table, so every table's labels count.
    """
    if catalog.cursor is None:
        return {}
    labelled: dict[str, list[str]] = {}
    for table, column, comment in catalog.cursor.execute(
        f"select {folded_sql('table_name')}, {folded_sql('column_name')}, comment from duckdb_columns() "
        "where not internal and contains(lower(comment), 'identifier')"
    ).fetchall():
        if role_of(comment) == "identifier":
            labelled.setdefault(table, []).append(column)
    if not labelled:
        return {}
    if not relation.visible:
        return {column: table for table, columns in labelled.items() for column in columns}
    views: dict[str, str] = dict(
        catalog.cursor.execute(
            f"select {folded_sql('view_name')}, sql from duckdb_views() where not internal"
        ).fetchall()
    )
    waiting = [relation.text] if relation.text.startswith("(") else []
    if not waiting:
        own = fold(relation.sql.rsplit(".", 1)[-1].strip('"'))
        if own in labelled or own not in views:
            return {}
        waiting, seen = [views[own]], {own}
    else:
        seen = set()
    found: dict[str, str] = {}
    renamed: list[tuple[str, str]] = []
    while waiting:
        tables, names = _read(catalog.cursor, waiting.pop())
        renamed += names
        for table in tables & (set(labelled) | set(views)) - seen:
            seen.add(table)
            found |= dict.fromkeys(labelled.get(table, ()), table)
            if table in views:
                waiting.append(views[table])
    for _ in range(len(renamed)):
        more = {alias: found[name] for name, alias in renamed if name in found and alias not in found}
        if not more:
            break
        found |= more
    return found


def _read(cursor: duckdb.DuckDBPyConnection, text: str) -> tuple[set[str], list[tuple[str, str]]]:
    """Tables a statement reads, and its columns that it gives another name."""
    select = _VIEW.sub("", text).strip().rstrip(";")
    if not select.startswith("("):
        select = f"({select})"
    try:
        told = cursor.execute("select json_serialize_sql(?::varchar)", [f"from {select} as _anon_read\n"]).fetchall()
        tree = json.loads(told[0][0])
    except duckdb.Error:
        tree = {"error": True}
    if tree.get("error"):
        return set(re.findall(r"\w+", text.lower())), []
    nodes = list(tree_nodes(tree))
    tables = {fold(str(node["table_name"])) for node in nodes if node.get("table_name")}
    renamed = [
        (fold(str(node["column_names"][-1])), fold(str(node["alias"])))
        for node in nodes
        if node.get("class") == "COLUMN_REF" and node.get("alias")
    ]
    return tables, renamed


def tree_nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every node of a parsed statement."""
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from tree_nodes(part)
