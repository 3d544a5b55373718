"""release_database: tables that still join, where what is known of an individual does not find its rows.

With delta, known columns are permuted in groups of individuals (`database.cover`); with k they are generalized until
k individuals share every known record of the joined tables (`database.record`). Keys between tables are released as
pseudonyms, equal in all tables, because the joined record keeps the promise: this is counted once more on the finished
tables. With `linked := false` each table satisfies them by itself, which loses
less, and has pseudonyms of its own, so that the tables do not join. Everything is written in one transaction.

Sensitive and insensitive columns follow the individual. What they reveal to an attacker who knows other columns than
those labelled quasi, or how many rows an individual has in a table without such columns, is not bounded.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import duckdb

from duckdb_anon.database.evidence import evidence_page
from duckdb_anon.database.plan import NAME, Plan
from duckdb_anon.database.released_tables import DatabaseRelease, make_release, working, write_tables
from duckdb_anon.database.risk import TARGETS, measured
from duckdb_anon.engine.catalog.sensitive_coarsening import DEFAULT
from duckdb_anon.engine.records.register import (
    Known,
    Register,
    Registered,
    database_of,
    release_name,
    released_meanwhile,
)
from duckdb_anon.engine.records.register_samples import Records
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.engine.transaction import in_next_transaction, transaction
from duckdb_anon.gate.release_request import ReleaseRequest
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.quoting import literal
from duckdb_anon.model.release_comment import Description
from duckdb_anon.report.anon_report import require_extra
from duckdb_anon.sequence.registration import released_before, unregistered
from duckdb_anon.sql_functions import load


@dataclass(frozen=True)
class DatabaseRegistration:
    """A planned release of a database and the register that it will be entered in, one entry for each of its tables.

    A table that was released before, alone or with others, is refused unless the release is declared independent: two
    releases of one table add up. No release continues one of a database.
    """

    request: ReleaseRequest  # the caller's connection, the schema, and what is declared
    plan: Plan  # what is released
    database: str | None  # the database that keeps the register; None where none can be written
    records: Mapping[str, Records]  # of each table
    known: Mapping[str, Known]  # what registers say of each table

    @staticmethod
    def of(request: ReleaseRequest, plan: Plan) -> DatabaseRegistration:
        """Look up the register, and refuse what it does not allow."""
        con = request.con
        database = request.register or database_of(con, plan.individuals.relation)
        records, known = dict[str, Records](), dict[str, Known]()
        for table in plan.tables:
            quasi, sensitive = ([info.name for info in infos] for infos in (table.roles.qi, table.roles.sensitive))
            key = plan.key if table is plan.individuals else ""
            records[table.name] = Records(con, table.relation.sql, quasi, sensitive, key)
            known[table.name] = Known.of(con, table.relation, records[table.name], database)
        if not request.independent:
            if database is None:
                raise unregistered(NAME)
            for name, found in known.items():
                if found.earlier:
                    raise released_before(NAME, name, found)
        return DatabaseRegistration(request, plan, database, records, known)

    @property
    def follows_others(self) -> bool:
        """Whether it is declared independent of releases that there are, or are not known."""
        return self.request.independent and (
            self.database is None or any(found.earlier for found in self.known.values())
        )

    @property
    def in_other_database(self) -> bool:
        """Whether the register is in another database than the released tables."""
        [(here,)] = self.request.con.execute("select current_database()").fetchall()
        return self.database is not None and self.database != here

    def open(self) -> Register | None:
        """Open the register; None where there is none."""
        originals = [found.name for found in self.known.values()]
        return Register.opened(self.request.con, self.database, originals, elsewhere=self.in_other_database)

    def enter(self, register: Register, descriptions: Mapping[str, Description]) -> None:
        """Enter the released tables."""
        con, schema = self.request.con, self.request.name
        undo = f"drop schema {ident(schema)} cascade"
        with in_next_transaction(con, undo) if self.in_other_database else nullcontext():
            numbers = [register.next_number() for _ in self.plan.tables]
            for number, table in zip(numbers, self.plan.tables, strict=True):
                written = f"{ident(schema)}.{ident(table.name)}"
                name = release_name(con, written, register.database, is_file=False)
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
            "sensitive_edges": None if plan.sensitive_edges == DEFAULT else plan.sensitive_edges,
            "linked": plan.linked, "events": None if plan.k is None else plan.events, "treatments": treatments,
        }  # fmt: skip
        given = "".join(f", {name} := {literal(value)}" for name, value in options.items() if value is not None)
        return f"{NAME}({literal([table.name for table in plan.tables])}{given})"


def release_database(
    con: duckdb.DuckDBPyConnection,
    tables: Sequence[str],
    *,
    schema: str = "release",
    treatments: Mapping[str, Mapping[str, str]] | None = None,
    replace: bool = False,
    independent: bool = False,
    register: str | None = None,
    evidence: str | None = None,
    **options: Any,
) -> DatabaseRelease:
    """Release several tables of the same individuals into a schema, or leave nothing behind.

    Columns are treated by their labels (COMMENT ON COLUMN ... IS 'anon: quasi'). Those labelled quasi are what an
    attacker may know, in all tables together: they are permuted or generalized. Sensitive and insensitive columns are
    released unchanged, but for rare sensitive numbers and dates: neighbours are joined and published as their mean,
    until `sensitive_edges` individuals have each. Key columns are released as pseudonyms, treated columns as their
    treatment says, and all others are dropped.
    The release is entered in the register (`anon_register`), as one entry for each table.

    Args:
        con: an open connection, without an open transaction.
        tables: names of the tables.
        schema: the schema to write; the tables keep their names.
        treatments: of each table, treatment by column: {'patients': {'birth': 'shift(days := 90)'}}.
        replace: whether a schema of that name is replaced, with everything in it.
        independent: release the tables regardless of their earlier releases; the comments of the tables show it.
        register: attached database that keeps the register; by default the one that holds the individuals.
        evidence: an HTML file to write: tables, treatments, the risk on the join, what was dropped (extra report).
        options: individuals, key, keys, delta or k, l, linked, key_file and others (`database.plan.OPTIONS`).

    Returns:
        What was released and dropped of each table.

    Raises:
        AnonError: the plan does not fit the tables, a table was released before, the promise cannot be kept, or
            something must not leave.

    Example:
        >>> import duckdb_anon
        >>> con = duckdb_anon.connect()
        >>> _ = con.execute("create table patients as select i as id, 20 + i % 50 as age from range(200) t(i)")
        >>> _ = con.execute("create table visits as select i % 200 as patient, i % 4 as ward from range(500) t(i)")
        >>> _ = con.execute("comment on column patients.age is 'anon: quasi'")
        >>> _ = con.execute("comment on column visits.ward is 'anon: quasi categorical'")
        >>> made = duckdb_anon.release_database(
        ...     con, ["patients", "visits"], individuals="patients", key="id", delta=0.1,
        ...     keys={"visits.patient": "patients.id"},
        ... )
        >>> made.linked, made.smallest >= 16
        (True, True)
    """
    request = ReleaseRequest(con, schema, NAME, replace, independent=independent, register=register, function=NAME)
    plan = Plan.of(load(con), tables, options, treatments or {})
    if not replace and con.execute("select 1 from duckdb_schemas() where schema_name = ?", [schema]).fetchone():
        raise AnonError(f"{NAME}: there is a schema {schema} already. Give another name, or pass replace=True")
    if evidence is not None:
        require_extra(NAME)
    registration = DatabaseRegistration.of(request, plan)
    with working(con, plan) as work:
        made = make_release(work)
        page: AbstractContextManager[None] = nullcontext()
        if evidence is not None:
            risks = measured(work, made, TARGETS, 1) if made.linked else []
            page = evidence_page(work, made, risks, evidence, schema)
        with page, transaction(con, NAME, conflict=released_meanwhile):
            entries = registration.open()
            con.execute(f"drop schema if exists {ident(schema)} cascade")
            con.execute(f"create schema {ident(schema)}")
            written = write_tables(work, ident(schema), independent=registration.follows_others)
            if entries is not None:
                registration.enter(entries, written)
    return made
