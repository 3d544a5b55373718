"""The next release of a sequence: what was published stays to the byte, new records are grouped among themselves.

Whatever the number of releases, the group of a record over the sequence is the group of its first release, so k, l and
delta of one release hold for all of them together. New records that cannot meet the requirement wait, all of them:
which ones could go would depend on sensitive values. A deleted record stays, or its whole group goes for good; a
changed one stays as it was published, or takes its new quasi-identifiers in the same bucket of anatomy, whose sensitive
values stay (m-invariance). Byun, Sohn, Bertino and Li (2006) and Xiao and Tao (2007) describe the attacks.

Cost: reading and hashing the original, releasing the new records, and copying the previous release.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as with_fields

import duckdb

from duckdb_anon.engine.records.register import Register, Registered, leaving, registered, released_rows
from duckdb_anon.engine.records.register_samples import RECORD, drawn
from duckdb_anon.engine.records.release_digest import column_types, holds_rows_of, row_text
from duckdb_anon.engine.sql_quoting import ident, idents, literal
from duckdb_anon.model.errors import (
    AnonError,
    ParameterError,
    RequirementError,
    cause_of,
    code_of,
    listed,
    nearest,
    without_code,
)
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import Description, read_arguments
from duckdb_anon.model.released_columns import Coded, Source
from duckdb_anon.parts.run_part import message_of
from duckdb_anon.sequence.registration import HIDDEN_GROUPS, Registration, unregistered

METHODS = ("anatomy", "microaggregate", "mondrian", "muco", "one_to_m_generalize", "slicing")
DELETED, CHANGED = ("keep", "withdraw"), ("keep", "replace")
REPLACING = ("anatomy",)
"""Methods that publish quasi-identifiers as they are: a bucket stays m-invariant when those of its records change."""


@dataclass
class Next:
    """The next release of a sequence."""

    registration: Registration  # of its call
    register: Register  # the open register
    previous: Registered  # the release it continues
    numbers: Sequence[int]  # those of the releases of the sequence
    # name of the attached database for what is between
    scratch: str = field(default_factory=lambda: f"_anon_next_{secrets.token_hex(6)}")
    counts: dict[str, int] = field(default_factory=dict)  # added, waiting, deleted, changed, replaced, withdrawn
    reason: str = ""  # why new records wait

    @staticmethod
    def of(registration: Registration) -> Next:
        """Check the options of a next release.

        `registration`: of the call, with the columns of its key.

        Raises:
            AnonError: saying what is allowed.
        """
        method, request = registration.planned.entry.name, registration.request
        deleted, changed = request.deleted, request.changed
        if method not in METHODS:
            raise ParameterError(
                f"release: {method} takes no previous: its releases cannot be continued record by record. "
                f"{listed(METHODS)} can; independent := true releases {registration.original} regardless"
            )
        for name, given, allowed in (("deleted", deleted, DELETED), ("changed", changed, CHANGED)):
            if given not in allowed:
                raise ParameterError(f"release: {name} := '{given}' is unknown. Allowed: {listed(allowed)}")
        if deleted == "withdraw" and method in HIDDEN_GROUPS:
            raise ParameterError(f"release: {method} does not publish its groups, so none can be withdrawn. Say 'keep'")
        if changed == "replace" and method not in REPLACING:
            raise ParameterError(
                f"release: changed := 'replace' needs a method that publishes quasi-identifiers as they are "
                f"({listed(REPLACING)}), and {method} does not. Say 'keep'"
            )
        if request.independent:
            raise ParameterError("release: a release that continues previous is not independent; leave one of them out")
        register = registration.open()
        if register is None:
            raise unregistered("release")
        known = registered(registration.con, register.database, registration.original)
        last = _named(registration, known, request.previous or "")
        numbers = [release.number for release in known if release.sequence == last.sequence]
        following = Next(registration.with_key(last.key or ""), register, last, numbers)
        if changed == "replace" and following.registration.by_person:
            raise ParameterError(
                "release: changed := 'replace' does not go with individuals who have several records. Say 'keep'"
            )
        return following

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Group the new records, in a database in memory that goes with the block.

        Raises:
            AnonError: the rows of the previous release are not those that the register lists.
        """
        con = self.registration.con
        self._require_same_rows()
        con.execute(f"attach ':memory:' as {self.scratch}")
        try:
            self._compare()
            self._release_batch()
            yield
        finally:
            con.execute(f"detach {self.scratch}")

    def _compare(self) -> None:
        """Find records that are new, deleted or changed."""
        execute, source = self.registration.con.execute, self.registration.planned.relation.sql
        self.registration.require_keys(source)
        execute(f"create table {self.scratch}.current as {self.registration.records_sql(self.register, source)}")
        execute(
            f"create table {self.scratch}.published as select key, arg_max(content, release) as content, "
            f"bool_or(coalesce(withdrawn in {self._in}, false)) as withdrawn "
            f"from {self.register.schema}.records where release in {self._in} group by key"
        )
        execute(
            f"create table {self.scratch}.batch as select * exclude (_anon_n) from "
            f"(select *, row_number() over () - 1 as _anon_n from {source}) where _anon_n in (select n from "
            f"{self.scratch}.current where key not in (select key from {self.scratch}.published)) order by _anon_n"
        )
        new, gone, differ = execute(
            f"select count(*) filter (p.key is null), count(*) filter (c.key is null and not p.withdrawn), "
            "count(*) filter (c.content <> p.content and not p.withdrawn) "
            f"from (select key, any_value(content) as content from {self.scratch}.current group by key) as c "
            f"full join {self.scratch}.published as p on c.key = p.key"
        ).fetchall()[0]
        if new and gone:
            self._require_same_keys()
        withdrawn = replaced = 0
        execute(f"create table {self.scratch}.leaving (row ubigint)")
        if self.registration.request.deleted == "withdraw":
            rows = f"select row from {self._latest} where {self._withdrawn_now()}"
            withdrawn, gone = execute(f"insert into {self.scratch}.leaving {rows}").fetchall()[0][0], 0
        if self.registration.request.changed == "replace":
            execute(f"create table {self.scratch}.replaced as {self._replaced_sql()}")
            rows = f"select _anon_published from {self.scratch}.replaced"
            replaced = execute(f"insert into {self.scratch}.leaving {rows}").fetchall()[0][0]
        self.counts = {
            "added": new, "waiting": 0, "deleted": gone, "changed": differ, "replaced": replaced,
            "withdrawn": withdrawn,
        }  # fmt: skip

    def _require_same_keys(self) -> None:
        """Refuse new keys of records that have been published under other keys: they would be published again."""
        current, published = f"{self.scratch}.current", f"{self.scratch}.published"
        new, gone = (
            drawn(
                self.registration.con,
                f"select content as h from {one} where key not in (select key from {other})", RECORD,
            )[0]
            for one, other in ((current, published), (published, current))
        )  # fmt: skip
        share = new.share(gone)
        if share is not None:
            raise AnonError(
                f"release: {share:.0%} of the new records are equal to published ones whose keys are gone, so "
                f"'{self.previous.key}' has other values or another type than in {self.previous.name}, and records "
                "would be published twice. Restore the keys",
                code="changed-keys",
            )

    def _release_batch(self) -> None:
        """Run the method on the new records; where it refuses them they wait."""
        if not self.counts["added"]:
            return
        con, batch = self.registration.con, f"{self.scratch}.main.batch"
        call, draft = self.registration.call(self.register, row_id=True, table=batch), f"{self.scratch}.draft"
        try:
            con.execute(f"create table {draft} as from {call}")
        except duckdb.Error as error:
            if code_of(str(error).partition("\n")[0]) != RequirementError.code:
                raise AnonError(message_of(error, self.registration.planned.entry.name)) from cause_of(error)
            self.reason = without_code(error)
            self.counts |= {"added": 0, "waiting": self.counts["added"]}
            return
        if name := self.registration.bucket_column(draft):
            bucket = ident(name)
            after = f"(select coalesce(max({bucket}), 0) + 1 from {self._previous_rows})"
            con.execute(f"update {draft} set {bucket} = {bucket} - (select min({bucket}) from {draft}) + {after}")

    def rows_sql(self) -> str:
        """SELECT of the rows of the release, in an order that tells nothing.

        Raises:
            AnonError: the original has other columns by now.
        """
        con, source = self.registration.con, self._previous_rows
        rows, columns = self._without_leaving(source), column_types(con, source)
        new_rows = [self.registration.without_row_id(f"{self.scratch}.draft")] if self.counts["added"] else []
        new_rows += [f"(select {idents(columns)} from {self.scratch}.replaced)"] if self.counts["replaced"] else []
        for more in new_rows:
            now = column_types(con, more)
            differing = [
                f"{name} ({now.get(name, 'missing')}, before {columns.get(name, 'missing')})"
                for name in dict.fromkeys([*columns, *now])
                if now.get(name) != columns.get(name)
            ]
            if differing:
                raise AnonError(
                    f"release: columns of the new records differ from those of {self.previous.name}: "
                    f"{listed(differing)}. Cast them in a view as they were, or release with independent := true"
                )
            rows = f"{rows} union all from {more}"
        order = self.register.order_sql(f"'{self.previous.number + 1} ' || _anon_n")
        numbered = f"select *, row_number() over () as _anon_n from ({rows})"
        return f"(select * exclude (_anon_n) from ({numbered}) order by {order})"

    def enter(self, name: str, description: Description) -> None:
        """Enter the release and its new records; mark deleted and withdrawn ones.

        Raises:
            AnonError: another connection has released the original meanwhile.
        """
        execute = self.registration.con.execute
        entered = with_fields(
            self.registration.described_in_register(self.register, name, description),
            previous=self.previous.number, sequence=self.previous.sequence, added=self.counts["added"],
            waiting=self.counts["waiting"], deleted=self.counts["deleted"], changed=self.counts["changed"],
        )  # fmt: skip
        number = entered.number
        shown = with_fields(self.registration.records, source=f"{self.scratch}.batch", _made={})
        self.register.enter(entered, self.registration.known.numbers(self.register.database), shown)
        records = f"{self.register.schema}.records"
        if self.registration.request.deleted == "withdraw" and self.counts["withdrawn"]:
            execute(f"update {records} set withdrawn = {number} where {self._withdrawn_now()}")
        execute(
            f"update {records} set deleted = {number} where release in {self._in} and deleted is null "
            f"and key not in (select key from {self.scratch}.current)"
        )
        if self.counts["replaced"]:
            execute(
                f"insert into {records} select {number}, _anon_key, _anon_content, _anon_group, _anon_row, null, null "
                f"from {self.scratch}.replaced"
            )
        if self.counts["added"]:
            offset = f'(select coalesce(max("group"), 0) from {records} where release in {self._in})'
            draft, batch = f"{self.scratch}.draft", f"{self.scratch}.batch"
            self.registration.enter_records(self.register, number, draft, batch, offset)

    def report(self) -> str:
        """The note for the data holder after the description; counts of the original are not published."""
        parts = [
            f"continues {self.previous.name}: {self.counts['added']} new records published",
            f"{self.counts['waiting']} new records wait for the next release ({self.reason})",
            f"{self.counts['deleted']} deleted records stay published",
            f"{self.counts['withdrawn']} records were withdrawn, with all of their groups",
            f"{self.counts['changed']} records differ from what was published",
            f"{self.counts['replaced']} of them are published with their new quasi-identifiers and the sensitive "
            "values of their buckets as before",
        ]
        numbers = ("", "waiting", "deleted", "withdrawn", "changed", "replaced")
        sentences = [part for part, name in zip(parts, numbers, strict=True) if not name or self.counts[name]]
        if self.counts["changed"] * 2 > self.counts["changed"] + self.counts["added"] + self.previous.rows:
            sentences.append(
                "a column that changes in most records, such as an age, is better published as a year of birth"
            )
        return "; ".join(sentences)

    @property
    def _in(self) -> str:
        return f"({', '.join(map(str, self.numbers))})"

    @property
    def _previous_rows(self) -> str:
        return released_rows(self.register.database, self.previous)

    def _require_same_rows(self) -> None:
        con, name, last = self.registration.con, self.previous.name, self.previous
        try:
            same = holds_rows_of(con, self._previous_rows, last.digest, last.checksum)
        except duckdb.Error as error:
            raise AnonError(f"release: the rows of previous := '{name}' cannot be read; restore them") from error
        if not same:
            raise AnonError(
                f"release: {name} has other rows than the register lists, so nothing can continue it. Restore the rows "
                "that were released"
            )

    @property
    def _latest(self) -> str:
        return self.register.latest_records(self._in)

    def _withdrawn_now(self) -> str:
        """Condition on records: of a group with a deleted record, and not withdrawn before."""
        groups = (
            f'select "group" from {self.register.schema}.records where release in {self._in} '
            f"and key not in (select key from {self.scratch}.current)"
        )
        published = f"release in {self._in} and not coalesce(withdrawn in {self._in}, false)"
        return f'{published} and "group" in ({groups})'

    def _replaced_sql(self) -> str:
        """SELECT of changed records with the columns that are copied from the original as they are now.

        Buckets and their sensitive values stay as they are, also where the sensitive value of a record has changed:
        what is replaced depends on no sensitive value.
        """
        con, source, previous = self.registration.con, self.registration.planned.relation.sql, self._previous_rows
        columns = column_types(con, previous)
        copied = {
            name: plan.column or plan.name
            for name, plan in zip(columns, self.registration.planned.layout, strict=True)
            if plan.cells in (Source, Coded)
        }
        row = self.register.hash_sql(row_text(columns))
        shown = ", ".join(
            f"_anon_o.{ident(copied[name])} as {ident(name)}" if name in copied else f"_anon_p.{ident(name)}"
            for name in columns
        )
        staying = f"not ({self._withdrawn_now()})" if self.registration.request.deleted == "withdraw" else "true"
        return f"""
            with _anon_r as (
              from {self._latest} where not coalesce(withdrawn in {self._in}, false) and {staying}),
            _anon_c as (
              select c.n as _anon_n, key as _anon_key, c.content as _anon_content, "group" as _anon_group,
                row as _anon_published
              from {self.scratch}.current as c join _anon_r using (key) where c.content <> _anon_r.content),
            _anon_o as (select *, row_number() over () - 1 as _anon_n from {source}),
            _anon_p as (
              select *, {row} as _anon_published from {previous}
              qualify row_number() over (partition by _anon_published) = 1),
            _anon_f as (
              select {shown}, _anon_c.* from _anon_c join _anon_o using (_anon_n) join _anon_p using (_anon_published))
            select *, {row} as _anon_row from _anon_f where _anon_row <> _anon_published"""

    def _without_leaving(self, source: str) -> str:
        """SELECT of the previous rows without those that are withdrawn or replaced now."""
        if self.registration.request.deleted == self.registration.request.changed == "keep":
            return f"from {source}"
        row = self.register.hash_sql(row_text(column_types(self.registration.con, source)))
        hashed = f"select *, {row} as _anon_h, row_number() over (partition by {row}) as _anon_k from {source}"
        leaving = f"select row, count(*) as n from {self.scratch}.leaving group by row"
        return (
            f"select _anon_p.* exclude (_anon_h, _anon_k) from ({hashed}) as _anon_p left join ({leaving}) "
            "as _anon_l on _anon_l.row = _anon_p._anon_h where coalesce(_anon_k > _anon_l.n, true)"
        )


def _named(registration: Registration, known: Sequence[Registered], previous: str) -> Registered:
    """The release that is continued: the last one of a sequence, made by the same call."""
    name = registration.name_of(previous)
    found = [release for release in known if fold(release.name) == fold(name)]
    if not found:
        names = list(dict.fromkeys(release.name for release in known))
        there = f"it lists {listed(names)}" if names else "it lists none of this original"
        raise AnonError(f"release: previous := '{previous}' is not in the register{nearest(previous, names)}; {there}")
    last = found[-1]
    following = [release for release in known if release.previous == last.number]
    if following:
        raise AnonError(
            f"release: {previous} has been continued by {following[-1].name}, and two releases that continue one add "
            f"up. Continue the last one. If no one has received {following[-1].name}: "
            f"{leaving(registration.database or '', following[-1])}"
        )
    if last.key is None:
        raise AnonError(f"release: {previous} was made without key := '...', so no release can continue it")
    if registration.key and fold(registration.key) != fold(last.key):
        raise ParameterError(f"release: key := '{registration.key}' is not that of {previous}. Allowed: '{last.key}'")
    if last.call != registration.call_text:
        raise ParameterError(
            f"release: the releases of a sequence are made by one call, and {previous} was made by {last.call}. This "
            f"one differs in {_differing(last, registration.call_text)}. Repeat it, or say independent := true"
        )
    return last


def _differing(last: Registered, call: str) -> str:
    """Arguments in which a call differs from that of a release, with the columns where they are roles."""
    texts = (
        text.partition(literal(last.original))[2].removeprefix(", ").removesuffix(")") for text in (last.call, call)
    )
    before, now = (read_arguments(text) or {} for text in texts)
    found = []
    for name in dict.fromkeys([*before, *now]):
        one, other = before.get(name), now.get(name)
        if isinstance(one, list) and isinstance(other, list) and set(map(str, one)) != set(map(str, other)):
            found.append(f"{name} ({listed(sorted(set(map(str, one)) ^ set(map(str, other))))})")
        elif one != other:
            found.append(name)
    return listed(found) if found else "its table or method"
