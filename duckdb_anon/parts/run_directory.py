"""The folder of a run in parts: a database of its own, and how far the run has come.

It lies beside what is written (beside the temporary files of a database in memory), so that a run that was stopped
finds it again. It holds the original's rows, so nobody but its owner may look into it, and it goes when the run ends,
well or not; only a run that is stopped (interrupted, killed, power lost) leaves it, and the same call takes it up.
Cost: a pass over the original for its fingerprint.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb

from duckdb_anon.engine.sql_quoting import ident, idents, literal
from duckdb_anon.model.errors import AnonError

DATABASE = "_anon_parts"
"""Name under which the run's database is attached."""
_SUFFIX = ".anon-parts"


def place_of(con: duckdb.DuckDBPyConnection, name: str, is_file: bool) -> Path:
    """Return the folder a run uses.

    Args:
        con: the connection whose table is written.
        name: table or file that is written.
        is_file: whether it is a file.
    """
    if is_file:
        goal = Path(name.rstrip("/\\"))
        return goal.with_name(f".{goal.name}{_SUFFIX}")
    file = con.execute("select path from duckdb_databases() where database_name = current_database()").fetchall()[0][0]
    safe = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)
    if file:
        return Path(file).with_name(f".{Path(file).name}.{safe}{_SUFFIX}")
    return Path(tempfile.gettempdir()) / f".duckdb-anon-{os.getpid()}.{safe}{_SUFFIX}"


class Place:
    """An attached folder; see the module."""

    def __init__(self, con: duckdb.DuckDBPyConnection, folder: Path) -> None:
        """Make the folder, or find it, and attach its database."""
        self.con, self.folder = con, folder
        self.resumed = folder.exists()
        try:
            folder.mkdir(mode=0o700, parents=False, exist_ok=True)
            con.execute(f"attach {literal(str(folder / 'parts.duckdb'))} as {DATABASE}")
        except duckdb.Error as error:
            if self.resumed and "lock" not in str(error).lower() and "already" not in str(error).lower():
                self._emptied()
                return
            raise AnonError(
                f"release: another run is at work in {folder}; wait for it, or stop it, or write under another name"
            ) from error
        except OSError as error:
            raise AnonError(f"release: {folder} cannot be made: {error.strerror}") from error

    def _emptied(self) -> None:
        """Start afresh where what was left cannot be read."""
        shutil.rmtree(self.folder)
        self.folder.mkdir(mode=0o700)
        self.con.execute(f"attach {literal(str(self.folder / 'parts.duckdb'))} as {DATABASE}")
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


def fingerprint_of(con: duckdb.DuckDBPyConnection, sql: str, columns: Sequence[str], said: str) -> str:
    """What tells one run from another: its call, and the rows it reads in whatever order.

    Args:
        con: a connection that sees the original.
        sql: the original.
        columns: its columns that are read.
        said: the call.
    """
    row = f"hash({idents(columns)})"
    found = con.execute(f"select count(*), bit_xor({row}), sum({row}::hugeint) from {sql}").fetchall()[0]
    return f"{said} {' '.join(str(part) for part in found)}"
