"""Questions to a database for a page that never stays silent: one that fails leaves its reason."""

from __future__ import annotations

from typing import Any

import duckdb

from duckdb_anon.engine.interrupts import stoppable
from duckdb_anon.model.errors import without_code

Rows = list[dict[str, Any]]


class Asking:
    """A connection to ask, and what could not be answered."""

    def __init__(self, con: duckdb.DuckDBPyConnection, missing: dict[str, str]) -> None:
        """Put reasons into `missing`, by what was asked."""
        self.con, self.missing = con, missing

    def rows(self, what: str, question: str) -> Rows:
        """Rows of a query as mappings; none, and a reason, where it fails."""
        try:
            with stoppable():
                cursor = self.con.execute(question)
                names = [column[0] for column in cursor.description or ()]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except duckdb.Error as error:
            self.missing[what] = without_code(str(error))
            return []
