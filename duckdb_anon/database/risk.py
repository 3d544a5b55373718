"""database_risk: how many individuals of a database are found by what is known of them, before and after a release.

An attacker knows the columns labelled quasi of an individual and one, two, three, all or none of its events. Released
individuals whose demographics cover the known ones score a point for each known event that one of their released events
covers; the attacker picks evenly among the best. `identity` is the mean chance to pick the right one; `pseudonyms` is
the same where tables are released unchanged but for pseudonyms. The strongest attacker of `linkage_risk` knows all and
sees the generalized record of all places, also of events that are dropped. Where values are permuted, the attacker
takes the nearest values; one who knows the groups picks evenly in the own one, or (strongest) learns
(`kernels.attacks.linked_records`).
Whoever knows all events is also tried with what leaves ungeneralized: the gaps of shifted dates against those of known
ones, and for every other column the value of one row of the individual (noisy ones by closeness), as an acquaintance
has it. That of a sensitive column is outside every promise: it is printed, and no check of a plan judges it.
95% intervals of Wilson (1927). Cost: that of the release, and targets times individuals and their events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from duckdb_anon.database.dates import days, is_shifted, known_dates
from duckdb_anon.database.plan import JOINED, Plan, Table
from duckdb_anon.database.record import Cell, roles_of
from duckdb_anon.database.released_tables import DatabaseRelease, make_release, working
from duckdb_anon.database.work import Work
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.kernels.attacks.linked_records import insider, nearest
from duckdb_anon.measures.risk.attacks import wilson
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import ColumnInfo
from duckdb_anon.sql_functions import load
from duckdb_anon.treatments import Column, Key, parsed, treated

NAME = "database_risk"
KNOWN = {
    "demographics": 0, "and one event": 1, "and two events": 2, "and three events": 3, "and all events": 1_000_000,
}  # fmt: skip
"""What the attacker knows, and the number of events."""
STRONGEST = "strongest"
TARGETS = 500
_ALL = "and all events"
_GROUPS = "and all events and the groups"
_DATES = 6  # of an individual, which an attacker aligns
_KEYED = ("pseudonym", "fake")  # treatments whose values nobody can compare with the original's


@dataclass(frozen=True)
class Risk:
    """Re-identification by one kind of knowledge.

    Attributes:
        known: what the attacker knows; 'strongest' is the strongest attacker, who knows all.
        pseudonyms: chance to find an individual where tables are released with pseudonyms alone.
        identity, low, high: the same in the release, with its 95% interval.
        targets: individuals that were looked for.
        judged: whether a check of a plan judges it; not where the attacker knows a sensitive value.
    """

    known: str
    pseudonyms: float | None
    identity: float
    low: float
    high: float
    targets: int
    judged: bool = True


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
        return measured(work, made, targets, seed)


def measured(work: Work, made: DatabaseRelease, targets: int, seed: int) -> list[Risk]:
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
        before = _found(work, events, seed, released=False)
        after = _found(work, events, seed, released=True) if plan.delta is None else _nearest(work, events, seed)
        rows.append(_risk(known, after, sum(before) / len(before)))
    if plan.delta is not None:
        con.execute(
            f"create or replace table {work.space}.best as select t, _anon_i as r from {work.boxes} join "
            f"(select _anon_i as t, _anon_c from {work.boxes} semi join {work.space}.targets using (_anon_i)) "
            "using (_anon_c)"
        )
        rows.append(_risk(_GROUPS, _chances(work, f"from {work.space}.best"), None))
    for table, released in zip(plan.tables, made.tables, strict=True):
        sensitive = {info.name for info in table.roles.sensitive}
        for name, done in released.columns.items():
            what, misfits = _more(work, table, name, done, seed)
            found = [_chances(work, _narrowed(misfit)) for misfit in misfits]
            if found:
                rows.append(_risk(f"{_ALL} and {what}", max(found, key=sum), None, judged=name not in sensitive))
    if plan.delta is not None and work.covered:
        return [*rows, _risk(STRONGEST, insider(work.covered[0], _targets(work)).tolist(), None)]
    return [*rows, _strongest(work, made.record, targets, seed)] if made.record else rows


def _targets(work: Work) -> IntArray:
    """Numbers of the individuals that are looked for, as `_chances` orders them."""
    found = work.con.execute(f"select _anon_i from {work.space}.targets order by all").fetchall()
    return np.array([number for (number,) in found], dtype=np.int64)


def _nearest(work: Work, events: int, seed: int) -> list[float]:
    """The chance to find each target among permuted records by the nearest values."""
    if not work.covered:  # nothing is known
        return [1 / work.con.execute(f"select count(*) from {work.boxes}").fetchall()[0][0]] * len(_targets(work))
    chances: list[float] = nearest(work.covered[0], _targets(work), events, np.random.default_rng(seed)).tolist()
    return chances


def _risk(known: str, chances: Sequence[float], before: float | None, *, judged: bool = True) -> Risk:
    low, high = wilson(sum(chances), len(chances))
    return Risk(known, before, sum(chances) / len(chances), low, high, len(chances), judged)


def _found(work: Work, events: int, seed: int, *, released: bool) -> list[float]:
    """The chance to find each target by its demographics and some events; `best` has the individuals that fit best."""
    plan, space = work.plan, work.space
    what = "release" if released else "rows"
    first = plan.individuals
    covers = [_covers(work, info, released=released) for info in first.known]
    matches = [_matches(work, table, events, seed, what) for table in plan.tables[1:] if table.known]
    found = " union all ".join(matches) or "select 0 as t, 0 as r, 0 as e where false"
    work.con.execute(
        f"""
        create or replace table {space}.best as with pairs as (
            select o._anon_i as t, r._anon_i as r
            from {space}.targets as o join {work.of(first, what)} as r on {" and ".join(covers) or "true"}),
        found as ({found}),
        scores as (select t, r, count(e) as score from pairs left join found using (t, r) group by t, r)
        select t, r from scores qualify score = max(score) over (partition by t)"""
    )
    return _chances(work, f"from {space}.best")


def _chances(work: Work, best: str) -> list[float]:
    """The chance to pick each target evenly among the individuals `r` that fit it best."""
    chances = work.con.execute(
        f"select coalesce(max((t = r)::integer) / count(r), 0) from {work.space}.targets left join ({best}) "
        "on t = _anon_i group by _anon_i order by _anon_i"
    ).fetchall()
    return [float(chance) for (chance,) in chances]


def _narrowed(misfit: str) -> str:
    """SELECT of those of the best individuals that have the least misfit; where there is none, all of them."""
    return (
        f"select t, r from ({misfit}) qualify coalesce(misfit, 1e9) = min(coalesce(misfit, 1e9)) over (partition by t)"
    )


def _more(work: Work, table: Table, name: str, done: str, seed: int) -> tuple[str, list[str]]:
    """What else an attacker may know of a column, and SELECTs of the misfit of each of the best individuals."""
    if done in ("generalized", "permuted") or name in table.keys:
        return "", []
    if is_shifted(table, name):
        pairs = [(other, known) for other, known in known_dates(work.plan) if other is not work.plan.individuals]
        return f"the gaps of {table.name}.{name}", [_gaps(work, table, name, *pair) for pair in pairs]
    value, column = ident(name), Column(name, table.relation.columns[name], table.name)
    given = None if done in ("unchanged", JOINED) else parsed(NAME, table.name, done)[0].name
    if given in _KEYED:
        return "", []
    known = treated(NAME, column, done, Key(b"")) if given not in (None, "noise") else value
    apart = f"abs(x.{value} - v)" if given == "noise" else f"(x.{value} is distinct from v)::integer"
    one = (
        f"select _anon_i as t, {known} as v from {work.of(table)} semi join {work.space}.targets using (_anon_i) "
        f"where {value} is not null qualify row_number() over (partition by _anon_i order by hash(_anon_n, {seed})) = 1"
    )
    return f"one value of {table.name}.{name}", [
        f"select b.t, b.r, min({apart}) as misfit from {work.space}.best as b left join ({one}) as o on o.t = b.t "
        f"left join {work.of(table, 'release')} as x on x._anon_i = b.r and o.t is not null group by b.t, b.r"
    ]


def _gaps(work: Work, table: Table, name: str, other: Table, known: str) -> str:
    """SELECT of how badly shifted dates of the best individuals fit known dates of the target, under one offset."""
    first = f"qualify row_number() over (partition by i order by d) <= {_DATES}"
    dates = "select distinct _anon_i as i, {0} as d from {1} where {0} is not null " + first
    known_days = dates.format(days(ident(known)), work.of(other))
    shifted, best = dates.format(days(ident(name)), work.of(table, "release")), f"{work.space}.best"
    return (
        f"with q as materialized (select i as t, d as q from ({known_days}) where i in (select t from {best})), "
        f"s as materialized (select i as r, d as s from ({shifted}) where i in (select r from {best})), "
        f"offsets as (select distinct t, r, s - q as c from {best} join q using (t) join s using (r)), "
        "nearest as (select t, r, c, s, min(abs(s - q - c)) as d from offsets join q using (t) join s using (r) "
        "group by t, r, c, s), "
        # as if a date of another individual were 30 days away: more dates that agree count more
        "scores as (select t, r, c, sum(ln(1 + d) - ln(31)) as score from nearest group by t, r, c), "
        "misfits as (select t, r, min(score) as misfit from scores group by t, r) "
        f"select t, r, misfit from {best} left join misfits using (t, r)"
    )


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
