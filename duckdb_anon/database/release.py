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

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import duckdb

from duckdb_anon.database.evidence import evidence_page
from duckdb_anon.database.plan import NAME, Plan
from duckdb_anon.database.registration import DatabaseRegistration
from duckdb_anon.database.released_tables import DatabaseRelease, make_release, working, write_tables
from duckdb_anon.database.risk import TARGETS, measured
from duckdb_anon.engine.records.register import released_meanwhile
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.engine.transaction import transaction
from duckdb_anon.model.errors import AnonError
from duckdb_anon.report.anon_report import require_extra
from duckdb_anon.sql_functions import load


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
    released unchanged, key columns as pseudonyms, treated columns as their treatment says, and all others are dropped.
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
    plan = Plan.of(load(con), tables, options, treatments or {})
    if not replace and con.execute("select 1 from duckdb_schemas() where schema_name = ?", [schema]).fetchone():
        raise AnonError(f"{NAME}: there is a schema {schema} already. Give another name, or pass replace=True")
    if evidence is not None:
        require_extra(NAME)
    registration = DatabaseRegistration.of(con, plan, register, independent)
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
                registration.enter(entries, schema, written)
    return made
