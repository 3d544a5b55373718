"""The released tables of a database among working tables: made, proved, checked for what must not leave, and copied.

Key columns become pseudonyms, equal in all tables where the joined record satisfies k and l; known columns take the
classes of `record`; all rows are sorted by the pseudonym of their individual.
"""

from __future__ import annotations

import datetime
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from dataclasses import replace as with_fields
from typing import Any

import duckdb

from duckdb_anon.database.cover import released_column
from duckdb_anon.database.dates import refuse_determined
from duckdb_anon.database.plan import JOINED, NAME, Plan, Table
from duckdb_anon.database.record import Cell, cut_again, make_classes, make_record
from duckdb_anon.database.recount import Counted, counted, make_alike, require_permuted, require_promise
from duckdb_anon.database.work import Work, join_rare_values, read_rows
from duckdb_anon.engine.catalog.catalog import write_comments
from duckdb_anon.engine.records.release_digest import release_digest, row_checksum
from duckdb_anon.engine.records.release_seal import sealed
from duckdb_anon.engine.sql_quoting import ident, idents
from duckdb_anon.gate.checks import refuse
from duckdb_anon.gate.source_tables import described_table, tables_of
from duckdb_anon.kernels.attacks.linked_records import tried
from duckdb_anon.kernels.rng_streams import generator
from duckdb_anon.measures.risk.attacks import wilson
from duckdb_anon.model.errors import AnonError, RequirementError, listed
from duckdb_anon.model.release_comment import Description
from duckdb_anon.model.version import __version__
from duckdb_anon.report.profile.key_columns import refuse_keys
from duckdb_anon.treatments import Column, Key, parsed, text_in, treated

_MOST_TIMES = 16
"""Groups are made larger, until an attacker who learns stays at delta, up to so many times their size."""
_WORKING = "_anon_i, _anon_s, _anon_ps"
"""Columns that only the working tables have."""


@dataclass(frozen=True)
class ReleasedTable:
    """What was released of a table.

    Attributes:
        name: of the table.
        rows, dropped_rows: numbers of rows that were released, and that were not.
        columns: released columns, with what was done to each.
        dropped: columns that were not released.
    """

    name: str
    rows: int
    dropped_rows: int
    columns: Mapping[str, str]
    dropped: Sequence[str]


@dataclass(frozen=True)
class DatabaseRelease:
    """What was released.

    Attributes:
        tables: what was released of each table.
        plan: what was asked for.
        counted: k and l, counted on the finished rows of the joined tables and of each table.
        record: the cells of the joined record; () where the tables do not join.
    """

    tables: Sequence[ReleasedTable]
    plan: Plan
    counted: Sequence[Counted]
    record: Sequence[Cell] = ()

    @property
    def linked(self) -> bool:
        """Whether the tables join."""
        return self.plan.linked

    @property
    def smallest(self) -> int:
        """Least number of individuals with one released record."""
        return min((one.smallest for one in self.counted if one.smallest), default=0)

    @property
    def largest(self) -> float | None:
        """Largest share of one sensitive value among them (l_counts := 'lists': of one list); None without any."""
        shares = [share for one in self.counted if (share := one.share(self.plan)) is not None]
        return max(shares, default=None)

    def table(self, name: str) -> ReleasedTable:
        """What was released of one table."""
        return next(released for released in self.tables if released.name == name)

    def lines(self) -> list[str]:
        """The release in words, one line a table and one for the promise."""
        found = []
        for table in self.tables:
            lost = f", {table.dropped_rows} dropped" if table.dropped_rows else ""
            columns = f"; columns dropped: {', '.join(table.dropped)}" if table.dropped else ""
            found.append(f"{table.name}: {table.rows} rows{lost}{columns}")
        promise = f"every known record is that of {self.smallest} individuals or more"
        if self.plan.delta is not None:
            promise = f"known values are permuted in groups of {self.smallest} individuals or more"
        if self.linked:
            return [*found, f"the tables join; {promise}"]
        return [*found, f"the tables are not linked, each has pseudonyms of its own; in each {promise}"]


@contextmanager
def working(con: duckdb.DuckDBPyConnection, plan: Plan) -> Iterator[Work]:
    """Working tables with the rows of a plan, which go with the block."""
    space = f"anon_work_{secrets.token_hex(6)}"
    con.execute(f"attach ':memory:' as {space}")
    try:
        work = Work(con, plan, space)
        read_rows(work)
        join_rare_values(work)
        yield work
    finally:
        with suppress(duckdb.Error):
            con.execute(f"detach {space}")


def make_release(work: Work) -> DatabaseRelease:
    """Make the released tables among the working tables."""
    plan, key = work.plan, Key.of_file(NAME, work.plan.key_file)
    for table in plan.tables:
        names = [name for name in table.unchanged() if f"{table.name}.{name}" not in plan.force]
        unchanged = tuple(info for info in table.roles.keep if info.name in names)
        roles = with_fields(table.roles, keep=unchanged)
        refuse_keys(work.con, NAME, table.relation, roles, remedy="give it the treatment pseudonym")
    refuse_determined(work)
    made, found = list[ReleasedTable](), list[Counted]()
    record: list[Cell] = []
    for group in [plan.tables] if plan.linked else [[table] for table in plan.tables]:
        record, tables, numbers = _made(work, group, key if plan.linked else key.of(f"table {group[0].name}"))
        made, found = [*made, *tables], [*found, *numbers]
    require_promise(plan, found)
    _check(work, made)
    return DatabaseRelease(made, plan, found, record if plan.linked else ())


def _made(work: Work, group: Sequence[Table], key: Key) -> tuple[list[Cell], list[ReleasedTable], list[Counted]]:
    """Make the released tables of a group that joins, in classes large enough for l where there are such."""
    plan, con = work.plan, work.con
    record = make_record(work, group)
    _draw(work, group[0], key)
    [(individuals,)] = con.execute(f"select count(*) from {work.wide}").fetchall()
    can_cut = bool(record) or (plan.delta is not None and any(table.known for table in group))
    k, again = max(plan.least, min(max(plan.size, math.ceil(plan.l or 1)), individuals)), False
    while True:
        make_classes(work, group, record, k, again=again)
        found = tried(work.covered[0], generator(None)) if plan.delta is not None and can_cut else []
        risk = max((wilson(float(each.sum()), len(each))[0] for each in found if len(each)), default=0.0)
        if plan.delta is not None and risk > plan.delta:
            k, again = 2 * k, False
            if k > min(individuals, _MOST_TIMES * plan.size):
                raise _too_risky(plan, risk)
            con.execute(f"create or replace table {work.cut} as from {work.wide}")
            continue
        made = [write_table(work, table, record, key) for table in group]
        released = {one.name: list(one.columns) for one in made}
        alike = make_alike(work, group, released) if plan.l is not None else 0
        k, again = 2 * k, True
        if not alike or not can_cut or k > individuals:
            if plan.delta is not None:
                require_permuted(work, [table for table in group if table.known])
            return record, made, counted(work, group, released)
        cut_again(work, max(2 * alike, k))


def _too_risky(plan: Plan, risk: float) -> RequirementError:
    names = [f"{table.name}.{info.name}" for table in plan.tables for info in table.roles.sensitive]
    return RequirementError(
        f"{NAME}: an attacker who knows the groups, and learns how {listed(names)} depend on known columns, finds "
        f"more than {risk:.1%} of individuals in large groups too, and delta := {float(plan.delta or 0):g}. Label what "
        "depends on them quasi, so that it is permuted, treat it, or leave it out"
    )


def _draw(work: Work, table: Table, key: Key) -> None:
    """Draw a pseudonym for each individual of a table, and the number that shifts of its dates come from."""
    plan = work.plan
    hashed = key.hmac(text_in(f"{plan.individuals.name}.{plan.key}", "_anon_k"))
    given = [text for other in plan.tables for text in other.treatments.values()]
    shifts = any(parsed(NAME, table.name, text)[0].name == "shift" for text in given)
    shift = f", {key.shift_of('_anon_k')} as _anon_shift" if shifts else ""
    work.con.execute(
        f"create or replace table {work.space}.individuals as select _anon_i, {hashed}[:32]::uuid as _anon_id{shift} "
        f"from (select distinct _anon_i, _anon_k from {work.of(table)})"
    )


def write_table(work: Work, table: Table, record: Sequence[Cell], key: Key) -> ReleasedTable:
    """Write the released rows of a table, with their individual `_anon_i`, in the order of its pseudonym."""
    plan, con = work.plan, work.con
    of_individual = plan.key if table is plan.individuals else table.link.column if table.link else ""
    direct = table is plan.individuals or (table.link is not None and table.link.parent == plan.individuals.name)
    columns, items, joined = {}, [], [info.name for info in table.joined()]
    for name, kind in table.relation.columns.items():
        column = Column(name, kind, table.name, table.keys.get(name, ""), "_anon_k", "_anon_shift", "_anon_n")
        done, sql = _released(table, column, record, key, direct and name == of_individual)
        if done == "unchanged" and plan.sensitive_edges > 1 and name in joined:
            done = JOINED
        if sql is not None:
            columns[name] = done
            items.append(f"{sql} as {ident(name)}")
    if not items:
        raise AnonError(f"{NAME}: no column of {table.name} is released. Label one, or leave the table out")
    order = "random()" if plan.delta is not None else "_anon_s"  # the place of a permuted row is that of the original
    con.execute(
        f"create or replace table {work.of(table, 'release')} as select _anon_i, _anon_s, _anon_ps, {', '.join(items)} "
        f"from {work.of(table, 'kept')} join {work.boxes} using (_anon_i) join {work.space}.individuals "
        f"using (_anon_i) join {work.of(table)} using (_anon_n, _anon_i) order by _anon_id, {order}"
    )
    rows, before = con.execute(
        f"select (select count(*) from {work.of(table, 'release')}), (select count(*) from {table.relation.sql})"
    ).fetchall()[0]
    dropped = [name for name in table.relation.columns if name not in columns]
    return ReleasedTable(table.name, rows, before - rows, columns, dropped)


def _released(
    table: Table, column: Column, record: Sequence[Cell], key: Key, is_individual: bool
) -> tuple[str, str | None]:
    """What is done to a column, and its SQL; None where it is dropped."""
    name = column.name
    if name in table.treatments:
        return table.treatments[name], treated(NAME, column, table.treatments[name], key)
    if name in table.keys:
        return "pseudonym", "_anon_id" if is_individual else treated(NAME, column, "pseudonym", key)
    if name in table.unchanged():
        return "unchanged", column.sql
    known = [info.name for info in table.known]
    if name in known and not record:
        return "permuted", released_column(known.index(name))
    cells = [c for c in record if c.table == table.name and c.info is not None and c.info.name == name]
    if not cells:
        return "dropped", None
    if len(cells) == 1:
        return "generalized", f"_anon_{cells[0].name}"
    return "generalized", f"case _anon_s {' '.join(f'when {c.place} then _anon_{c.name}' for c in cells)} end"


def released_rows(work: Work, table: Table) -> str:
    """SELECT, in parentheses, of the rows that are released of a table."""
    return f"(select * exclude ({_WORKING}) from {work.of(table, 'release')})"


def _description(work: Work, table: Table) -> tuple[Description, dict[str, str]]:
    """The description of a released table, without its rows, and the comments of its columns."""
    plan = work.plan
    labels = {info.name: f"anon: {table.roles.by_name()[info.name]}" for info in table.roles.attributes}
    labels = {name: text for name, text in labels.items() if name not in table.treatments}
    labels |= dict.fromkeys(table.keys, "anon: pseudonym")
    labels |= {name: "anon: pseudonym" for name, text in table.treatments.items() if text.startswith("pseudonym")}
    together: dict[str, Any] = {"tables": [other.name for other in plan.tables], **plan.promise}
    forced = [name for name in plan.force if name.startswith(f"{table.name}.")]
    together |= {name: value for name, value in (("l", plan.l), ("force", forced)) if value}
    together |= {} if plan.linked else {"linked": False}
    day = datetime.date.today().isoformat()
    return Description(date=day, version=__version__, together=together), labels


def _check(work: Work, made: Sequence[ReleasedTable]) -> None:
    """Refuse columns with values of the originals that must not leave; all keys of the plan are identifiers."""
    con, plan = work.con, work.plan
    originals = {}
    for table in plan.tables:
        relation, keys = table.relation, dict.fromkeys(table.keys, "anon: identifier")
        comments = {**relation.comments, **keys}
        originals[relation.sql] = described_table(con, relation.sql, table.name, relation.comment, comments)
    tables = [*originals.values(), *(other for other in tables_of(con) if other.sql not in originals)]
    for table, one in zip(plan.tables, made, strict=True):
        # pseudonyms and generalized values have none, and permuted ones are those of another individual
        made_anew = ("generalized", "permuted", "pseudonym")
        copied = [
            name
            for name, done in one.columns.items()
            if not done.startswith(made_anew) and f"{table.name}.{name}" not in plan.force
        ]
        if copied:
            description, labels = _description(work, table)
            labels = {name: text for name, text in labels.items() if name in copied}
            rows = f"(select {idents(copied)} from {work.of(table, 'release')})"
            released = described_table(con, rows, table.name, description.comment(), labels)
            refuse(con, NAME, released, originals[table.relation.sql], tables=tables, made_now=True)


def write_tables(work: Work, schema: str, *, independent: bool = False) -> dict[str, Description]:
    """Copy the released tables with their comments; the description of each."""
    con, written = work.con, dict[str, Description]()
    for table in work.plan.tables:
        target = f"{schema}.{ident(table.name)}"
        con.execute(f"create table {target} as from {released_rows(work, table)}")
        description, labels = _description(work, table)
        there = {name for name, *_ in con.execute(f"describe {target}").fetchall()}
        labels = {name: text for name, text in labels.items() if name in there}
        checksum, digest = row_checksum(con, target), release_digest(con, target)
        described = with_fields(description, independent=independent, checksum=checksum, digest=digest)
        written[table.name] = sealed(described, labels)
        write_comments(con, target, written[table.name].comment(), labels)
    return written
