"""The known record of each individual, and the classes in which all individuals publish the same one.

The record is a row: the known columns of the table of individuals, and those of the first events of each table in the
order of time (dates first), as many as the plan allows. Mondrian cuts these rows into classes of k individuals (and l,
on the list of all sensitive values of an individual). An event is released where every individual of the class has one
in its place, below a parent in the same place: all individuals of a class publish equal records, so at least k fit
whatever an attacker knows of demographics and events. Other events are dropped and counted.
Cost: that of Mondrian on individuals times places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from duckdb_anon.database.plan import NAME, Plan, Table
from duckdb_anon.engine.sql_quoting import ident, idents, literal
from duckdb_anon.model.errors import AnonError, RequirementError, code_of, without_code
from duckdb_anon.model.function_specs import ColumnInfo


@dataclass(frozen=True)
class Cell:
    """A column of the record: a known column of an event, or (`info` is None) the place of its parent."""

    name: str
    table: str
    place: int
    info: ColumnInfo | None


@dataclass(frozen=True)
class Work:
    """The working tables of a release, in a database in memory of their own."""

    con: duckdb.DuckDBPyConnection  # the connection
    plan: Plan  # what is released
    space: str  # name of the database

    def of(self, table: Table, what: str = "rows") -> str:
        """A working table of a table of the plan."""
        # rows: with individual _anon_i, its key _anon_k, their number _anon_n, their parent's _anon_p; events: known
        # events with their place _anon_s; kept: numbers and places of released rows; release: what is released
        return f"{self.space}.{ident(f'{what} of {table.name}')}"

    @property
    def wide(self) -> str:
        """One row an individual: `i`, and its known record."""
        return f"{self.space}.wide"

    @property
    def boxes(self) -> str:
        """One row an individual: `i`, class `c`, and its generalized record."""
        return f"{self.space}.boxes"

    def parent(self, table: Table) -> Table | None:
        """The parent of a table; None for the table of individuals and what is linked to it."""
        above = table.link.parent if table.link else self.plan.individuals.name
        return next((other for other in self.plan.tables[1:] if other.name == above), None)


def read_rows(work: Work) -> None:
    """Number the individuals, and find the individual of every row."""
    con, plan = work.con, work.plan
    first = plan.individuals
    _require_unique(con, first, plan.key)
    con.execute(
        f"create table {work.of(first)} as select row_number() over () - 1 as _anon_i, {ident(plan.key)} as _anon_k, "
        f"row_number() over () - 1 as _anon_n, null::bigint as _anon_p, * from {first.relation.sql} "
        f"where {ident(plan.key)} is not null"
    )
    for table in plan.tables[1:]:
        if table.link is None:
            continue
        parent = next(other for other in plan.tables if other.name == table.link.parent)
        if parent is not first:
            _require_unique(con, parent, table.link.to)
        con.execute(
            f"create table {work.of(table)} as select p._anon_i, p._anon_k, row_number() over () - 1 as _anon_n, "
            f"p._anon_n as _anon_p, t.* from {table.relation.sql} as t join {work.of(parent)} as p "
            f"on t.{ident(table.link.column)} = p.{ident(table.link.to)}"
        )


def _require_unique(con: duckdb.DuckDBPyConnection, table: Table, column: str) -> None:
    present, distinct = con.execute(
        f"select count({ident(column)}), count(distinct {ident(column)}) from {table.relation.sql}"
    ).fetchall()[0]
    if distinct < present:
        raise AnonError(
            f"{NAME}: {table.name}.{column} has {distinct} values in {present} rows. A key that other tables refer to "
            "is unique. Remove the duplicates, or name another column"
        )


def make_classes(work: Work, tables: Sequence[Table]) -> list[Cell]:
    """Make the known record of each individual of some tables, its classes, and the released rows of each table."""
    con, first = work.con, work.plan.individuals
    events = [table for table in tables if table is not first and table.known]
    parts, cells = [_base(work, tables, events)], []
    if first in tables:
        cells = [Cell(f"d{k}", first.name, 0, info) for k, info in enumerate(first.known)]
    for number, table in enumerate(events):
        found = _places(work, number, table, events)
        cells += found
        values = [(ident(cell.info.name) if cell.info else "_anon_ps", cell) for cell in found]
        items = "".join(f", max({value}) filter (_anon_s = {cell.place}) as {cell.name}" for value, cell in values)
        parts.append(f"select _anon_i as i{items} from {work.of(table, 'events')} group by _anon_i")
    joined = " ".join(f"left join ({part}) as t{k} using (i)" for k, part in enumerate(parts[1:]))
    con.execute(f"create or replace table {work.wide} as select * from ({parts[0]}) as t {joined}")
    if cells:
        _cut(work, tables, cells)
    else:
        con.execute(
            f"create or replace table {work.boxes} as select i as _anon_i, 0::ubigint as _anon_c from {work.wide}"
        )
    for table in tables:
        _keep(work, table, tables, table in events)
    return cells


def _base(work: Work, tables: Sequence[Table], events: Sequence[Table]) -> str:
    """SELECT of the individuals that have a record: all of them, or those with rows in the tables."""
    first = work.plan.individuals
    if first in tables:
        known = "".join(f", {ident(info.name)} as d{k}" for k, info in enumerate(first.known))
        return f"select _anon_i as i{known} from {work.of(first)}"
    return " union ".join(f"select distinct _anon_i as i from {work.of(table)}" for table in tables)


def _places(work: Work, number: int, table: Table, events: Sequence[Table]) -> list[Cell]:
    """Number the events of each individual, and name the cells of those that have a place."""
    parent = work.parent(table)
    nested = parent in events
    above = f"left join {work.of(parent, 'events')} as p on p._anon_n = t._anon_p" if nested and parent else ""
    place = "p._anon_s" if nested else "-1"
    known = [f"t.{ident(info.name)}" for info in table.known]
    order = ", ".join([place, *known, "t._anon_n"])
    work.con.execute(
        f"create or replace table {work.of(table, 'events')} as select t._anon_i, t._anon_n, t._anon_p, {place} as "
        f"_anon_ps, row_number() over (partition by t._anon_i order by {order}) - 1 as _anon_s, {', '.join(known)} "
        f"from {work.of(table)} as t {above}"
    )
    most = work.con.execute(f"select coalesce(max(_anon_s), -1) + 1 from {work.of(table, 'events')}").fetchall()[0][0]
    cells = []
    for slot in range(min(most, work.plan.events)):
        cells += [Cell(f"e{number}_{slot}_{k}", table.name, slot, info) for k, info in enumerate(table.known)]
        cells += [Cell(f"p{number}_{slot}", table.name, slot, None)] if nested else []
    return cells


def _cut(work: Work, tables: Sequence[Table], cells: Sequence[Cell]) -> None:
    """Cut the records into classes."""
    plan, con = work.plan, work.con
    sensitive = ""
    if plan.l is not None and any(table.roles.sensitive for table in tables):
        _add_lists(work, tables)
        sensitive = f", l := {plan.l!r}, sensitive := 'list'"
    names = [cell.name for cell in cells]
    call = f"mondrian({literal(work.wide)}, {plan.k}, {roles_of(cells)}, keep := ['i']{sensitive})"
    released = ", ".join([f"hash({idents(names)}) as _anon_c", "i as _anon_i", *(f"{n} as _anon_{n}" for n in names)])
    try:
        con.execute(f"create or replace table {work.boxes} as select {released} from {call}")
    except duckdb.Error as error:
        if code_of(str(error)) != RequirementError.code:
            raise
        raise RequirementError(f"{NAME}: {without_code(error).partition('mondrian: ')[2]}") from error


def roles_of(cells: Sequence[Cell]) -> str:
    """Role arguments of the record: its columns, which of them have no order, and their hierarchies."""
    nominal = [cell.name for cell in cells if cell.info and cell.info.kind == "nominal"]
    trees = [f"{literal(c.name)}: {literal(c.info.hierarchy)}" for c in cells if c.info and c.info.hierarchy]
    text = f"qi := {literal([cell.name for cell in cells])}"
    text += f", categorical := {literal(nominal)}" if nominal else ""
    return text + (f", hierarchies := {{{', '.join(trees)}}}" if trees else "")


def _add_lists(work: Work, tables: Sequence[Table]) -> None:
    """Add the list of all sensitive values of each individual to the record, as one text."""
    columns = [(k, table, info.name) for k, table in enumerate(tables) for info in table.roles.sensitive]
    values = " union all ".join(
        f"select _anon_i as i, {literal(f'{k}.{name}:')} || {ident(name)}::varchar as v from {work.of(table)}"
        for k, table, name in columns
    )
    lists = f"select i, md5(string_agg(distinct v, chr(10) order by v)) as list from ({values}) group by i"
    work.con.execute(
        f"create or replace table {work.wide} as select w.*, coalesce(l.list, '') as list "
        f"from {work.wide} as w left join ({lists}) as l using (i)"
    )


def _keep(work: Work, table: Table, tables: Sequence[Table], is_known: bool) -> None:
    """Find the released rows of a table: in places that all individuals of a class share, below released parents."""
    parent = work.parent(table)
    below = parent in tables and parent is not None
    above = f"join {work.of(parent, 'kept')} as p on p._anon_n = t._anon_p" if below and parent else ""
    statement = f"create or replace table {work.of(table, 'kept')} as"
    if not is_known:
        work.con.execute(
            f"{statement} select t._anon_n, t._anon_i, 0 as _anon_s, 0 as _anon_ps from {work.of(table)} as t "
            f"join {work.boxes} using (_anon_i) {above}"
        )
        return
    work.con.execute(
        f"{statement} with sizes as (select _anon_c, count(*) as size from {work.boxes} group by _anon_c), "
        f"found as (select t._anon_n, t._anon_i, t._anon_s, b._anon_c, {'p._anon_s' if below else '0'} as _anon_ps "
        f"from {work.of(table, 'events')} as t join {work.boxes} as b using (_anon_i) {above} "
        f"where t._anon_s < {work.plan.events}), "
        "shared as (select _anon_c, _anon_s from found join sizes using (_anon_c) group by _anon_c, _anon_s "
        "having count(*) = any_value(size) and min(_anon_ps) = max(_anon_ps)) "
        "select _anon_n, _anon_i, _anon_s, _anon_ps from found semi join shared using (_anon_c, _anon_s)"
    )
