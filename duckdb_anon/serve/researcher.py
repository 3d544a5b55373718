"""The original for researchers: tables with a policy for answers, each statement answered as `safe_output` does.

No text of a client runs in the original's database: a statement that the guard has checked is read by the grammar of
`outputs`, computed, decided on and entered in the ledger under the name of the token. Its values go to the client as
constants, in SQL for the in-memory database that clients reach, which is empty. Clients see of tables their names,
columns, types without the labels of enumerations, roles, and the threshold.
The file is open only while a statement is answered, so that others may approve an answer or load rows in between.
Cost: that of `safe_output`, and some 40 ms to open and close the file.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import duckdb

from duckdb_anon.engine.catalog.column_roles import label_of
from duckdb_anon.gate.source_tables import SourceTable, tables_of
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.release_formats.duckdb_types import without_enums
from duckdb_anon.outputs.answer import SUPPRESSED, answer, catalog_of, read_question
from duckdb_anon.outputs.ledger import decision
from duckdb_anon.outputs.policy import has_policy, policy_of
from duckdb_anon.serve.answers import Answer, Catalog, asks_for_rows, values_sql
from duckdb_anon.serve.guard import ANSWERING, HARMLESS, Guard, Refused, Statement
from duckdb_anon.serve.limits import NO_MEMORY, ServingLimits
from duckdb_anon.serve.server import Checked
from duckdb_anon.serve.tokens import Client

Stamp = tuple[tuple[int, int, int], ...]
_FUNCTION, _ASKING = "serve", "safe_output"
_UNREADABLE = "{name} has no policy for answers, so it is not answered from; SHOW TABLES lists tables that have one"
_NO_ROWS = (
    "rows of the original do not leave. Ask for aggregates, and send the statement to the server: "
    "FROM quack_query(...), or of an attached server FROM r.query('SELECT ...')"
)
_OUTSIDE = "the view cannot be read here; views of files outside of the database are not answered from"
_WAITED = "other statements are answered now; ask again in a moment"
_FAILED = "the query cannot be computed on this table"
_BUSY = "another program uses the database now; ask again in a moment"
_THREADS = 8
_PATIENCE = 5.0  # seconds to wait for another program that uses the file


def open_file(file: str, settings: dict[str, str]) -> duckdb.DuckDBPyConnection:
    """Open a database for writing; one that another program has open is waited for a while, then Refused."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return duckdb.connect(file, config=dict(settings))
        except duckdb.IOException as error:
            if "Could not set lock" not in str(error):
                raise
            if time.monotonic() > until:
                raise Refused(_BUSY) from error
        time.sleep(0.1)


class Researcher(Checked):
    """A database of which clients get checked answers alone."""

    def __init__(self, database: str, limits: ServingLimits | None = None) -> None:
        """Look for tables with a policy in the file `database`, which answers are entered in."""
        limits = limits or ServingLimits()
        if not Path(database).exists():
            raise AnonError(f"{_FUNCTION}: there is no database {database}")
        super().__init__(limits)
        self.bound(limits)
        self._file, self._seconds, self._one = database, limits.seconds, threading.Lock()
        off = ("enable_external_access", "autoinstall_known_extensions", "autoload_known_extensions")
        self._settings = dict.fromkeys((*off, "python_enable_replacements"), "false")
        self._settings |= {"max_temp_directory_size": "0B", "memory_limit": f"{limits.memory}B"}
        # threads of each opening, which takes memory for them when memory is bounded already
        self._settings["threads"] = str(limits.threads or min(os.cpu_count() or 1, _THREADS))
        self._shapes: list[SourceTable] = []
        self._read: Stamp = ()  # the file when its tables were read
        try:
            self._visible(None)
        except Refused as error:
            raise AnonError(f"{_FUNCTION}: {error}") from error
        if not self._shapes:
            raise AnonError(
                f"{_FUNCTION}: no table of {database} has a policy for answers. Write one: COMMENT ON TABLE people IS "
                "'anon: outputs(threshold := 10)'",
                code="no-policy",
            )

    def _opened(self) -> duckdb.DuckDBPyConnection:
        """A connection to the original, which is closed to everything but its file."""
        con = open_file(self._file, self._settings)
        con.execute("set enable_progress_bar = false")  # standard output is the protocol's, or a log
        return con

    def _visible(self, tables: tuple[str, ...] | None) -> tuple[Guard, Catalog]:
        now = _stamp(self._file)
        if now != self._read:
            with self._opened() as con:
                every = tables_of(con, catalog_of(con).database)
            shapes = [_shape(table) for table in every if table.schema == "main" and has_policy(table.comment)]
            if shapes != self._shapes:
                self._shapes, self._seen = shapes, {}
            self._read = now
        return super()._visible(tables)

    def _tables(self) -> tuple[Guard, list[SourceTable]]:
        names = [shape.name for shape in self._shapes]
        return Guard(names, HARMLESS, {"unnest": ANSWERING["unnest"]}, (), _UNREADABLE), self._shapes

    def _answered(self, statement: str, found: Statement, client: Client, session: str) -> Answer:
        if found.is_constant:
            constant = Answer(statement, "constants")
            return self._run(constant, session, client) if session else constant
        if asks_for_rows(found):
            raise Refused(_NO_ROWS)
        # what is wrong with names and types is said of tables without rows, where no error can quote a value
        self._visible(client.tables)[1].answer(f"describe {statement}")
        since = time.monotonic()
        # one after the other, as each is compared with all before it; what waits keeps to its time, too
        if not self._one.acquire(timeout=self._seconds or -1):
            raise Refused(_WAITED)
        try:
            with self._opened() as con, self.statements.watched(session, client.name, con, since):
                question = read_question(_ASKING, catalog_of(con), statement)
                given = answer(con, _ASKING, question, statement, client.name)
        except MemoryError as error:  # to send it again would take as much
            raise Refused(NO_MEMORY) from error
        except OSError as error:  # DuckDB's in Arrow's words, which may quote values
            raise Refused(NO_MEMORY if "Out of Memory" in str(error) else _FAILED) from None
        except AnonError as error:  # the guard has found its policy, so DuckDB cannot read it
            if error.code != "no-policy":
                raise
            raise Refused(_OUTSIDE) from error
        finally:
            self._one.release()
        columns = [*((name, without_enums(kind)) for name, kind in question.columns), (SUPPRESSED, "VARCHAR")]
        order = f" order by {', '.join(question.block.order)}" if question.block.order else ""
        sql = values_sql(columns, [(*values, rule) for values, rule in given.values()]) + order + question.block.limit
        rules = [rule for row in given.rows for rule in row.rules]
        facts = {"output": given.number, "decision": decision(rules), "cells": len(rules)}
        facts["suppressed"] = sum(map(bool, rules))
        return Answer(sql, "original", facts=facts)


def _stamp(file: str) -> Stamp:
    """What changes when the file does, or the log of what was written to it last."""
    found = [Path(name).stat() for name in (file, f"{file}.wal") if Path(name).exists()]
    return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in found)


def _shape(table: SourceTable) -> SourceTable:
    """A table as clients see it: a comment may say anything else, and the type of an enumeration has values."""
    threshold = policy_of(_FUNCTION, table.name, table.comment).threshold
    columns = {
        name: (without_enums(kind), f"anon: {label.role}" if (label := label_of(text)) else None)
        for name, (kind, text) in table.columns.items()
    }
    return replace(table, comment=f"answers of {threshold} individuals or more", columns=columns, is_view=False)
