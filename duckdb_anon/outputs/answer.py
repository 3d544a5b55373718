"""One query, answered from the original as its policy allows."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import numpy as np

from duckdb_anon.engine.catalog.catalog import Catalog
from duckdb_anon.engine.catalog.column_roles import resolve_roles
from duckdb_anon.engine.planned_tables import uncommitted
from duckdb_anon.model.errors import AnonError, ColumnError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import ident
from duckdb_anon.outputs.block import Block, NoRule, Table, read_block, table_name
from duckdb_anon.outputs.cells import Row, checksum_of, columns_of, compute
from duckdb_anon.outputs.differencing import Comparison
from duckdb_anon.outputs.known import KNOWN, Cells, is_read, with_known
from duckdb_anon.outputs.ledger import Bools, Ledger, Population
from duckdb_anon.outputs.policy import Policy, policy_of
from duckdb_anon.outputs.rules import DIFFERENCING, THRESHOLD, primary, shown
from duckdb_anon.outputs.tables import Cell, cells_of, hide, suppress_secondary

SUPPRESSED = "suppressed"
_ONE = threading.Lock()


@dataclass(frozen=True)
class Question:
    """A query with the policy of its table, before a row is read."""

    block: Block
    policy: Policy
    columns: tuple[tuple[str, str], ...]  # names and types of the query's columns
    database: str  # that holds the original
    original: str  # its schema and name


@dataclass(frozen=True)
class Answer:
    """The rows of an answer, each value with what was decided on it."""

    question: Question
    rows: tuple[Row, ...]  # all of them, with their rules
    shown: tuple[Row, ...]  # those whose keys may leave
    number: int = 0  # in the ledger; 0 where it was not entered

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
    sql = ".".join(map(ident, relation.place[:3]))
    block = read_block(function, query, Table(relation.given, sql, relation.columns, by_name, person))
    for aggregate in block.aggregates if policy.method == "cell_key" else ():
        if aggregate.measured is None and aggregate.function != "count":
            raise NoRule(
                f"{function}: method cell_key has no noise for {aggregate.function}. Ask for count, sum and avg"
            )
    columns = tuple(columns_of(catalog.cursor, function, block))
    if any(fold(column) == SUPPRESSED for column, _ in columns):
        raise ColumnError(f"{function}: the answer has a column '{SUPPRESSED}' already. Give that column another name")
    database, *place = relation.place[:3]
    return Question(block, policy, columns, database, ".".join(place))


def answer(
    con: duckdb.DuckDBPyConnection, function: str, question: Question, query: str, user: str = "",
    checksum: str | None = None,
) -> Answer:  # fmt: skip
    """Compute a query, decide on each of its values, and enter it in the ledger.

    Args:
        con: a connection to the database of the original.
        function: name of the function, for errors.
        question: what `read_question` read.
        query: the query as it was asked.
        user: who asks; '' enters nothing, and compares with the answers of all users.
        checksum: of the rows that the asker's transaction sees, by `checksum_sql`; None does not compare them.
    """
    block, policy = question.block, question.policy
    with _alone(con):
        ledger = Ledger(con, question.database, question.original)
        has_noise = policy.method == "cell_key"
        rows, atoms, table = compute(con, function, block, policy, ledger.secret() if has_noise else "")
        if checksum is not None and checksum != checksum_of(table):
            raise uncommitted(function, question.original)
        for row in rows:
            row.rules = primary(block, policy, row)
        entered = Population.none(), np.zeros(0, np.uint64)
        if not has_noise or is_read(block, atoms):
            cells, new = cells_of(block, atoms, rows)
            together = with_known(con, function, block, policy, (rows, atoms, table), new)
            earlier = ledger.answered(user if user and policy.ledger == "user" else None)
            comparison = Comparison(policy, together, ledger.known(), earlier)
            by_known = _hide_by_known(block, rows, len(cells), together, comparison)
            if not has_noise:
                known = {cell for cell, is_known in zip(cells, comparison.known(), strict=False) if is_known}
                suppress_secondary(block, policy, rows, atoms, known)
                refused = comparison.refused(np.concatenate([_hidden(rows, cells), by_known]))
                for (number, place), is_refused in zip(cells, refused, strict=False):
                    if is_refused:
                        hide(block, rows[number], place, DIFFERENCING)
            entered = comparison.entered(np.concatenate([_hidden(rows, cells), by_known]))
        number = ledger.write(user, query, entered, [rule for row in rows for rule in row.rules]) if user else 0
    return Answer(question, tuple(rows), tuple(shown(block, policy, rows)), number)


def approved(
    con: duckdb.DuckDBPyConnection, function: str, question: Question, query: str, user: str, why: tuple[str, str]
) -> Answer:
    """The whole answer of a query that somebody approves: `why` is the name and the reason, which the ledger keeps."""
    block, policy = question.block, question.policy
    with _alone(con):
        rows, atoms, table = compute(con, function, block, policy)
        _, new = cells_of(block, atoms, rows)
        together = with_known(con, function, block, policy, (rows, atoms, table), new)
        ledger = Ledger(con, question.database, question.original)
        entered = Comparison(policy, together, ledger.known(), []).entered(np.zeros(len(together.kinds), bool))
        number = ledger.write(user, query, entered, [""] * len(rows) * len(block.aggregates), why)
    return Answer(question, tuple(rows), tuple(rows), number)


def _hidden(rows: Sequence[Row], cells: Sequence[Cell]) -> Bools:
    return np.array([bool(rows[number].rules[place]) for number, place in cells], bool)


def _hide_by_known(block: Block, rows: Sequence[Row], cells: int, together: Cells, comparison: Comparison) -> Bools:
    """Hide what tells too much beside earlier answers by what everybody may know, whatever other rule a value breaks.

    Returns:
        Which cells of the known part are hidden.
    """
    if not together.place:
        return together.few
    refused = comparison.refused(np.concatenate([np.zeros(cells, bool), together.few]), KNOWN)[cells:]
    for (number, place), known in together.place.items():
        rule = THRESHOLD if together.few[known] else DIFFERENCING if refused[known] else ""
        if rule:
            rows[number].rules[place] = rule
            hide(block, rows[number], place, rule)
    return refused | together.few


@contextmanager
def _alone(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """One answer at a time, since two would not know of one another, in a transaction of its own if there is none."""
    with _ONE:
        try:
            con.begin()
        except duckdb.TransactionException:
            yield
            return
        try:
            yield
            con.commit()
        except BaseException:
            con.rollback()
            raise


def catalog_of(con: duckdb.DuckDBPyConnection) -> Catalog:
    """The catalog as a connection sees it."""
    ((database, schema),) = con.execute("select current_database(), current_schema()").fetchall()
    return Catalog(con, database, schema)
