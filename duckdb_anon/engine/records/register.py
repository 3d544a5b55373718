"""The register of a data holder's releases: schema `anon` of the database that holds the original.

`anon.releases` has one row a release; `anon.originals` one row an original, which every release of it changes, so
that of two transactions that release it DuckDB refuses the second; `anon.records` one row a released record, at most
40 bytes: the keyed hash of its key, its group, and keyed hashes of what it was and of its published row. `anon.secret`
holds the key of these hashes, from which the draws of releases come too. `anon.samples` has keyed hashes of a sample of
the records of each release, by which an original is recognized under another name. None of them may be published. A
database that is read-only, a file or a SELECT has no register; the current database keeps it then.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import duckdb

from duckdb_anon.engine.catalog.catalog import Relation, located, table_sql
from duckdb_anon.engine.catalog.identifier_lineage import tables_read
from duckdb_anon.engine.records.private_files import left_behind, place, remove
from duckdb_anon.engine.records.register_samples import Records, Sample
from duckdb_anon.engine.records.release_digest import column_types, holds_rows_of, row_text
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.engine.transaction import next_transaction
from duckdb_anon.model.errors import AnonError

SCHEMA = "anon"
DATABASE = "release_database"
"""Method of releases of several tables together, whose entries have one sequence."""
_TABLES = """
create schema if not exists {schema};
create sequence if not exists {schema}.numbers;
create table if not exists {schema}.secret (secret varchar not null);
create table if not exists {schema}.originals (name varchar primary key, releases bigint not null);
create table if not exists {schema}.releases (
  number integer not null, name varchar not null, original varchar not null, key varchar, method varchar not null,
  call varchar not null, day date not null, version varchar not null, rows bigint not null, digest varchar not null,
  checksum varchar not null, previous integer, sequence integer not null, independent boolean not null, epsilon double,
  added bigint not null, waiting bigint not null, deleted bigint not null, changed bigint not null);
create table if not exists {schema}.records (
  release integer not null, key uuid not null, content ubigint not null, "group" integer, row ubigint not null,
  deleted integer, withdrawn integer);
create table if not exists {schema}.samples (
  release integer not null, kind varchar not null, columns varchar[] not null, common double not null,
  "limit" ubigint not null, hashes ubigint[] not null)"""


@dataclass(frozen=True)
class Registered:
    """One release of the register."""

    number: int  # of the release in its register, from 1
    name: str  # the table or file it was written to
    # what it was made from: a table (without its database where that keeps the register), file or SELECT
    original: str
    # the column that identifies a record (with persons, an individual); None where the call named none
    key: str | None
    method: str  # SQL name of the method
    call: str  # the whole call with its roles
    day: date  # the day it was made
    version: str  # of the package that made it
    rows: int  # number of released rows
    digest: str  # SHA-256 of the released rows, as the description has it
    checksum: str  # number of rows and the sum of DuckDB's hashes of them, as the description has it
    previous: int | None  # number of the release before it in its sequence; None for the first one
    sequence: int  # number of the first release of its sequence
    independent: bool  # whether it was made independently of earlier releases of the original
    epsilon: float | None = None  # of a differentially private method; None for the others
    added: int = 0  # records published for the first time
    waiting: int = 0  # new records that could not be published yet
    deleted: int = 0  # published records that the original holds no more
    changed: int = 0  # published records whose values differ from the original's


_FIELDS = tuple(Registered.__dataclass_fields__)


def registered(con: duckdb.DuckDBPyConnection, database: str, original: str | None = None) -> list[Registered]:
    """Releases in the register of a database, in the order they were made; none where it keeps no register."""
    if database not in registers(con):
        return []
    columns = ", ".join(map(ident, _FIELDS))
    rows = con.execute(f"select {columns} from {_schema(database)}.releases order by number").fetchall()
    return [release for release in (Registered(*row) for row in rows) if original in (None, release.original)]


def registers(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Attached databases that keep a register."""
    found = con.execute(
        "select database_name from duckdb_tables() where schema_name = ? and table_name = 'releases' "
        "and column_count >= ? order by all",
        [SCHEMA, len(_FIELDS)],
    ).fetchall()
    return [name for (name,) in found]


def settle(con: duckdb.DuckDBPyConnection) -> None:
    """Let files that were entered by a process which died before it moved them take their places; remove its others."""
    for keeper in registers(con):
        last = {release.name: release for release in registered(con, keeper) if os.path.isabs(release.name)}
        for name, release in last.items():
            for draft in left_behind(Path(name)):
                rows = f"read_parquet({literal(f'{draft}/*' if draft.is_dir() else str(draft))})"
                # it may be cut, or a log, or moved by another thread
                with suppress(duckdb.IOException, duckdb.InvalidInputException, FileNotFoundError):
                    if holds_rows_of(con, rows, release.digest, release.checksum):
                        place(draft, Path(name))
                remove(draft)


def original_of(con: duckdb.DuckDBPyConnection, relation: Relation, database: str) -> str:
    """Name of an original in the register of `database`; a view or SELECT of one table stands for that table."""
    text, seen = relation.sql, set[str]()
    while text not in seen:
        seen.add(text)
        found = None if text.startswith(("(", "'")) else located(con, text)
        if found is not None and found[3] == "table":
            return _name(found, database)
        select = _select_of(con, found) if found is not None else text if text.startswith("(") else None
        tables = tables_read(con, select) if select else []
        if len(tables) != 1:
            break
        text = tables[0]
    if text.startswith("("):
        return text
    return os.path.realpath(relation.given) if os.path.exists(relation.given) else text


def registered_releases(con: duckdb.DuckDBPyConnection, relation: Relation) -> list[tuple[str, Registered]]:
    """Releases of an original in all attached registers, each with the database that keeps its register."""
    return [
        (keeper, release)
        for keeper in registers(con)
        for release in registered(con, keeper, original_of(con, relation, keeper))
    ]


@dataclass(frozen=True)
class Known:
    """What registers say of an original: its name in the one that will list its next release, and earlier releases."""

    name: str
    earlier: Sequence[tuple[str, Registered]]  # each with the database that keeps its register
    # name of another original with the same records, and the share of them that are the same; '' and 0 for none
    alike: str = ""
    share: float = 0.0

    @staticmethod
    def of(con: duckdb.DuckDBPyConnection, relation: Relation, records: Records, database: str | None) -> Known:
        """Look an original up by its name and by its records; one without releases has the name of one alike."""
        name, own = original_of(con, relation, database or ""), False
        earlier, shares = list[tuple[str, Registered]](), dict[str, float]()
        for keeper in registers(con):
            register, releases = Register.read(con, keeper), registered(con, keeper)
            samples, names = register.samples(), {original_of(con, relation, keeper)}
            own = own or (keeper == database and any(release.original in names for release in releases))
            for release in releases:
                if release.original not in names:
                    share = records.share(register.secret, samples.get(release.number, ()))
                    if share is not None:
                        names.add(release.original)
                        shares[release.original] = share
            earlier += [(keeper, release) for release in releases if release.original in names]
        here = [release.original for keeper, release in earlier if keeper == database]
        alike = max(shares, key=lambda original: shares[original], default="")
        return Known(name if own or not here else here[-1], earlier, alike, shares.get(alike, 0.0))

    def numbers(self, database: str) -> set[int]:
        """Numbers of the releases of its name in the register of a database."""
        return {r.number for keeper, r in self.earlier if keeper == database and r.original == self.name}


def released_rows(database: str, release: Registered) -> str:
    """What follows FROM for the rows of a registered release."""
    if release.name.lower().endswith(".parquet"):
        return literal(release.name)
    return release.name if "." in release.name else f"{ident(database)}.main.{release.name}"


def numbered_rows(con: duckdb.DuckDBPyConnection, database: str, release: Registered, original: str) -> str:
    """SELECT, in parentheses, of a release's rows with the number of the record of each, as `row_id`."""
    register, rows = Register.read(con, database), released_rows(database, release)
    sequence = [r.number for r in registered(con, database) if r.sequence == release.sequence]
    made = ", ".join(str(number) for number in sequence if number <= release.number)
    key = register.key_sql(ident(str(release.key)))
    row = register.hash_sql(row_text(column_types(con, rows)))
    return (
        f"(with _anon_o as (select key, min(n) as n from (select {key} as key, row_number() over () - 1 as n "
        f"from {original}) group by key), "
        "_anon_m as (select key, row, row_number() over (partition by row) as k "
        f"from {register.latest_records(f'({made})')} "
        f"where not coalesce(withdrawn in ({made}), false)), "
        f"_anon_n as (select row, k, coalesce(n, (select count(*) from {original}) + dense_rank() over (order by "
        "_anon_m.key)) as row_id from _anon_m left join _anon_o using (key)), "
        f"_anon_r as (select *, {row} as _anon_h, row_number() over (partition by {row}) as _anon_k from {rows}) "
        "select _anon_r.* exclude (_anon_h, _anon_k), _anon_n.row_id from _anon_r "
        "left join _anon_n on _anon_n.row = _anon_h and _anon_n.k = _anon_k)"
    )


def leaving(database: str, release: Registered) -> str:
    """The statement that takes a release from the register."""
    together = f"sequence = {release.sequence}" if release.method == DATABASE else f"number = {release.number}"
    return f"DELETE FROM {_plain(database)}.{SCHEMA}.releases WHERE {together}"


def release_name(con: duckdb.DuckDBPyConnection, target: str, database: str, *, is_file: bool) -> str:
    """Name of a release in the register of `database`; a table's may be given with or without quotes."""
    target = target if is_file else table_sql(target)
    found = None if is_file else located(con, target)
    return _name(found, database) if found is not None else os.path.abspath(target) if is_file else target


def named_release(con: duckdb.DuckDBPyConnection, release: str, database: str) -> str:
    """`release_name` of a release as a call names it: files end with .parquet, folders with /."""
    return release_name(con, release, database, is_file=release.lower().endswith((".parquet", "/")))


def database_of(con: duckdb.DuckDBPyConnection, relation: Relation, target: str | None = None) -> str | None:
    """The database that keeps the register of an original's releases; None where none of them can be written."""
    found = con.execute("select database_name, readonly, current_database() from duckdb_databases() where not internal")
    states = found.fetchall()
    writable = {name for name, readonly, _ in states if not readonly}
    home = None if relation.sql.startswith(("(", "'")) else located(con, relation.sql)
    for name in (home[0] if home else None, states[0][2] if states else None, target):
        if name in writable:
            return str(name)
    return None


@dataclass(frozen=True)
class Register:
    """The register of one database."""

    con: duckdb.DuckDBPyConnection  # a connection to which the database is attached
    database: str  # its name there
    secret: str  # key of the hashes, and what draws come from

    @staticmethod
    def made(con: duckdb.DuckDBPyConnection, database: str) -> Register:
        """The register of a database, made where there is none, in the transaction of the caller."""
        schema = _schema(database)
        for statement in _TABLES.format(schema=schema).split(";"):
            con.execute(statement)
        if not con.execute(f"select count(*) from {schema}.secret").fetchall()[0][0]:
            con.execute(f"insert into {schema}.secret values (?)", [secrets.token_hex(16)])
        return Register.read(con, database)

    @staticmethod
    def opened(
        con: duckdb.DuckDBPyConnection, database: str | None, originals: Iterable[str], *, elsewhere: bool
    ) -> Register | None:
        """The register, ready to enter releases of some originals, which are written next; None without a database.

        `elsewhere`: whether they are written to another database: DuckDB writes to one in a transaction.
        """
        if database is None:
            return None
        try:
            register = Register.made(con, database)
            for original in originals:
                con.execute(f"insert into {register.schema}.originals values (?, 0) on conflict do nothing", [original])
        except duckdb.TransactionException as error:
            raise released_meanwhile("is writing to the register") from error
        if elsewhere:
            next_transaction(con)
        return register

    @staticmethod
    def read(con: duckdb.DuckDBPyConnection, database: str) -> Register:
        """The register that a database has."""
        return Register(con, database, con.execute(f"select secret from {_schema(database)}.secret").fetchall()[0][0])

    @property
    def schema(self) -> str:
        """The schema of its tables, as SQL writes it."""
        return _schema(self.database)

    def latest_records(self, releases: str) -> str:
        """SELECT, in parentheses, of the records of some releases, each as it was published last."""
        latest = "qualify release = max(release) over (partition by key)"
        return f"(from {self.schema}.records where release in {releases} {latest})"

    def draw_seed(self, *facts: str) -> int:
        """A seed that nobody can guess, the same for the same facts."""
        text = "\x1f".join(facts).encode()
        return int.from_bytes(hmac.digest(self.secret.encode(), text, hashlib.sha256)[:15]) | 1 << 64

    def key_sql(self, value: str) -> str:
        """SQL of the keyed hash of a key."""
        return f"sha256({literal(self.secret)} || 'key' || {value}::varchar)[:32]::uuid"

    def hash_sql(self, text: str) -> str:
        """SQL of a keyed hash of 64 bits of a text."""
        return f"('0x' || sha256({literal(self.secret)} || {text})[:16])::ubigint"

    def order_sql(self, text: str) -> str:
        """SQL of a number to sort by, which nobody can compute without the secret."""
        return f"md5_number({literal(self.secret)} || {text})"

    def samples(self) -> dict[int, list[Sample]]:
        """Samples of the records of each release; none in a register of an older version."""
        found: dict[int, list[Sample]] = {}
        if (self.database, SCHEMA, "samples", "table") == located(self.con, f"{self.schema}.samples"):
            for number, *facts in self.con.execute(f"from {self.schema}.samples").fetchall():
                found.setdefault(number, []).append(Sample(*facts))
        return found

    def recognized(self) -> list[int]:
        """Numbers of the releases whose originals are recognized by their records."""
        return [number for number, samples in self.samples().items() if any(sample.tells for sample in samples)]

    def enter(self, release: Registered, earlier: Collection[int], records: Records) -> None:
        """Enter a release and samples of the records that it shows first."""
        entered = {earlier_release.number for earlier_release in registered(self.con, self.database, release.original)}
        try:
            self.con.execute(
                f"update {self.schema}.originals set releases = releases + 1 where name = ?", [release.original]
            )
        except duckdb.TransactionException as error:
            raise released_meanwhile() from error
        if entered != set(earlier):
            raise released_meanwhile()
        values: Sequence[Any] = [getattr(release, name) for name in _FIELDS]
        marks = ", ".join("?" for _ in values)
        self.con.execute(
            f"insert into {self.schema}.releases ({', '.join(map(ident, _FIELDS))}) values ({marks})", values
        )
        for sample in records.samples(self.secret):
            self.con.execute(
                f"insert into {self.schema}.samples values (?, ?, ?, ?, ?, ?)", [release.number, *astuple(sample)]
            )

    def next_number(self) -> int:
        """Number of the next release; that of a release which was taken from the register is not given again."""
        return int(self.con.execute("select nextval(?)", [f"{self.schema}.numbers"]).fetchall()[0][0])


def released_meanwhile(what: str = "has released this table meanwhile") -> AnonError:
    """Why the second of two releases that are made at once is refused."""
    return AnonError(
        f"release: another connection {what}; nothing was written. Run it again",
        code="released-meanwhile",
    )


def _schema(database: str) -> str:
    return f"{ident(database)}.{SCHEMA}"


def _name(located_at: tuple[str, str, str, str], database: str) -> str:
    owner, schema, table, _ = located_at
    parts = [owner] * (owner != database) + [schema] * (schema != "main") + [table]
    return ".".join(map(_plain, parts))


def _plain(name: str) -> str:
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else ident(name)


def _select_of(con: duckdb.DuckDBPyConnection, view: tuple[str, str, str, str]) -> str | None:
    """The statement of a view."""
    found = con.execute(
        "select sql from duckdb_views() where (database_name, schema_name, view_name) = (?, ?, ?)", list(view[:3])
    ).fetchall()
    return str(found[0][0]) if found and found[0][0] else None
