"""Which statements an analyst may run: one SELECT over published tables with functions known to be harmless.

Decided on the statement as DuckDB's own parser reads it, never on its text, and closed by default: a kind of
node, table, function or name that is not listed here is refused. The guard is the second wall; the first is that
the analyst's process holds nothing but releases and can open nothing.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import duckdb

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.serve.function_allowlist import FUNCTIONS

Node = dict[str, Any]
Argument = tuple[str, Node]

# What an ATTACHed client asks to list tables; the answer names nothing but releases.
_LISTINGS = (
    "SELECT catalog_name, schema_name FROM information_schema.schemata "
    "WHERE catalog_name NOT IN ('system', 'temp') ORDER BY ALL",
    "SELECT schema_name, sql, 'table' FROM duckdb_tables() UNION ALL "
    "SELECT schema_name, view_name, 'view' FROM duckdb_views()",
)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUERIES = {"SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE"}
_TABLES = {"BASE_TABLE", "SUBQUERY", "JOIN", "EMPTY", "EXPRESSION_LIST", "PIVOT", "TABLE_FUNCTION"}
_MODIFIERS = {
    "ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER", "ORDER_DEFAULT", "ASCENDING",
    "DESCENDING", "ORDER_ASCENDING", "ORDER_DESCENDING",
}  # fmt: skip
_EXPRESSIONS = {
    "BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION",
    "LAMBDA", "LAMBDA_REF", "OPERATOR", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW",
}  # fmt: skip
# Functions of the package for analysts: what each argument must be.
_TABLE_FUNCTIONS = {
    "unnest": (),
    "anon_functions": (),
    "anon_parameters": (),
    "describe_release": ("table",),
    "anatomy_qit": ("table",),
    "anatomy_st": ("table",),
}
_ASKING = "estimate"
_NO_MEMORY = "std::bad_alloc"  # DuckDB's parser reports a failed allocation as an error of syntax with this text
_REWRITE = "rewrite_query"


class Refused(Exception):
    """The statement may not run; the reason names no table and no path."""


class Guard:
    """Decides over statements for a fixed set of published tables."""

    def __init__(self, published: Iterable[str]) -> None:
        """Allow the tables and views named in `published`, in the default schema."""
        self.published = {fold(name) for name in published}
        self._parser = duckdb.connect(":memory:")
        self._lock = threading.Lock()
        self._taken = {
            fold(name)
            for (name,) in self._parser.execute(
                "select view_name from duckdb_views() union all select table_name from duckdb_tables()"
            ).fetchall()
        }

    def allows(self, statement: str) -> bool:
        """Tell whether `statement` may run; nothing that goes wrong here ever lets one through.

        Raises:
            MemoryError: when there is too little memory to read the statement, which tells nothing of it.
        """
        try:
            self.check(statement)
        except MemoryError:
            raise
        except Exception:  # refused, or closed by default: a tree too deep to walk, a shape the parser never had before
            return False
        return True

    def check(self, statement: str) -> None:
        """Check one text.

        Raises:
            Refused: unless it is exactly one harmless SELECT over published tables.
            MemoryError: when there is too little memory to read it.
        """
        if " ".join(statement.split()) in _LISTINGS:
            return
        tree = self._parsed(statement)
        names = [entry["key"] for node in _nodes(tree) for entry in node.get("cte_map", {}).get("map", [])]
        local = {self._local_name(name) for name in names}
        for node in _nodes(tree):
            self._check_node(node, local)

    def _parsed(self, statement: str) -> Any:
        """The statement's tree.

        Raises:
            Refused: when it is not one SELECT that DuckDB can read.
            MemoryError: when DuckDB has too little memory to read it.
        """
        try:
            with self._lock:
                statements = duckdb.extract_statements(statement)
                if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                    raise Refused("one SELECT at a time")
                row = self._parser.execute("select json_serialize_sql(?::varchar)", [statement]).fetchall()[0]
        except duckdb.Error as error:
            if isinstance(error, duckdb.OutOfMemoryException) or _NO_MEMORY in str(error):
                raise MemoryError from error
            raise Refused("not a statement DuckDB can read") from error
        answer = json.loads(row[0])
        if answer.get("error_type") == "out of memory" or _NO_MEMORY in answer.get("error_message", ""):
            raise MemoryError
        if answer.get("error") is not False or len(answer.get("statements", [])) != 1:
            raise Refused("this kind of SELECT is not allowed")
        return answer["statements"][0]["node"]

    def _local_name(self, name: str) -> str:
        """A CTE's name, which must not be one that means something outside its query."""
        if not _PLAIN_NAME.fullmatch(name) or fold(name) in self._taken:
            raise Refused("a name given in WITH must be a plain word that no table has")
        return fold(name)

    def _check_node(self, node: Node, local: set[str]) -> None:
        kind = node["type"]
        if "class" in node:
            if node["class"] not in _EXPRESSIONS:
                raise Refused("this kind of expression is not allowed")
            if node["class"] in ("FUNCTION", "WINDOW"):
                self._check_function(node)
            elif node["class"] == "TYPE" and _is_qualified(node):
                raise Refused("types are named without a catalog or schema")
        elif kind == "BASE_TABLE":
            self._check_table(node, local)
        elif kind == "TABLE_FUNCTION":
            self._check_table_function(node["function"])
        elif kind not in _QUERIES | _TABLES | _MODIFIERS:
            raise Refused("this kind of query is not allowed")

    def _check_table(self, node: Node, local: set[str]) -> None:
        name = fold(node["table_name"])
        if node.get("catalog_name") or fold(node.get("schema_name", "")) not in ("", "main") or _is_qualified(node):
            raise Refused("only published tables can be read, without a catalog before their names")
        if node.get("at_clause") is not None or name not in self.published | local:
            raise Refused("only published tables can be read")

    def _check_function(self, node: Node) -> None:
        name = fold(node.get("function_name", ""))
        if node.get("catalog") or fold(node.get("schema", "")) not in ("", "main") or _is_qualified(node):
            raise Refused("functions are called without a catalog or schema before their names")
        if name == _REWRITE:
            self._check_rewrite(_arguments(node))
        elif name in (*_TABLE_FUNCTIONS, _ASKING) and node.get("class") == "FUNCTION":
            # as a table function it is checked where it stands; as a scalar only unnest exists
            return
        elif name not in FUNCTIONS:
            raise Refused("this function is not allowed")

    def _check_estimate(self, given: list[Argument]) -> None:
        """Check that estimate gets a query that could itself run, and a published table."""
        if [name for name, _ in given] not in (["", ""], ["", "", "bounds"]):
            raise Refused("estimate takes a query and a release, in this order")
        self.check(_text(given[0][1]))
        self._check_table_text(given[1][1])

    def _check_table_function(self, function: Node) -> None:
        name = fold(function.get("function_name", ""))
        if function.get("class") == "FUNCTION" and name == _ASKING:
            self._check_estimate(_arguments(function))
            return
        if function.get("class") != "FUNCTION" or name not in _TABLE_FUNCTIONS:
            raise Refused("this table function is not allowed")
        if _TABLE_FUNCTIONS[name] == ("table",):
            given = _arguments(function)
            if len(given) != 1 or given[0][0]:
                raise Refused("the function takes one argument here, the name of a published table")
            self._check_table_text(given[0][1])

    def _check_rewrite(self, given: list[Argument]) -> None:
        """Check that rewrite_query gets a query that could itself run, and two published tables."""
        if [name for name, _ in given] not in (["", "", ""], ["", "", "", "bounds"]):
            raise Refused("rewrite_query takes a query, an original and a release, in this order")
        self.check(_text(given[0][1]))
        for _, node in given[1:3]:
            self._check_table_text(node)

    def _check_table_text(self, node: Node) -> None:
        """Check that a text names a published table: a SELECT in parentheses would run unseen."""
        if fold(_text(node)) not in self.published:
            raise Refused("the table argument must be the name of a published table")


def _is_qualified(node: Node) -> bool:
    """Whether a name stands in another schema than main (DuckDB 2.0 writes the whole path)."""
    path = [fold(str(part)) for part in node.get("qualified_name", {}).get("path", [])]
    return len(path) > 2 or (len(path) == 2 and path[0] != "main")


def _arguments(function: Node) -> list[Argument]:
    """Name ('' when positional) and tree of each argument, as DuckDB 1.5 or 2.0 writes them."""
    if "arguments" in function:
        return [(given["name"].lower(), given["expression"]) for given in function["arguments"]]
    return [(fold(child.get("alias", "")), child) for child in function["children"]]


def _text(node: Node) -> str:
    """The text of a constant, as DuckDB 1.5 or 2.0 writes it."""
    if node.get("class") == "CONSTANT":
        value, literal = node.get("value", {}), node.get("literal", {})
        text = literal.get("text") if literal.get("kind") == "STRING" else value.get("value")
        if isinstance(text, str) and not value.get("is_null"):
            return text
    raise Refused("the argument must be a plain text")


def _nodes(tree: Any) -> Iterator[Node]:
    """Every node of a parsed statement; types and the values of constants are no nodes."""
    stack = [tree]
    while stack:
        here = stack.pop()
        if isinstance(here, list):
            stack.extend(here)
        elif isinstance(here, dict):
            if isinstance(here.get("type"), str):
                yield here
                if here.get("class") == "CONSTANT":
                    continue
            stack.extend(value for key, value in here.items() if key != "cast_type")
