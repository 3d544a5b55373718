"""One query, answered from the original as its policy allows."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from duckdb_anon.engine.catalog import Catalog
from duckdb_anon.engine.column_roles import resolve_roles
from duckdb_anon.model.errors import AnonError, ColumnError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.outputs.block import Block, Table, read_block, table_name
from duckdb_anon.outputs.cells import Row, columns_of, compute
from duckdb_anon.outputs.policy import Policy, policy_of
from duckdb_anon.outputs.rules import primary, shown
from duckdb_anon.outputs.tables import suppress_secondary

SUPPRESSED = "suppressed"


@dataclass(frozen=True)
class Question:
    """A query with the policy of its table, before a row is read."""

    block: Block
    policy: Policy
    columns: tuple[tuple[str, str], ...]  # names and types of the query's columns


@dataclass(frozen=True)
class Answer:
    """The rows of an answer, each value with what was decided on it."""

    question: Question
    rows: tuple[Row, ...]  # all of them, with their rules
    shown: tuple[Row, ...]  # those whose keys may leave

    def values(self) -> list[tuple[list[str | None], str | None]]:
        """The rows that leave: values as text, those that may not leave None, and the rules that say so."""
        return [self._values(row) for row in self.shown]

    def _values(self, row: Row) -> tuple[list[str | None], str | None]:
        values, rules = [], {}
        items = self.question.block.items
        for item, value, (name, _) in zip(items, row.values, self.question.columns, strict=True):
            broken = next((row.rules[place] for place in item.aggregates if row.rules[place]), "")
            values.append(None if broken else value)
            if broken:
                rules[name] = broken
        every = sum(1 for item in items if item.aggregates)
        if len(rules) == every and len(set(rules.values())) == 1:
            return values, next(iter(rules.values()))
        return values, "; ".join(f"{name}: {rule}" for name, rule in rules.items()) or None


def read_question(function: str, catalog: Catalog, query: str) -> Question:
    """Read a query and the policy of its table; no row is read.

    Args:
        function: name of the function, for errors.
        catalog: the catalog of the database.
        query: one SELECT of aggregates of one table or view that has a policy.

    Raises:
        NoRule: there is no rule for something in the query.
        AnonError: the table has no policy.
        ColumnError: a column does not exist or may not be read.
    """
    name = table_name(function, query)
    relation = catalog.relation(function, "query", name)
    if relation.place is None:
        raise AnonError(
            f"{function}: '{name}' is not a committed table or view. Ask a table that has a policy", code="no-policy"
        )
    policy = policy_of(function, relation.given, relation.comment)
    roles = resolve_roles(function, relation, {}, needs=(), nested=True)
    by_name = roles.by_name() | dict.fromkeys(roles.identifier, "identifier")
    person = roles.person.name if roles.person else None
    sql = ".".join(f'"{part.replace(chr(34), chr(34) * 2)}"' for part in relation.place[:3])
    block = read_block(function, query, Table(relation.given, sql, relation.columns, by_name, person))
    columns = tuple(columns_of(catalog.cursor, function, block))
    if any(fold(column) == SUPPRESSED for column, _ in columns):
        raise ColumnError(f"{function}: the answer has a column '{SUPPRESSED}' already. Give that column another name")
    return Question(block, policy, columns)


def answer(con: duckdb.DuckDBPyConnection, function: str, question: Question) -> Answer:
    """Compute a query and decide on each of its values."""
    rows = compute(con, function, question.block, question.policy)
    for row in rows:
        row.rules = primary(question.block, question.policy, row)
    suppress_secondary(con, function, question.block, question.policy, rows)
    return Answer(question, tuple(rows), tuple(shown(question.block, question.policy, rows)))


def catalog_of(con: duckdb.DuckDBPyConnection) -> Catalog:
    """The catalog as a connection sees it."""
    ((database, schema),) = con.execute("select current_database(), current_schema()").fetchall()
    return Catalog(con, database, schema)
