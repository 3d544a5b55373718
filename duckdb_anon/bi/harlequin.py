"""Harlequin adapter `harlequin -a anon file.duckdb`: its DuckDB adapter with the package loaded.

Found by the entry point `anon`. The functions are completed with their signatures, and cancelling a query also
stops a running kernel. `harlequin -a anon 'releases.duckdb?answer=people:release'` answers queries that name `people`
from its release, as the SQLAlchemy dialect does.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import duckdb
from harlequin import HarlequinCompletion
from harlequin.exception import HarlequinQueryError
from harlequin_duckdb import DuckDbAdapter
from harlequin_duckdb.adapter import DuckDbConnection, DuckDbCursor

from duckdb_anon.answering.original_names import Answering, RewriteQuery
from duckdb_anon.binder_errors import explained
from duckdb_anon.model.errors import AnonError
from duckdb_anon.registry import ENTRIES
from duckdb_anon.sql_functions import load

_FIRST = 10  # before keywords and DuckDB's own functions


class AnonConnection(DuckDbConnection):
    """A DuckDB connection that knows the package's functions."""

    answering: Answering | None = None

    def get_completions(self) -> list[HarlequinCompletion]:
        """DuckDB's completions and the package's functions, which are temporary macros and not in its list."""
        functions = [
            HarlequinCompletion(label=e.name, type_label="anon", value=e.name, priority=_FIRST, context=None)
            for e in ENTRIES
        ]
        return functions + super().get_completions()

    def execute(self, query: str) -> DuckDbCursor | None:
        """Run a query; an argument no parameter takes is named, with the nearest one."""
        try:
            if self.answering is not None:
                query, _ = self.answering.rewritten(query, (), RewriteQuery(self.conn))
            return super().execute(query)
        except (duckdb.Error, AnonError) as error:
            raise HarlequinQueryError(msg=str(error), title="The release does not answer this query") from error
        except HarlequinQueryError as error:
            raise HarlequinQueryError(msg=explained(error.msg, query), title=error.title) from error


class AnonAdapter(DuckDbAdapter):
    """Harlequin's DuckDB adapter, with the package loaded on the connection."""

    ADAPTER_DETAILS = "DuckDB with the functions of duckdb-anon."
    conn_str: Any  # the paths it was asked to open
    read_only: bool

    def connect(self) -> AnonConnection:
        """Open the database and load the package."""
        requested: dict[str, list[str]] = {}
        files = []
        for path in self.conn_str:
            file, _, query = str(path).partition("?")
            found = parse_qs(query) if query.startswith(("answer=", "bounds=")) else {}
            files.append(file if found else str(path))
            requested.update(found)
        self.conn_str = files
        answering = Answering.requested(requested)
        self.read_only = self.read_only or answering is not None
        plain = super().connect()
        if answering is not None:
            answering.require_published(plain.conn)
        load(plain.conn)
        made = AnonConnection(plain.conn, plain.init_message)
        made.answering = answering
        return made
