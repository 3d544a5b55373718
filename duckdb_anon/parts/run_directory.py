"""The folder of a run in parts: a database of its own, and how far the run has come.

It lies below the user's private folder, with a note of what is written, so that a run that was stopped finds it again.
It holds the original's rows, so nobody but its owner may look into it, and it goes when the run ends, well or not; only
a run that is stopped (interrupted, killed, power lost) leaves it, and the same call takes it up.
Cost: a pass over the original for its fingerprint.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import duckdb

from duckdb_anon.engine.records.private_files import folder_for
from duckdb_anon.engine.sql_quoting import ident, idents, literal
from duckdb_anon.model.errors import AnonError

DATABASE = "_anon_parts"
"""Name under which the run's database is attached."""


def directory_of(con: duckdb.DuckDBPyConnection, name: str, is_file: bool) -> Path:
    """Return the folder a run uses, below the user's private folder."""
    if is_file:
        return folder_for("parts", str(Path(name.rstrip("/\\")).absolute()))
    file = con.execute("select path from duckdb_databases() where database_name = current_database()").fetchall()[0][0]
    return folder_for("parts", f"{Path(file).absolute() if file else f'memory of {os.getpid()}'} {name}")


class RunDirectory:
    """An attached folder; see the module."""

    def __init__(self, con: duckdb.DuckDBPyConnection, folder: Path) -> None:
        """Attach the database of a folder, or make it there."""
        self.con, self.folder, self.file = con, folder, folder / "parts.duckdb"
        self.resumed = self.file.exists()
        try:
            con.execute(f"attach {literal(str(self.file))} as {DATABASE}")
        except duckdb.Error as error:
            if self.resumed and "lock" not in str(error).lower() and "already" not in str(error).lower():
                self._emptied()
                return
            raise AnonError(
                f"release: another run is at work in {folder}. Wait for it, or stop it, or write under another name"
            ) from error

    def _emptied(self) -> None:
        """Start afresh where what was left cannot be read."""
        for left in self.folder.glob("parts.duckdb*"):
            left.unlink()
        self.con.execute(f"attach {literal(str(self.file))} as {DATABASE}")
        self.resumed = False

    def take_up(self, fingerprint: str) -> bool:
        """Whether a run of this fingerprint got as far as its parts; forget any other."""
        tables = {row[0] for row in self.con.execute(
            "select table_name from duckdb_tables() where database_name = ?", [DATABASE]
        ).fetchall()}  # fmt: skip
        if "run" in tables:
            known = self.con.execute(f"select fingerprint from {DATABASE}.run").fetchall()
            if known == [(fingerprint,)]:
                return True
        for table in tables:
            self.con.execute(f"drop table {DATABASE}.{ident(table)}")
        return False

    def close(self, *, keep: bool) -> None:
        """Detach the database; remove the folder unless it is kept for the run to be taken up again."""
        try:
            self.con.execute(f"detach {DATABASE}")
        except duckdb.Error:
            keep = keep and self.folder.exists()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def fingerprint_of(con: duckdb.DuckDBPyConnection, sql: str, columns: Sequence[str], signature: str) -> str:
    """What distinguishes one run from another: its call, and the rows it reads in whatever order."""
    row = f"hash({idents(columns)})"
    found = con.execute(f"select count(*), bit_xor({row}), sum({row}::hugeint) from {sql}").fetchall()[0]
    return f"{signature} {' '.join(str(part) for part in found)}"
