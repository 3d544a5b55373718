"""The known record of each individual, and the classes in which all individuals publish the same one.

The record is a row: the known columns of the table of individuals, and those of the first events of each table in the
order of time (dates first), as many as the plan allows. Mondrian cuts these rows into classes of k individuals. An
event is released where every individual of the class has one in its place, below a parent in the same place: all
individuals of a class publish equal records, so at least k fit whatever an attacker knows of demographics and events.
Other events are dropped and counted. Classes in which l does not hold, as counted on the finished tables, are cut
again together with as many other individuals, into classes twice as large.
Cost: that of Mondrian on individuals times places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from duckdb_anon.database.cover import cover, number_values
from duckdb_anon.database.plan import NAME, Table
from duckdb_anon.database.work import Work
from duckdb_anon.engine.sql_quoting import ident, idents, literal
from duckdb_anon.model.errors import RequirementError, code_of, without_code
from duckdb_anon.model.function_specs import ColumnInfo


@dataclass(frozen=True)
class Cell:
    """A column of the record: a known column of an event, or (`info` is None) the place of its parent."""

    name: str
    table: str
    place: int
    info: ColumnInfo | None


def make_record(work: Work, tables: Sequence[Table]) -> list[Cell]:
    """Make the known record of each individual of some tables."""
    con, first = work.con, work.plan.individuals
    events = [table for table in tables if table is not first and table.known]
    parts, cells = [_base(work, tables)], []
    if work.plan.delta is not None:
        number_values(work, tables)
        events = []
    elif first in tables:
        cells = [Cell(f"d{k}", first.name, 0, info) for k, info in enumerate(first.known)]
    for number, table in enumerate(events):
        found = _places(work, number, table, events)
        cells += found
        values = [(ident(cell.info.name) if cell.info else "_anon_ps", cell) for cell in found]
        items = "".join(f", max({value}) filter (_anon_s = {cell.place}) as {cell.name}" for value, cell in values)
        parts.append(f"select _anon_i as i{items} from {work.of(table, 'events')} group by _anon_i")
    joined = " ".join(f"left join ({part}) as t{k} using (i)" for k, part in enumerate(parts[1:]))
    con.execute(f"create or replace table {work.wide} as select * from ({parts[0]}) as t {joined}")
    con.execute(f"create or replace table {work.cut} as from {work.wide}")
    return cells


def make_classes(work: Work, tables: Sequence[Table], cells: Sequence[Cell], k: int, *, again: bool = False) -> None:
    """Cut the individuals in table `cut` into classes of k, and find the released rows of each table.

    `again`: whether the other individuals stay in the classes that they have.
    """
    by_cover = work.plan.delta is not None and any(table.known for table in tables)
    if by_cover:
        cover(work, tables, k, again=again)
    elif cells:
        _cut(work, cells, k, again=again)
    else:
        work.con.execute(
            f"create or replace table {work.boxes} as select 0::ubigint as _anon_c, i as _anon_i from {work.wide}"
        )
    for table in tables:
        if not (by_cover and table.known):
            _keep(work, table, tables, table is not work.plan.individuals and bool(table.known))


def _base(work: Work, tables: Sequence[Table]) -> str:
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


def _cut(work: Work, cells: Sequence[Cell], k: int, *, again: bool) -> None:
    """Cut the records of some individuals into classes."""
    con = work.con
    names = [cell.name for cell in cells]
    call = f"mondrian({literal(work.cut)}, {k}, {roles_of(cells)}, keep := ['i'])"
    released = ", ".join([f"hash({idents(names)}) as _anon_c", "i as _anon_i", *(f"{n} as _anon_{n}" for n in names)])
    try:
        if again:
            con.execute(f"delete from {work.boxes} where _anon_i in (select i from {work.cut})")
            con.execute(f"insert into {work.boxes} by name select {released} from {call}")
        else:
            con.execute(f"create or replace table {work.boxes} as select {released} from {call}")
    except duckdb.Error as error:
        if code_of(str(error)) != RequirementError.code:
            raise
        raise RequirementError(f"{NAME}: {without_code(error).partition('mondrian: ')[2]}") from error


def cut_again(work: Work, many: int) -> None:
    """Choose the classes that have individuals in table `alike`, and others at random, `many` individuals or more."""
    work.con.execute(
        f"create or replace table {work.cut} as with classes as (select _anon_c, count(*) as n, count(i) as alike "
        f"from {work.boxes} left join {work.space}.alike on i = _anon_i group by _anon_c), "
        "before as (select _anon_c, coalesce(sum(n) over (order by alike > 0 desc, hash(_anon_c) "
        "rows between unbounded preceding and 1 preceding), 0) as rows_before, alike from classes) "
        f"select * from {work.wide} where i in (select _anon_i from {work.boxes} where _anon_c in "
        f"(select _anon_c from before where alike > 0 or rows_before < {many}))"
    )


def roles_of(cells: Sequence[Cell]) -> str:
    """Role arguments of the record: its columns, which of them have no order, and their hierarchies."""
    nominal = [cell.name for cell in cells if cell.info and cell.info.kind == "nominal"]
    trees = [f"{literal(c.name)}: {literal(c.info.hierarchy)}" for c in cells if c.info and c.info.hierarchy]
    text = f"qi := {literal([cell.name for cell in cells])}"
    text += f", categorical := {literal(nominal)}" if nominal else ""
    return text + (f", hierarchies := {{{', '.join(trees)}}}" if trees else "")


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
