"""database_risk: how many individuals of a database are found by what is known of them, before and after a release.

An attacker knows the columns labelled quasi of an individual and one, two, three, all or none of its events. Released
individuals whose demographics cover the known ones score a point for each known event that one of their released events
covers; the attacker picks evenly among the best. `identity` is the mean chance to pick the right one; `pseudonyms` is
the same where tables are released unchanged but for pseudonyms. The strongest attacker of `linkage_risk` knows all and
sees the generalized record of all places, also of events that are dropped. 95% intervals of Wilson (1927).
Cost: that of the release, and targets times individuals and their events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from duckdb_anon.database.plan import Plan, Table
from duckdb_anon.database.record import Cell, Work, roles_of
from duckdb_anon.database.released_tables import make_release, working
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.measures.risk.attacks import wilson
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import ColumnInfo
from duckdb_anon.sql_functions import load

NAME = "database_risk"
KNOWN = {
    "demographics": 0, "and one event": 1, "and two events": 2, "and three events": 3, "and all events": 1_000_000,
}  # fmt: skip
"""What the attacker knows, and the number of events."""
STRONGEST = "strongest"
TARGETS = 500


@dataclass(frozen=True)
class Risk:
    """Re-identification by one kind of knowledge.

    Attributes:
        known: what the attacker knows; 'strongest' is the strongest attacker, who knows all.
        pseudonyms: chance to find an individual where tables are released with pseudonyms alone.
        identity, low, high: the same in the release, with its 95% interval.
        targets: individuals that were looked for.
    """

    known: str
    pseudonyms: float | None
    identity: float
    low: float
    high: float
    targets: int


def database_risk(
    con: duckdb.DuckDBPyConnection,
    tables: Sequence[str],
    *,
    treatments: Mapping[str, Mapping[str, str]] | None = None,
    targets: int = TARGETS,
    seed: int = 1,
    **options: Any,
) -> list[Risk]:
    """Measure the risk of a release of a database, which is made as `release_database` makes it and then thrown away.

    Args:
        con: an open connection.
        tables: names of the tables.
        treatments: as for `release_database`.
        targets: number of random individuals that are looked for.
        seed: makes the choice of individuals and events repeatable.
        options: as for `release_database`.

    Returns:
        One row for each kind of knowledge, and the strongest attacker.

    Raises:
        ParameterError: the plan does not link the tables, so that no attack on the join exists.
    """
    plan = Plan.of(load(con), tables, options, treatments or {})
    with working(con, plan) as work:
        made = make_release(work)
        return measured(work, made.record, targets, seed)


def measured(work: Work, record: Sequence[Cell], targets: int, seed: int) -> list[Risk]:
    """Measure a release that has been made."""
    plan, con = work.plan, work.con
    if not plan.linked:
        raise ParameterError(f"{NAME}: the plan releases unlinked tables. Use linkage_risk on each of them")
    con.execute(
        f"create or replace table {work.space}.targets as select * from {work.of(plan.individuals)} "
        f"order by hash(_anon_i, {seed}) limit {targets}"
    )
    rows = []
    for known, events in KNOWN.items():
        before, after = (_found(work, events, seed, released=released) for released in (False, True))
        low, high = wilson(sum(after), len(after))
        rows.append(Risk(known, sum(before) / len(before), sum(after) / len(after), low, high, len(after)))
    return [*rows, _strongest(work, record, targets, seed)] if record else rows


def _found(work: Work, events: int, seed: int, *, released: bool) -> list[float]:
    """The chance to find each target by its demographics and some events."""
    plan, space = work.plan, work.space
    what = "release" if released else "rows"
    first = plan.individuals
    covers = [_covers(work, info, released=released) for info in first.known]
    matches = [_matches(work, table, events, seed, what) for table in plan.tables[1:] if table.known]
    found = " union all ".join(matches) or "select 0 as t, 0 as r, 0 as e where false"
    chances = work.con.execute(
        f"""
        with pairs as (
            select o._anon_i as t, r._anon_i as r
            from {space}.targets as o join {work.of(first, what)} as r on {" and ".join(covers) or "true"}),
        found as ({found}),
        scores as (select t, r, count(e) as score from pairs left join found using (t, r) group by t, r),
        best as (select * from scores qualify score = max(score) over (partition by t))
        select coalesce(max((t = r)::integer) / count(r), 0)
        from {space}.targets left join best on t = _anon_i group by _anon_i order by _anon_i"""
    ).fetchall()
    return [float(chance) for (chance,) in chances]


def _matches(work: Work, table: Table, events: int, seed: int, what: str) -> str:
    """SELECT of target, individual and known event that an event of the individual covers."""
    covers = " and ".join(_covers(work, info, released=what == "release") for info in table.known)
    known = (
        f"select * from {work.of(table)} semi join {work.space}.targets using (_anon_i) "
        f"qualify row_number() over (partition by _anon_i order by hash(_anon_n, {seed})) <= {events}"
    )
    return (
        f"select distinct o._anon_i as t, r._anon_i as r, {literal(table.name)} || o._anon_n as e from ({known}) as o "
        f"join pairs as p on p.t = o._anon_i join {work.of(table, what)} as r on r._anon_i = p.r and {covers}"
    )


def _covers(work: Work, info: ColumnInfo, *, released: bool) -> str:
    """SQL of whether a released value `r` covers the original's `o`; what covers every value is NULL."""
    value, cell = f"o.{ident(info.name)}", f"r.{ident(info.name)}"
    if not released:
        return f"{value} is not distinct from {cell}"
    if info.kind == "ordered":
        return f"coalesce({value} between {cell}.lower and {cell}.upper, true)"
    if info.kind == "hierarchy" and info.hierarchy:
        levels = [ident(name) for name, *_ in work.con.execute(f"describe from {info.hierarchy}").fetchall()]
        texts = ", ".join(f"{level}::varchar" for level in levels)
        tree = f"(select list([{texts}]) from {info.hierarchy} where {levels[0]}::varchar = {value}::varchar)"
        return f"coalesce(list_contains(flatten({tree}), {cell}::varchar), true)"
    return f"coalesce(list_contains({cell}, {value}), true)"


def _strongest(work: Work, record: Sequence[Cell], targets: int, seed: int) -> Risk:
    """The strongest attacker of linkage_risk on the joined record."""
    con, space = work.con, work.space
    items = "".join(f"_anon_{cell.name} as {cell.name}, " for cell in record)
    con.execute(f"create or replace table {space}.record as select * exclude (i) from {work.wide} order by i")
    con.execute(f"create or replace table {space}.published as select {items}_anon_i as row_id from {work.boxes}")
    identity, low, high, many = con.execute(
        f"select identity, identity_low, identity_high, targets from linkage_risk('{space}.main.record', "
        f"'{space}.main.published', {roles_of(record)}, call := 'mondrian({work.plan.k})', targets := {targets}, "
        f"seed := {seed}) where attacker = '{STRONGEST}'"
    ).fetchall()[0]
    return Risk(STRONGEST, None, identity, low, high, many)
