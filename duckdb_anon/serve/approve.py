"""`duckdb-anon outputs approve`: a person releases a refused answer by hand; ledger and audit log keep who and why."""

from __future__ import annotations

import csv
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import duckdb

from duckdb_anon.engine.records.register import SCHEMA
from duckdb_anon.model.errors import AnonError
from duckdb_anon.outputs.answer import Answer, approved, catalog_of, read_question
from duckdb_anon.serve.audit import Audit
from duckdb_anon.serve.guard import Refused
from duckdb_anon.serve.researcher import open_file

_FUNCTION = "outputs"


def approve(con: duckdb.DuckDBPyConnection, number: int, by: str, why: str) -> tuple[Answer, str, str]:
    """Answer an entry of the ledger without suppression, and enter that it was approved.

    Args:
        con: a connection to the database of the ledger, which can be written.
        number: the entry, as `anon_outputs` shows it.
        by: who approves.
        why: the reason.

    Returns:
        The answer, its query, and the user who asked.

    Raises:
        AnonError: there is no such entry, or the name or the reason is empty.
    """
    if not by.strip() or not why.strip():
        raise AnonError(f"{_FUNCTION}: an approval has a name and a reason. Give --by NAME and --why TEXT")
    try:
        found = con.execute(f'select query, "user" from {SCHEMA}.outputs where number = ?', [number]).fetchall()
    except duckdb.CatalogException:
        found = []
    if not found:
        raise AnonError(f"{_FUNCTION}: there is no answer {number}. FROM anon_outputs('TABLE') lists them")
    query, user = found[0]
    question = read_question(_FUNCTION, catalog_of(con), query)
    return approved(con, _FUNCTION, question, query, user, (by, why)), query, user


def main(given: Namespace) -> int:
    """Approve an answer and write it as CSV."""
    if not Path(given.database).exists():
        raise AnonError(f"{_FUNCTION}: there is no database {given.database}")
    log = Audit(given.audit, 0)  # which the server rotates
    try:
        with open_file(given.database, {}) as con:
            found, query, user = approve(con, given.number, given.by, given.why)
    except Refused as error:
        raise AnonError(f"{_FUNCTION}: {error}") from error
    facts = {"decision": "approved", "output": found.number, "of": given.number, "statement": query}
    facts |= {"by": given.by, "why": given.why}
    log.write("approved", token=user, **facts)
    log.close()
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow([name for name, _ in found.question.columns])
    lines.writerows(row.values for row in found.rows)
    return 0


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `duckdb-anon outputs`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    hand = actions.add_parser("approve", help="release a refused answer by hand; the ledger keeps who and why")
    add = hand.add_argument
    add("database", help="DuckDB file with the original and the ledger")
    add("number", type=int, metavar="ID", help="number of the answer in anon_outputs")
    add("--by", required=True, metavar="NAME", help="who approves")
    add("--why", required=True, metavar="TEXT", help="the reason")
    add("--audit", metavar="FILE", help="the log of serve --audit, which it is written to, too")
