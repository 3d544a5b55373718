"""One release and the register: what is refused before it, which draws it makes, and what is entered after it.

A second release of an original tells more than the first: who intersects the two learns what neither shows. So it is
refused unless it continues the first one or is declared independent. Draws come from the register's secret, the call
and the rows of the original in their order: releasing an unchanged table again gives the same release. Differentially
private methods draw from the system.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from dataclasses import replace as with_fields
from typing import Any

import duckdb

from duckdb_anon.engine.catalog.catalog import Catalog
from duckdb_anon.engine.catalog.column_roles import column_of
from duckdb_anon.engine.records.call_text import Recorded, call_on, roles_as_arguments
from duckdb_anon.engine.records.register import (
    Known,
    Register,
    Registered,
    database_of,
    leaving,
    named_release,
    release_name,
)
from duckdb_anon.engine.records.register_samples import Records
from duckdb_anon.engine.records.release_digest import column_types, row_checksum, row_text
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.engine.transaction import in_next_transaction
from duckdb_anon.gate.release_request import ReleaseRequest
from duckdb_anon.model.errors import AnonError, ColumnError, ParameterError, listed
from duckdb_anon.model.function_specs import ColumnInfo, ColumnPlan
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import HIDDEN, Description
from duckdb_anon.model.release_formats import BUCKET
from duckdb_anon.model.released_columns import Source
from duckdb_anon.model.version import __version__

_MOST_ROWS = 200_000
_TARGETS = 200


def joint_risk(
    con: duckdb.DuckDBPyConnection, original: str, releases: Sequence[Registered], roles: Mapping[str, Any]
) -> str:
    """The joint risk in words; '' where fewer than two releases have a key, or it cannot be measured at once."""
    followed = [release for release in releases if release.key]
    if len(followed) < 2 or sum(release.rows for release in followed) > _MOST_ROWS:
        return ""
    names = list(dict.fromkeys(release.name for release in followed))
    given = "".join(f", {name} := {literal(value)}" for name, value in roles.items())
    try:
        identity, attribute = con.execute(
            f"select identity, attribute from sequence_risk({literal(original)}, {literal(names)}{given}, "
            f"targets := {_TARGETS}, seed := 1) where release = 'together'"
        ).fetchall()[0]
    except duckdb.Error:
        return ""
    return f"re-identify {identity:.0%} of the records, and name {attribute:.0%} of sensitive values"


_SHOWN = 5
HIDDEN_GROUPS = ("muco",)
"""Methods whose groups are not published."""


@dataclass(frozen=True)
class Registration:
    """A planned release and the register that it will be entered in."""

    request: ReleaseRequest  # what the caller wants
    planned: Recorded  # the planned call
    database: str | None  # the database that keeps the register; None where none can be written
    target: str | None  # database of the table that is written; None for a file
    known: Known  # what registers say of the original
    records: Records  # its records
    key: str  # the column that identifies a record, '' where the call names none

    @staticmethod
    def of(request: ReleaseRequest, planned: Recorded) -> Registration:
        """Look up the register: that of the database it names, by default of the original's."""
        con, key, target = request.con, request.key, request.target()
        database = request.register or database_of(con, planned.relation, target)
        if isinstance(key, str) and "," in key and fold(key) not in map(fold, planned.relation.columns):
            raise ParameterError(
                f"release: key := '{key}' names several columns, and a key is one. Add a column that has the values of "
                "all of them, such as concat_ws('-', a, b), and name it"
            )
        column = "" if key is None else column_of("release", planned.relation, key)
        quasi, sensitive = ([info.name for info in infos] for infos in (planned.roles.qi, planned.roles.sensitive))
        records = Records(con, planned.relation.sql, quasi, sensitive, column)
        known = Known.of(con, planned.relation, records, database)
        return Registration(request, planned, database, target, known, records, column)

    @property
    def con(self) -> duckdb.DuckDBPyConnection:
        """The caller's connection."""
        return self.request.con

    @property
    def original(self) -> str:
        """Name of the original in the register."""
        return self.known.name

    def guard(self) -> None:
        """Refuse a release that no register would list, or one beside others of its original.

        Raises:
            AnonError: saying how to go on.
        """
        if self.request.independent:
            return
        if self.database is None:
            raise unregistered("release")
        earlier = self.known.earlier
        if earlier:
            last = earlier[-1][1]
            following = f"previous := '{last.name}', key := '{last.key}' continues it" if last.key else (
                "it was made without key := '...', so no release can continue it"
            )  # fmt: skip
            more = f"Of the last one, {following}. "
            releases, roles = [release for _, release in earlier], roles_as_arguments(self.planned.roles)
            found = joint_risk(self.con, self.planned.relation.given, releases, roles)
            risk = f" (those there are {found})" if found else ""
            raise released_before("release", self.planned.relation.given, self.known, risk, more)

    def with_key_column(self) -> Recorded:
        """The planned call with the key as its last released column, for runs in parts, whose rows have no numbers.

        Raises:
            ParameterError: the key is released anyway, or identifies individuals with several records.
        """
        if self.by_person or self.key in {plan.column or plan.name for plan in self.planned.layout}:
            raise ParameterError(
                f"release: in parts, key := '{self.key}' must be a column that is not released and identifies single "
                "records. Name another key, or leave part_rows and memory out"
            )
        info = ColumnInfo(self.key, column_types(self.con, self.planned.relation.sql)[self.key])
        roles = with_fields(self.planned.roles, keep=(*self.planned.roles.keep, info))
        return with_fields(self.planned, roles=roles, layout=(*self.planned.layout, ColumnPlan(self.key, Source)))

    def with_key(self, key: str) -> Registration:
        """The same with a key column."""
        column = column_of("release", self.planned.relation, key)
        return with_fields(self, key=column, records=with_fields(self.records, key=column))

    @property
    def in_other_database(self) -> bool:
        """Whether the table is written to another database than the register's."""
        return self.database is not None and self.target not in (None, "temp", self.database)

    def open(self) -> Register | None:
        """Open the register; None where there is none."""
        return Register.opened(self.con, self.database, [self.original], elsewhere=self.in_other_database)

    def call(self, register: Register | None, *, row_id: bool, table: str | None = None) -> str:
        """Text of the call with the register's draws.

        `row_id`: whether rows are numbered by those of the original; `table`: what takes the place of the original.
        """
        arguments = dict(self.planned.arguments)
        if "seed" in arguments:
            arguments["seed"] = int(arguments["seed"])
        given = table or self.planned.relation.given
        if register is not None and "seed" not in arguments and not self.planned.entry.differentially_private:
            arguments["seed"] = register.draw_seed(call_on(self.planned, given), __version__, *self._checksums(table))
        if row_id:
            arguments["row_id"] = True
        return call_on(with_fields(self.planned, arguments=arguments), given)

    def described(self) -> Description:
        """The description of the release."""
        description = self.planned.description(datetime.date.today().isoformat(), __version__)
        found = self.planned.entry.described_by and self.planned.entry.described_by(self.planned.params)
        if found and self.planned.roles.sensitive:
            parameter, report, arguments, listing = found
            asked = with_fields(self.planned, entry=with_fields(self.planned.entry, name=report), arguments=arguments)
            call = call_on(asked, self.planned.relation.given)
            if values := self.con.execute(f"select {listing} from {call}").fetchall()[0][0]:
                description = with_fields(description, parameters={**description.parameters, parameter: values})
        return with_fields(
            description, independent=self.request.independent and (bool(self.known.earlier) or self.database is None)
        )

    def entering(self, table: str, *, is_file: bool, write: Callable[[str], None]) -> None:
        """Write to the register, in a transaction of its own where the table is in another database."""
        undo = "" if is_file else f"drop table {table}"
        with in_next_transaction(self.con, undo) if self.in_other_database else nullcontext():
            write(release_name(self.con, table, self.database or "", is_file=is_file))

    def enter_first(self, register: Register, name: str, description: Description, draft: str = "") -> None:
        """Enter a release that continues no other, with its records where it has a key.

        `draft`: the released rows with the numbers of the original's, or with their keys.
        """
        entered = self.described_in_register(register, name, description)
        register.enter(entered, self.known.numbers(register.database), self.records)
        if self.key:
            self.enter_records(register, entered.number, draft, self.planned.relation.sql)

    def described_in_register(self, register: Register, name: str, description: Description) -> Registered:
        """What the register says of a release that continues no other."""
        number, entry, epsilon = register.next_number(), self.planned.entry, self.planned.params.get("epsilon")
        rows = int(description.checksum.partition(":")[0])
        return Registered(
            number, name, self.original, self.key or None, entry.name, self.call_text,
            datetime.date.fromisoformat(description.date), description.version, rows, description.digest,
            description.checksum, None, number, description.independent,
            float(epsilon) if entry.differentially_private and epsilon is not None else None, rows,
        )  # fmt: skip

    @property
    def call_text(self) -> str:
        """The call as the register holds it: on the original, with all roles, without a seed."""
        arguments = {name: value for name, value in self.planned.arguments.items() if name not in HIDDEN}
        return call_on(with_fields(self.planned, arguments=arguments), self.original)

    def name_of(self, release: str) -> str:
        """Name of a release in the register, as a call names it."""
        return named_release(self.con, release, self.database or "")

    def without_row_id(self, draft: str) -> str:
        """SELECT of released rows without the numbers of the original's, which are the last column."""
        *_, row_id = column_types(self.con, draft)
        return f"(select * exclude ({ident(row_id)}) from {draft})"

    def enter_records(self, register: Register, number: int, draft: str, source: str, offset: str = "0") -> None:
        """Enter the released records.

        `draft`: the released rows; the last column numbers the rows of the source, or is the key; `source`: what
        follows FROM for the rows that were released; `offset`: SQL of the greatest group number of the sequence.
        """
        columns = column_types(self.con, draft)
        *shown, row_id = columns
        row = register.hash_sql(row_text({name: columns[name] for name in shown}))
        last = f"_anon_d.{ident(row_id)}"
        # the column of row numbers has no name of the original's
        same = f"{register.key_sql(last)} = _anon_o.key" if row_id == self.key else f"{last} = _anon_o.n"
        self.con.execute(
            f"""
            insert into {register.schema}.records
            select {number}, _anon_o.key, _anon_o.content, {self._group_sql(shown, offset)}, {row}, null, null
            from {draft} as _anon_d join ({self.records_sql(register, source)}) as _anon_o
            on {same}"""
        )

    def records_sql(self, register: Register, source: str) -> str:
        """SELECT of number, keyed hash of the key and of the content of each row of a source."""
        roles = self.planned.roles
        names = dict.fromkeys(info.name for info in (*roles.qi, *roles.sensitive, *roles.keep))
        types = column_types(self.con, source)
        content = register.hash_sql(row_text({name: types[name] for name in names}))
        key = register.key_sql(ident(self.key))
        records = f"select row_number() over () - 1 as n, {key} as key, {content} as content from {source}"
        if not self.by_person:
            return records
        together = "(sum(content::hugeint) over (partition by key) % 18446744073709551616)::ubigint"
        return f"select n, key, {together} as content from ({records})"

    @property
    def by_person(self) -> bool:
        """Whether the key names individuals, who may have several records."""
        person = self.planned.roles.person
        return person is not None and fold(person.name) == fold(self.key)

    def require_keys(self, source: str) -> None:
        """Refuse a key column with NULL or with one value in several records."""
        column = ident(self.key)
        rows, present, distinct = self.con.execute(
            f"select count(*), count({column}), count(distinct {column}) from {source}"
        ).fetchall()[0]
        if present < rows:
            raise ColumnError(
                f"release: key := '{self.key}' is NULL in {rows - present} rows; a key identifies every record"
            )
        if distinct < rows and not self.by_person:
            raise ColumnError(
                f"release: key := '{self.key}' has one value in several records ({rows} rows, {distinct} values). Name "
                "a column that is unique, or label the column 'anon: person' where it identifies individuals"
            )
        person = self.planned.roles.person
        if person is None or self.by_person:
            return
        persons = self.con.execute(f"select count(distinct {ident(person.name)}) from {source}").fetchall()[0][0]
        if persons < rows:
            raise ColumnError(
                f"release: individuals have several records, so key must be the person column '{person.name}', not "
                f"'{self.key}': a sequence releases all records of an individual together"
            )

    def bucket_column(self, draft: str) -> str:
        """The released column of bucket numbers, '' where there is none."""
        shown = zip(column_types(self.con, draft), self.planned.layout, strict=False)
        return next((name for name, plan in shown if plan.name == BUCKET.key), "")

    def _group_sql(self, shown: Sequence[str], offset: str) -> str:
        """SQL of the group of a released row: its bucket, or the class of its quasi-identifiers."""
        if self.planned.entry.name in HIDDEN_GROUPS:
            return "null::integer"
        qi = {info.name for info in self.planned.roles.qi}
        layout = dict(zip(shown, self.planned.layout, strict=True))
        for name, plan in layout.items():
            if plan.name == BUCKET.key:
                return f"_anon_d.{ident(name)}::integer"
        classes = [ident(name) for name, plan in layout.items() if (plan.column or plan.name) in qi]
        return (
            f"(dense_rank() over (order by {', '.join(classes)}) + {offset})::integer" if classes else "null::integer"
        )

    def _checksums(self, table: str | None) -> list[str]:
        """Checksums of everything a call reads: rows in their order, and hierarchies."""
        roles = self.planned.roles
        trees = {info.hierarchy for info in (*roles.qi, *roles.sensitive) if info.hierarchy}
        here = self.con.execute("select current_database(), current_schema()").fetchall()[0]
        catalog = Catalog(self.con, *here)
        sources = [catalog.relation("release", "hierarchy", tree).sql for tree in sorted(trees)]
        numbered = f"(select *, row_number() over () as _anon_rn from {table or self.planned.relation.sql})"
        return [row_checksum(self.con, source) for source in (numbered, *sources)]


def unregistered(function: str) -> AnonError:
    """Why a release that cannot be registered is refused."""
    return AnonError(
        f"{function}: the database is read-only, so the release cannot be entered in its register of releases. Open it "
        "for writing, or say independent := true, which the description shows",
        code="no-register",
    )


def released_before(function: str, original: str, known: Known, joint: str = "", following: str = "") -> AnonError:
    """Why a second release of an original is refused.

    `joint`: what they reveal together, behind a blank; `following`: how the last one is continued, before a blank.
    """
    made = listed((f"{r.name} ({r.method}, {r.day})" for _, r in known.earlier), _SHOWN)
    alike = f"{original} has {known.share:.0%} of its records in common with {known.alike}, which"
    subject = alike if known.alike else known.name
    return AnonError(
        f"{function}: {subject} has been released before: {made}. Several releases of one table add up: who "
        f"compares them learns more than each one reveals{joint}. {following}independent := true releases it "
        "regardless, which the description and the report show. A release that no one has received leaves the register "
        f"with {leaving(*known.earlier[-1])}",
        code="released-before",
    )
