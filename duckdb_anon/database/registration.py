"""A release of a database in the register: one entry for each of its tables, under one number of sequence.

A table that was released before, alone or with others, is refused unless the release is declared independent: two
releases of one table add up. No release continues one of a database.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass

import duckdb

from duckdb_anon.database.plan import NAME, Plan
from duckdb_anon.engine.records.register import (
    Known,
    Register,
    Registered,
    database_of,
    release_name,
)
from duckdb_anon.engine.records.register_samples import Records
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.engine.transaction import in_next_transaction
from duckdb_anon.model.quoting import literal
from duckdb_anon.model.release_comment import Description
from duckdb_anon.sequence.registration import released_before, unregistered


@dataclass(frozen=True)
class DatabaseRegistration:
    """A planned release of a database and the register that it will be entered in."""

    con: duckdb.DuckDBPyConnection  # the caller's connection
    plan: Plan  # what is released
    database: str | None  # the database that keeps the register; None where none can be written
    records: Mapping[str, Records]  # of each table
    known: Mapping[str, Known]  # what registers say of each table
    independent: bool  # whether the release is declared independent of them

    @staticmethod
    def of(con: duckdb.DuckDBPyConnection, plan: Plan, register: str | None, independent: bool) -> DatabaseRegistration:
        """Look up the register, and refuse what it does not allow."""
        database = register or database_of(con, plan.individuals.relation)
        records, known = dict[str, Records](), dict[str, Known]()
        for table in plan.tables:
            quasi, sensitive = ([info.name for info in infos] for infos in (table.roles.qi, table.roles.sensitive))
            key = plan.key if table is plan.individuals else ""
            records[table.name] = Records(con, table.relation.sql, quasi, sensitive, key)
            known[table.name] = Known.of(con, table.relation, records[table.name], database)
        if not independent:
            if database is None:
                raise unregistered(NAME)
            for name, found in known.items():
                if found.earlier:
                    raise released_before(NAME, name, found)
        return DatabaseRegistration(con, plan, database, records, known, independent)

    @property
    def follows_others(self) -> bool:
        """Whether it is declared independent of releases that there are, or are not known."""
        return self.independent and (self.database is None or any(found.earlier for found in self.known.values()))

    @property
    def in_other_database(self) -> bool:
        """Whether the register is in another database than the released tables."""
        [(here,)] = self.con.execute("select current_database()").fetchall()
        return self.database is not None and self.database != here

    def open(self) -> Register | None:
        """Open the register; None where there is none."""
        originals = [found.name for found in self.known.values()]
        return Register.opened(self.con, self.database, originals, elsewhere=self.in_other_database)

    def enter(self, register: Register, schema: str, descriptions: Mapping[str, Description]) -> None:
        """Enter the released tables."""
        undo = f"drop schema {ident(schema)} cascade"
        with in_next_transaction(self.con, undo) if self.in_other_database else nullcontext():
            numbers = [register.next_number() for _ in self.plan.tables]
            for number, table in zip(numbers, self.plan.tables, strict=True):
                written = f"{ident(schema)}.{ident(table.name)}"
                name = release_name(self.con, written, register.database, is_file=False)
                known, made = self.known[table.name], descriptions[table.name]
                entered = Registered(
                    number, name, known.name, None, NAME, self.call_text, datetime.date.fromisoformat(made.date),
                    made.version, int(made.checksum.partition(":")[0]), made.digest, made.checksum, None, numbers[0],
                    self.follows_others,
                )  # fmt: skip
                register.enter(entered, known.numbers(register.database), self.records[table.name])

    @property
    def call_text(self) -> str:
        """The call as the register holds it."""
        plan = self.plan
        links = {f"{t.name}.{t.link.column}": f"{t.link.parent}.{t.link.to}" for t in plan.tables if t.link}
        treatments = {table.name: dict(table.treatments) for table in plan.tables if table.treatments}
        options = {
            "individuals": plan.individuals.name, "key": plan.key, "keys": links, **plan.promise, "l": plan.l,
            "l_counts": None if plan.l is None else plan.l_counts,
            "linked": plan.linked, "events": None if plan.k is None else plan.events, "treatments": treatments,
        }  # fmt: skip
        given = "".join(f", {name} := {literal(value)}" for name, value in options.items() if value is not None)
        return f"{NAME}({literal([table.name for table in plan.tables])}{given})"
