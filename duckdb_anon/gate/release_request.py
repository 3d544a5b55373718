"""What a caller wants to be released: the call, where it is written, in which parts, and what it continues."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import duckdb

from duckdb_anon.engine.catalog.catalog import located, names_of, table_sql
from duckdb_anon.model.errors import AnonError, ParameterError
from duckdb_anon.model.identifier_case import fold

_OTHER_FILE = re.compile(
    r"[/\\]|\.(csv|tsv|txt|json|jsonl|ndjson|xlsx|arrow|feather|avro|duckdb|db)(\.\w+)?$", re.IGNORECASE
)


@dataclass(frozen=True)
class ReleaseRequest:
    """The arguments of `duckdb_anon.release`, which explains them; all rooms that a release passes read them here.

    Of a release of a database, `name` is the schema; of `write_parquet`, the file.
    """

    con: duckdb.DuckDBPyConnection
    name: str
    call: str
    replace: bool = False
    part_rows: int | None = None
    memory: str | int | None = None
    key: str | None = None
    previous: str | None = None
    deleted: str = "keep"
    changed: str = "keep"
    independent: bool = False
    register: str | None = None
    function: str = "release"  # the function that is called, for messages

    @property
    def is_folder(self) -> bool:
        """Whether a folder of Parquet files is written."""
        return self.name.endswith(("/", "\\"))

    @property
    def is_file(self) -> bool:
        """Whether Parquet is written, not a table."""
        return self.is_folder or self.name.lower().endswith(".parquet")

    @property
    def in_parts(self) -> bool:
        """Whether the table is worked in parts."""
        return self.part_rows is not None or self.memory is not None or self.is_folder

    def target(self) -> str | None:
        """The database a table is written to; None for a file."""
        if self.is_file:
            return None
        *places, _ = names_of(table_sql(self.name))
        here, attached = self.con.execute(
            "select current_database(), list(database_name) from duckdb_databases() where database_name <> 'system'"
        ).fetchall()[0]
        named = {fold(database): str(database) for database in attached}
        return named.get(places[0], str(here)) if places else str(here)

    def require_free_name(self) -> None:
        """Refuse a name that cannot be written, or is taken.

        Raises:
            ParameterError: the name is no table, Parquet file or folder.
            AnonError: it exists, and is not to be replaced.
        """
        name = self.name
        if not name.strip():
            raise ParameterError("release: the name is empty. Give a table, such as r1, or a file, such as r1.parquet")
        if not self.is_file and _OTHER_FILE.search(name) and not name.startswith('"'):
            raise ParameterError(
                f"release: {name} is the name of a file that is not Parquet. Give a table, such as r1, a file, such as "
                "r1.parquet, or a folder of such files, such as r1/. Write a table's name that looks so in double "
                "quotes"
            )
        if self.is_file:
            taken = Path(name).exists()
        else:
            taken = located(self.con, table_sql(name)) is not None
        if taken and not self.replace:
            there = f"{name} exists; give another file" if self.is_file else (
                f"there is a table {name} already; give another name"
            )  # fmt: skip
            raise AnonError(f"release: {there}, or pass --replace (in Python replace=True)")
        if self.is_file and not Path(name).absolute().parent.is_dir():
            raise AnonError(f"release: there is no folder {Path(name).absolute().parent} to write to")
