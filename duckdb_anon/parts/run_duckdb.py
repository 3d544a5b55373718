"""A release in parts on DuckDB, within a bound on memory.

The columns a call needs are copied as codes into a database next to what is written; parts are planned by counting
there, worked one after the other by the method itself, and gathered with a random key for each row. Sorted by that key,
out of core, they are one shuffled table, which is checked and then written in one transaction (a file: under another
name, renamed at the end). Keys have 63 random bits, drawn by the run's own generator: all orders are equally likely
(two keys that are equal aside, one chance in 10^5 with ten million rows, and then two neighbours stand as they came).
Numbers of buckets and persons are dealt anew, so neither they, nor a row's place, nor its neighbours reveal the part.

`memory` bounds the process: half of it is DuckDB's, the other half is for a part and its kernels.
Cost: some passes over the codes, a call a part, two external sorts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from duckdb_anon.engine.memory_estimate import needed, rows_within, size_of, written
from duckdb_anon.engine.records.call_text import Recorded, call_on, seed_of_part
from duckdb_anon.engine.records.private_files import folder_for
from duckdb_anon.engine.sql_quoting import ident, idents, literal
from duckdb_anon.engine.transaction import transaction
from duckdb_anon.gate.release_request import ReleaseRequest
from duckdb_anon.kernels.rng_streams import generator
from duckdb_anon.model import progress
from duckdb_anon.model.errors import AnonError, ParameterError, RequirementError
from duckdb_anon.model.function_specs import Params
from duckdb_anon.model.version import __version__
from duckdb_anon.parts.release_checks import check, hashed
from duckdb_anon.parts.run_part import numbered_columns, work_part
from duckdb_anon.parts.source_encoding import DATABASE, Original


def _directory_of(request: ReleaseRequest) -> Path:
    """Return the folder a run uses, below the user's private folder."""
    name = request.name
    if request.is_file:
        return folder_for("parts", str(Path(name.rstrip("/\\")).absolute()))
    file = request.con.execute(
        "select path from duckdb_databases() where database_name = current_database()"
    ).fetchall()[0][0]
    return folder_for("parts", f"{Path(file).absolute() if file else f'memory of {os.getpid()}'} {name}")


class RunDirectory:
    """The attached folder of a run: a database of its own, and how far the run has come.

    It lies below the user's private folder, with a note of what is written, so that a run that was stopped finds it
    again. It holds the original's rows, so nobody but its owner may look into it, and it goes when the run ends, well
    or not; only a run that is stopped (interrupted, killed, power lost) leaves it, and the same call takes it up.
    """

    def __init__(self, request: ReleaseRequest) -> None:
        """Attach the database of a run's folder, or make it there."""
        con, folder = request.con, _directory_of(request)
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


KEY = "_anon_key"
RELEASED = f"{DATABASE}.main.released"
"""The rows released so far, each with its key."""
PART_ROWS = 1_000_000
_FEWEST = 1000


@dataclass(frozen=True)
class Bounds:
    """Most rows of a part, and the memory of the process in bytes (None: DuckDB's own limit)."""

    part_rows: int
    memory: int | None

    @staticmethod
    def of(request: ReleaseRequest, columns: int) -> Bounds:
        """Check the arguments of a call, and fill in those that are missing; `columns`: those that are coded.

        Raises:
            ParameterError: no number of rows, no amount of memory, or too little of it.
        """
        part_rows, memory = request.part_rows, request.memory
        size = None if memory is None else size_of(memory)
        if part_rows is not None and part_rows < _FEWEST:
            raise ParameterError(f"release: part_rows := {part_rows} is too few. Give {_FEWEST} or more")
        if size is not None and size < 400_000_000:
            raise ParameterError(f"release: memory := {memory!r} is too little. Give '400MB' or more")
        within = PART_ROWS if size is None else rows_within(max(size - 250_000_000, 0) // 2, columns)
        rows = part_rows or min(PART_ROWS, max(_FEWEST, within))
        if part_rows is not None and part_rows > within and size is not None:
            raise ParameterError(
                f"release: parts of {part_rows:,} rows take about "
                f"{written(needed(part_rows, columns))}, and memory := "
                f"{memory!r} leaves room for {within:,}. Leave part_rows out, or give more memory"
            )
        return Bounds(rows, size)


class Run:
    """One release in parts, from the original to shuffled rows."""

    def __init__(
        self, con: duckdb.DuckDBPyConnection, recorded: Recorded, directory: RunDirectory, bounds: Bounds
    ) -> None:
        """Prepare a run; see `run`."""
        self.con, self.recorded, self.directory, self.bounds = con, recorded, directory, bounds
        self.original = Original(con, recorded, directory.folder)

    def run(self, signature: str) -> str:
        """Do what is left to do; return SELECT of the shuffled rows."""
        fingerprint = fingerprint_of(self.con, self.recorded.relation.sql, self.original.columns, signature)
        if not self.directory.take_up(fingerprint):
            self._start(fingerprint)
        parts = self.original.ask(f"select part, rows from {DATABASE}.parts order by rows desc, part").to_pylist()
        done = {row["part"] for row in self.original.ask(f"select part from {DATABASE}.done").to_pylist()}
        params = {**self.recorded.params, **(self.original.cutting.settled or {})}
        for k, part in enumerate(parts):
            progress.say(f"part {k + 1} of {len(parts)}", k / len(parts))
            if part["part"] not in done:
                self._work(part["part"], params)
        return self._finish()

    def _start(self, fingerprint: str) -> None:
        """Copy the original, plan the parts, and lay the rows out part by part."""
        rows = self.original.copy()
        progress.say("planning parts")
        part, relation = self.original.placed(self.original.cutting, rows, self.bounds.part_rows)
        self.original.lay_out(part, relation)
        self._check_parts()
        self.con.execute(f"drop table {DATABASE}.source; drop table if exists {DATABASE}.counted")
        self.con.execute(f"create or replace table {DATABASE}.done (part bigint, numbers bigint)")
        self.con.execute(f"create or replace table {DATABASE}.run as select {literal(fingerprint)} as fingerprint")

    def _check_parts(self) -> None:
        """Refuse a part that cannot be cut and would not fit."""
        if self.bounds.memory is None:
            return
        most = self.original.ask(f"select max(rows) as n from {DATABASE}.parts").to_pylist()[0]["n"]
        size = needed(most, len(self.original.coded))
        if most > self.bounds.part_rows and size > self.bounds.memory:
            raise RequirementError(
                f"{self.original.name}: {most:,} rows cannot be split by any cut that meets the requirement, and take "
                f"about {written(size)}. Give memory := {written(2 * size)!r}, or more quasi-identifiers"
            )

    def _work(self, part: int, params: Params) -> None:
        """Work one part, and gather what comes of it, with a random key for each row."""
        out, given = "_anon_part_out", params["seed"]
        rows, source = self.original.part(part)
        fixed = {**params, "seed": seed_of_part(given, part)}
        try:
            work_part(self.con, self.original.full_table, fixed, rows, source, out)
            self._gather(out, part, generator(seed_of_part(given, -2 - part)))
        finally:
            with suppress(duckdb.Error):
                self.con.execute(f"drop table if exists temp.main.{out}")

    def _gather(self, out: str, part: int, rng: np.random.Generator) -> None:
        """Gather what came of a part, and note that it is done."""
        released = self.original.ask(f"select count(*) as n from {out}").to_pylist()[0]["n"]
        keys = pa.table({KEY: rng.integers(0, 2**63, released, dtype=np.int64)})
        names = [row[0] for row in self.con.execute(f"describe {out}").fetchall()]
        numbered = [names[k] for k in numbered_columns(self.recorded)]
        before = self.original.ask(f"select coalesce(max(numbers), 0) as n from {DATABASE}.done").to_pylist()[0]["n"]
        greatest = f"max({ident(numbered[0])}) + {before}" if numbered else "0"
        dealt = "".join(f" replace ({ident(name)} + {before} as {ident(name)})" for name in numbered)
        with self.original.registered("_anon_keys", keys) as view, transaction(self.con, "release"):
            self.con.execute(f"create table if not exists {RELEASED} as from {out} positional join {view} limit 0")
            self.con.execute(f"insert into {RELEASED} from (select *{dealt} from {out}) positional join {view}")
            self.con.execute(f"insert into {DATABASE}.done select {part}, coalesce({greatest}, {before}) from {out}")

    def _finish(self) -> str:
        """Check the whole, deal numbers anew, and say how its rows are read in random order."""
        progress.say("checking")
        *names, _ = (row[0] for row in self.con.execute(f"describe {RELEASED}").fetchall())
        total = self.original.ask(f"select sum(rows) as n from {DATABASE}.parts").to_pylist()[0]["n"]
        check(self.original, f"{RELEASED} as released", names, int(total), hashed)
        rows, order = RELEASED, KEY
        for column in (ident(names[k]) for k in numbered_columns(self.recorded)):
            self.con.execute(
                f"create or replace table {DATABASE}.renumbered as select old, row_number() over (order by "
                f"sha256('{self.original.salt} numbers ' || old::varchar)) as new "
                f"from (select distinct {column} as old from {RELEASED})"
            )
            rows = (
                f"(select _anon_r.* replace (_anon_n.new as {column}) from {RELEASED} as _anon_r "
                f"join {DATABASE}.renumbered as _anon_n on _anon_n.old = _anon_r.{column})"
            )
            order = f"{column}, {KEY}"
        self.con.execute(
            f"create or replace table {DATABASE}.shuffled as select {idents(names)} from {rows} order by {order}"
        )
        return f"from {DATABASE}.shuffled"


@contextmanager
def within(con: duckdb.DuckDBPyConnection, bounds: Bounds) -> Iterator[None]:
    """Hold DuckDB to its share of the memory until the block ends."""
    if bounds.memory is None:
        yield
        return
    before = con.execute("select current_setting('memory_limit')").fetchall()[0][0]
    con.execute(f"set memory_limit = '{bounds.memory // 2 // 1_000_000}MB'")
    try:
        yield
    finally:
        with suppress(duckdb.Error):
            con.execute(f"set memory_limit = {literal(before)}")


def signature_of(recorded: Recorded, request: ReleaseRequest, bounds: Bounds) -> str:
    """What distinguishes a run from others, apart from the rows it reads."""
    return f"{__version__} {request.name} {bounds.part_rows} {call_on(recorded, recorded.relation.given)}"
