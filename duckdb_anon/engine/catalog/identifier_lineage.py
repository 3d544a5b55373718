"""Which columns of a view or of a `(SELECT ...)` come from columns that a table's comment calls identifier or person.

A comment belongs to the table's column; what reads the table has none. So the statements are read, views through views,
by DuckDB's own parser: a column under its own name or another (`name AS who`), and one that is computed from it
(`md5(name)`, `left(name, 2)`, the row itself), is the table's column; a number that `count` gives is not. Where columns
are renamed by position, or all at once, each with a name that the tables do not have counts. What cannot be parsed
stands for every table it mentions, what cannot be seen for every table there is. Cost: two small queries of the
catalogue, a parse a view.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb

from duckdb_anon.engine.catalog.catalog import Catalog, Relation, names_of
from duckdb_anon.engine.catalog.column_roles import NAMING, role_of
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.identifier_case import fold, folded_sql

_VIEW = re.compile(r"^\s*create\b.*?\bview\b.*?\bas\b", re.IGNORECASE | re.DOTALL)
_COUNTS = ("count", "count_star", "approx_count_distinct")
_RENAMING = ("column_name_alias", "aliases", "rename_list", "pivots", "unpivots")


@dataclass
class _Statement:
    """Tables a statement reads by the name it gives them, and which of its names come from which others."""

    tables: dict[str, str] = field(default_factory=dict)  # alias, or name, to table
    # a name, and the output column it goes into; None for one without a name of its own
    pairs: list[tuple[str, str | None]] = field(default_factory=list)
    renames: bool = False  # whether columns get names that no list of outputs shows


def identifiers_read(catalog: Catalog, relation: Relation) -> Mapping[str, str]:
    """Columns of `relation` that name individuals in a table it reads, in lower case, with that role and table.

    A table's columns name those that their declared foreign keys lead to, through whatever tables.
    """
    references = _references_of(catalog) if relation.is_table else []
    if relation.is_table and not references:
        return {}
    labelled: dict[str, dict[str, str]] = {}
    for table, column, comment in catalog.comments.execute(
        f"select {folded_sql('table_name')}, {folded_sql('column_name')}, comment from duckdb_columns() "
        "where not internal and regexp_matches(comment, 'identifier|person', 'i')"
    ).fetchall():
        if role_of(comment) in NAMING:
            labelled.setdefault(table, {})[column] = f"{role_of(comment)} in {table}"
    if not labelled:
        return {}
    if relation.is_table:
        return _referring(relation, references, labelled)
    if not relation.visible:
        return {column: label for columns in labelled.values() for column, label in columns.items()}
    views = _views(catalog)
    waiting = [relation.sql] if relation.sql.startswith("(") else []
    seen: set[str] = set()
    if not waiting:
        view = fold(relation.sql.rsplit(".", 1)[-1].strip('"'))
        if view in labelled or view not in views:
            return {}
        waiting, seen = [views[view]], {view}
    found: dict[str, str] = {}
    statements: list[_Statement] = []
    while waiting:
        statements.append(_read(catalog.comments, waiting.pop()))
        for table in set(statements[-1].tables.values()) & (set(labelled) | set(views)) - seen:
            seen.add(table)
            found |= labelled.get(table, {})
            if table in views:
                waiting.append(views[table])
    return _spread(catalog, relation, found, statements, seen)


def _references_of(catalog: Catalog) -> list[tuple[str, str, str, str]]:
    """Table, column, table and column of each declared foreign key, folded."""
    if catalog.foreign_keys is not None:
        return catalog.foreign_keys
    columns = [
        "table_name", "unnest(constraint_column_names)", "referenced_table", "unnest(referenced_column_names)",
    ]  # fmt: skip
    rows = catalog.comments.execute(
        f"select {', '.join(columns)} from duckdb_constraints() where constraint_type = 'FOREIGN KEY'"
    ).fetchall()
    catalog.foreign_keys = [(fold(table), fold(column), fold(parent), fold(to)) for table, column, parent, to in rows]
    return catalog.foreign_keys


def _referring(
    relation: Relation, references: list[tuple[str, str, str, str]], labelled: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Columns of a table that hold the values of labelled ones, by foreign keys in either direction."""
    found = {(table, column): label for table, columns in labelled.items() for column, label in columns.items()}
    for _ in references:
        for table, column, parent, to in references:
            for one, other in (((table, column), (parent, to)), ((parent, to), (table, column))):
                if one in found:
                    found.setdefault(other, found[one])
    name = fold(relation.sql.rsplit(".", 1)[-1].strip('"'))
    return {column: label for (table, column), label in found.items() if table == name}


def names_read(catalog: Catalog, relation: Relation) -> tuple[list[str], set[str]]:
    """Tables and views that a relation names, as SQL; and, folded, all names that decide what its columns are.

    Those are read through views, or lead to or from a table by foreign keys.
    """
    if relation.is_table:
        linked = {names_of(relation.sql)[-1]}
        references = _references_of(catalog)
        for _ in references:
            for table, _, parent, _ in references:
                if linked & {table, parent}:
                    linked |= {table, parent}
        return [relation.sql], linked
    views = _views(catalog)
    direct = [relation.sql]
    if relation.sql.startswith("("):
        direct = tables_read(catalog.comments, relation.sql)
    waiting, found = {names_of(name)[-1] for name in direct}, set[str]()
    while waiting:
        name = waiting.pop()
        found.add(name)
        if name in views:
            waiting |= set(_read(catalog.comments, views[name]).tables.values()) - found
    return direct, found


def tables_read(con: duckdb.DuckDBPyConnection, select: str) -> list[str]:
    """Names of the tables, views and files a SELECT or view reads; none where it cannot be parsed."""
    nodes = list(tree_nodes(parsed(con, select)))
    steps = {fold(str(step["key"])) for node in nodes for step in node.get("cte_map", {}).get("map", ())}
    paths = [
        [node["catalog_name"], node["schema_name"], node["table_name"]] for node in nodes if node.get("table_name")
    ]
    return sorted({
        ".".join(ident(part) for part in path if part) for path in paths if path[1] or fold(path[2]) not in steps
    })  # fmt: skip


def _views(catalog: Catalog) -> dict[str, str]:
    """The statement of each view, by its folded name."""
    views = catalog.comments.execute("select view_name, sql from duckdb_views() where not internal").fetchall()
    return {fold(name): text for name, text in views}


def _spread(
    catalog: Catalog, relation: Relation, found: dict[str, str], statements: list[_Statement], read: set[str]
) -> dict[str, str]:
    """What the statements make of the columns they find."""
    unnamed: set[str] = set()
    for _ in range(sum(len(statement.pairs) for statement in statements) + 1):
        before = len(found)
        for statement in statements:
            rows = {alias: label for alias, table in statement.tables.items() for label in _of_table(found, table)}
            for source, target in statement.pairs:
                label = found.get(source) or rows.get(source)
                if label is not None and target is None:
                    unnamed.add(source)
                elif label is not None and target is not None:
                    found.setdefault(target, label)
        if len(found) == before:
            break
    for column in map(fold, relation.columns):
        words = set(re.findall(r"\w+", column)) & unnamed
        if words and not column.startswith(_COUNTS):
            found.setdefault(column, found.get(next(iter(words)), "identifier in a table that is read"))
    if found and any(statement.renames for statement in statements):
        names = {
            column
            for (column,) in catalog.comments.execute(
                f"select {folded_sql('column_name')} from duckdb_columns() "
                f"where list_contains(?, {folded_sql('table_name')})",
                [sorted(read)],
            ).fetchall()
        }
        label = next(iter(found.values()))
        found |= {column: label for column in map(fold, relation.columns) if column not in names | set(found)}
    return found


def _of_table(found: Mapping[str, str], table: str) -> list[str]:
    return [label for label in found.values() if label.endswith(f" in {table}")][:1]


def parsed(con: duckdb.DuckDBPyConnection, text: str) -> dict[str, Any] | None:
    """DuckDB's tree of a SELECT in parentheses, or of the one of a CREATE VIEW; None where it cannot be parsed."""
    select = _VIEW.sub("", text).strip().rstrip(";")
    select = select if select.startswith("(") else f"({select})"
    try:
        rows = con.execute("select json_serialize_sql(?::varchar)", [f"from {select} as _anon_read\n"]).fetchall()
    except duckdb.Error:
        return None
    tree: dict[str, Any] = json.loads(rows[0][0])
    return None if tree.get("error") else tree


def _read(cursor: duckdb.DuckDBPyConnection, text: str) -> _Statement:
    """What a statement reads, and what it makes of it."""
    tree = parsed(cursor, text)
    if tree is None:
        return _Statement({word: word for word in re.findall(r"\w+", text.lower())}, renames=True)
    found = _Statement()
    for node in tree_nodes(tree):
        if node.get("table_name"):
            table = fold(str(node["table_name"]))
            found.tables |= {table: table, fold(str(node.get("alias") or table)): table}
        found.renames |= any(node.get(key) for key in _RENAMING) or _renames_columns(node)
        if node.get("type") == "SELECT_NODE":
            found.pairs += [(ref, name) for name, refs in _outputs(node) for ref in refs if ref != name]
        if node.get("type") == "SET_OPERATION_NODE":
            first, *rest = [_outputs(select) for select in _selects(node)]
            found.pairs += [
                (ref, name)
                for other in rest
                for (name, _), (_, refs) in zip(first, other, strict=False)
                for ref in refs
            ]
    return found


def _renames_columns(node: Mapping[str, Any]) -> bool:
    """Whether an expression is `COLUMNS(...)` under another name, or a function of it."""
    if node.get("class") == "STAR":
        return bool(node.get("columns") and node.get("alias"))
    return node.get("class") == "FUNCTION" and any(inner.get("columns") is True for inner in tree_nodes(node))


def _outputs(select: Mapping[str, Any]) -> list[tuple[str | None, list[str]]]:
    """Name of each output of a SELECT, None for an expression without one, and the columns it is computed from."""
    found: list[tuple[str | None, list[str]]] = []
    for item in select.get("select_list", ()):
        refs = [fold(str(name)) for name in _references(item)]
        plain = refs[0] if item.get("class") == "COLUMN_REF" else None
        found.append((fold(str(item["alias"])) if item.get("alias") else plain, refs))
        for replaced in item.get("replace_list") or ():
            found += [(None, [fold(str(name)) for name in _references(replaced)])]
    return found


def _references(tree: Any) -> Iterator[str]:
    """Names of columns in an expression, but for what is counted."""
    if isinstance(tree, dict):
        if tree.get("function_name") in _COUNTS:
            return
        if tree.get("class") == "COLUMN_REF":
            yield tree["column_names"][-1]
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from _references(part)


def _selects(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The SELECTs of a set operation, from left to right."""
    if node.get("type") != "SET_OPERATION_NODE":
        return [node]
    branches = node.get("children") or [node.get("left"), node.get("right")]
    return [select for branch in branches if branch for select in _selects(branch)]


def tree_nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every node of a parsed statement."""
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from tree_nodes(part)
