"""The next release of a sequence: what was published stays to the byte, new records are grouped among themselves.

Whatever the number of releases, the group of a record over the sequence is the group of its first release, so k, l and
delta of one release hold for all of them together. New records that cannot meet the requirement wait, all of them:
which ones could go would depend on sensitive values. A deleted record stays, or its whole group goes for good; a
changed one stays as it was published. Byun, Sohn, Bertino and Li (2006) and Xiao and Tao (2007) describe the attacks.

Cost: reading and hashing the original, releasing the new records, and copying the previous release.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as with_fields

import duckdb

from duckdb_anon.engine.register import Register, Registered, leaving, registered, released_rows
from duckdb_anon.engine.release_digest import column_types, holds_rows_of, row_text
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.errors import AnonError, ParameterError, RequirementError, code_of, listed, nearest, without_code
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import Description
from duckdb_anon.parts.run_part import message_of
from duckdb_anon.sequence.registration import HIDDEN_GROUPS, Registration, unregistered

METHODS = ("anatomy", "microaggregate", "mondrian", "muco", "one_to_m_generalize", "slicing")
DELETED, CHANGED = ("keep", "withdraw"), ("keep",)


@dataclass
class Next:
    """The next release of a sequence.

    Attributes:
        registration: of its call.
        register: the open register.
        previous: the release it continues.
        numbers: those of the releases of the sequence.
        deleted: 'keep' or 'withdraw', what becomes of published records that the original holds no more.
        scratch: name of the attached database for what is between.
        counts: records that were added, wait, were deleted, changed, withdrawn.
        reason: why new records wait.
    """

    registration: Registration
    register: Register
    previous: Registered
    numbers: Sequence[int]
    deleted: str
    scratch: str = field(default_factory=lambda: f"_anon_next_{secrets.token_hex(6)}")
    counts: dict[str, int] = field(default_factory=dict)
    reason: str = ""

    @staticmethod
    def of(registration: Registration, previous: str, deleted: str, changed: str) -> Next:
        """Check what is asked for.

        Args:
            registration: of the call, with the columns of its key.
            previous: name of the release that is continued.
            deleted: what becomes of deleted records.
            changed: what becomes of changed records.

        Raises:
            AnonError: saying what is allowed.
        """
        method = registration.found.entry.name
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
        if registration.independent:
            raise ParameterError("release: a release that continues previous is not independent; leave one of them out")
        register = registration.open()
        if register is None:
            raise unregistered("release")
        known = registered(registration.con, register.database, registration.original)
        last = _named(registration, known, previous)
        numbers = [release.number for release in known if release.sequence == last.sequence]
        return Next(registration.with_key(last.key or ""), register, last, numbers, deleted)

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
        ask, source = self.registration.con.execute, self.registration.found.relation.sql
        self.registration.require_keys(source)
        ask(f"create table {self.scratch}.current as {self.registration.records_sql(self.register, source)}")
        ask(
            f"create table {self.scratch}.published as select key, any_value(content) as content, "
            f"bool_or(coalesce(withdrawn in {self._in}, false)) as withdrawn "
            f"from {self.register.schema}.records where release in {self._in} group by key"
        )
        ask(
            f"create table {self.scratch}.batch as select * exclude (_anon_n) from "
            f"(select *, row_number() over () - 1 as _anon_n from {source}) where _anon_n in (select n from "
            f"{self.scratch}.current where key not in (select key from {self.scratch}.published)) order by _anon_n"
        )
        new, gone, differ = ask(
            f"select count(*) filter (p.key is null), count(*) filter (c.key is null and not p.withdrawn), "
            "count(*) filter (c.content <> p.content and not p.withdrawn) "
            f"from (select key, any_value(content) as content from {self.scratch}.current group by key) as c "
            f"full join {self.scratch}.published as p on c.key = p.key"
        ).fetchall()[0]
        leaving = 0
        if self.deleted == "withdraw":
            ask(
                f"create table {self.scratch}.leaving as select row, count(*) as n from {self.register.schema}.records "
                f"where {self._withdrawn_now()} group by row"
            )
            leaving, gone = ask(f"select coalesce(sum(n), 0) from {self.scratch}.leaving").fetchall()[0][0], 0
        self.counts = {"added": new, "waiting": 0, "deleted": gone, "changed": differ, "withdrawn": leaving}

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
                raise AnonError(message_of(error, self.registration.found.entry.name)) from error
            self.reason = without_code(str(error))
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
        kept = self._without_withdrawn(source)
        if self.counts["added"]:
            shown = column_types(con, self._new_rows())
            if shown != column_types(con, source):
                raise AnonError(
                    f"release: columns or types of the new records differ from those of {self.previous.name}; "
                    "the original has changed its columns. Release it with independent := true"
                )
            kept = f"{kept} union all from {self._new_rows()}"
        order = self.register.order_sql(f"'{self.previous.number + 1} ' || _anon_n")
        numbered = f"select *, row_number() over () as _anon_n from ({kept})"
        return f"(select * exclude (_anon_n) from ({numbered}) order by {order})"

    def enter(self, name: str, said: Description) -> None:
        """Enter the release and its new records; mark deleted and withdrawn ones.

        Raises:
            AnonError: another connection has released the original meanwhile.
        """
        ask = self.registration.con.execute
        entered = with_fields(
            self.registration.described_in_register(self.register, name, said),
            previous=self.previous.number, sequence=self.previous.sequence, added=self.counts["added"],
            waiting=self.counts["waiting"], deleted=self.counts["deleted"], changed=self.counts["changed"],
        )  # fmt: skip
        number = entered.number
        self.register.enter(entered, self.registration.known_numbers)
        records = f"{self.register.schema}.records"
        if self.deleted == "withdraw" and self.counts["withdrawn"]:
            ask(f"update {records} set withdrawn = {number} where {self._withdrawn_now()}")
        ask(
            f"update {records} set deleted = {number} where release in {self._in} and deleted is null "
            f"and key not in (select key from {self.scratch}.current)"
        )
        if self.counts["added"]:
            self.registration.enter_records(
                self.register, number, f"{self.scratch}.draft", f"{self.scratch}.batch", self._offset_sql()
            )

    def said(self) -> str:
        """What the data holder is told beside the description; counts of the original are not published."""
        parts = [
            f"continues {self.previous.name}: {self.counts['added']} new records published",
            f"{self.counts['waiting']} new records wait for the next release ({self.reason})",
            f"{self.counts['deleted']} deleted records stay published",
            f"{self.counts['withdrawn']} records were withdrawn, with all of their groups",
            f"{self.counts['changed']} records differ from what was published",
        ]
        numbers = ("", "waiting", "deleted", "withdrawn", "changed")
        told = [part for part, name in zip(parts, numbers, strict=True) if not name or self.counts[name]]
        if self.counts["changed"] * 2 > self.counts["changed"] + self.counts["added"] + self.previous.rows:
            told.append("a column that changes in most records, such as an age, is better published as a year of birth")
        return "; ".join(told)

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

    def _new_rows(self) -> str:
        """The new rows without the numbers of the original's."""
        return self.registration.without_row_id(f"{self.scratch}.draft")

    def _offset_sql(self) -> str:
        return f'(select coalesce(max("group"), 0) from {self.register.schema}.records where release in {self._in})'

    def _withdrawn_now(self) -> str:
        """Condition on records: of a group with a deleted record, and not withdrawn before."""
        current = f"(select key from {self.scratch}.current)"
        groups = (
            f'select release, "group" from {self.register.schema}.records where release in {self._in} '
            f"and key not in {current}"
        )
        published = f"release in {self._in} and not coalesce(withdrawn in {self._in}, false)"
        return f'{published} and (release, "group") in ({groups})'

    def _without_withdrawn(self, source: str) -> str:
        """SELECT of the previous rows without those of groups that are withdrawn now."""
        if self.deleted != "withdraw":
            return f"from {source}"
        con = self.registration.con
        row = self.register.hash_sql(row_text(column_types(con, source)))
        hashed = f"select *, {row} as _anon_h, row_number() over (partition by {row}) as _anon_k from {source}"
        return (
            f"select _anon_p.* exclude (_anon_h, _anon_k) from ({hashed}) as _anon_p left join {self.scratch}.leaving "
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
            f"release: the releases of a sequence are made by one call, and {previous} was made by {last.call}. Repeat "
            "it, or say independent := true"
        )
    return last
