"""Dates that leave exact or shifted beside dates that an attacker knows.

A shift by one number of days keeps the intervals of an individual. Whoever knows the days of its visits knows nearly
the intervals of its discharges, and finds it by them in a class whose days are generalized; an exact date reveals the
day by itself. So a date is refused that a known date of the same individual determines: in half of the rows it lies
within a week of where the nearest known date suggests.
Cost: a join of the dates of 20,000 individuals for each pair of columns.
"""

from __future__ import annotations

from collections.abc import Iterator

from duckdb_anon.database.plan import NAME, Plan, Table
from duckdb_anon.database.work import Work
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.release_formats.duckdb_types import is_moment
from duckdb_anon.treatments import parsed

_INDIVIDUALS, _DAYS, _SHARE = 20_000, 7, 0.5


def days(column: str) -> str:
    """SQL of a date or timestamp in days; NULL where it is none or infinite."""
    return f"case when isfinite({column}) then epoch({column}) / 86400 end"


def known_dates(plan: Plan) -> list[tuple[Table, str]]:
    """Dates that an attacker knows."""
    return [(t, info.name) for t in plan.tables for info in t.known if _is_date(t.relation.columns[info.name])]


def is_shifted(table: Table, column: str) -> bool:
    """Whether a column has the treatment shift."""
    given = table.treatments.get(column)
    return given is not None and parsed(NAME, table.name, given)[0].name == "shift"


def refuse_determined(work: Work) -> None:
    """Refuse dates that known dates of the individual determine, unless the plan forces them."""
    for table, name in _leaving(work.plan):
        for other, known in known_dates(work.plan):
            if (share := _determined(work, table, name, other, known)) >= _SHARE:
                done = "shifted" if is_shifted(table, name) else "released unchanged"
                raise ColumnError(
                    f"{NAME}: {table.name}.{name} is {done}, and {other.name}.{known}, which an attacker knows, "
                    f"determines it within a week in {share:.0%} of rows. Label it quasi, so that both are "
                    f"generalized, or leave it out; force := ['{table.name}.{name}'] releases it",
                    code="determined-date",
                )


def go_together(work: Work, table: Table, parent: Table) -> list[int]:
    """For each known column the number of the date that it moves with, -1 for none.

    That is an earlier known date of the table or one of its parent, which determines it within a week. The columns of
    the table are numbered first, then those of the parent.
    """
    own = [(table, info.name) for info in table.known]
    above = [] if parent in (table, work.plan.individuals) else [(parent, info.name) for info in parent.known]
    found = [-1] * len(own)
    for k, (_, name) in enumerate(own):
        for n, (other, column) in enumerate([*own, *above]):
            leads = found[k] < 0 and (n >= len(own) or (n < k and found[n] < 0))
            if leads and _is_date(table.relation.columns[name]) and _is_date(other.relation.columns[column]):
                is_own = other is table
                lead, joined = ("t", "") if is_own else ("p", f"join {work.of(other)} as p on p._anon_n = t._anon_p")
                apart = f"{days(f't.{ident(name)}')} - {days(f'{lead}.{ident(column)}')}"
                some = f"{work.of(table)} as t {joined} order by hash(t._anon_n) limit {_INDIVIDUALS}"
                found[k] = n if _near_median(work, f"select {apart} as d from {some}") >= _SHARE else -1
    return found


def _near_median(work: Work, distances: str) -> float:
    """Share of distances `d`, in days, within a week of their median."""
    [(share,)] = work.con.execute(
        f"with distances as materialized ({distances}) select avg((abs(d - (select median(d) from distances)) <= "
        f"{_DAYS})::integer) from distances where d is not null"
    ).fetchall()
    return float(share or 0)


def _leaving(plan: Plan) -> Iterator[tuple[Table, str]]:
    """Dates that leave shifted or unchanged."""
    for table in plan.tables:
        for name, kind in table.relation.columns.items():
            leaves = is_shifted(table, name) or name in table.unchanged()
            if leaves and _is_date(kind) and f"{table.name}.{name}" not in plan.force:
                yield table, name


def _is_date(kind: str) -> bool:
    return is_moment(kind) and not kind.startswith("TIME ") and kind != "TIME"


def _determined(work: Work, table: Table, name: str, other: Table, known: str) -> float:
    """Share of the rows of a date that lie within a week of where the nearest known date of the individual suggests."""
    first = work.of(work.plan.individuals)
    nearest = (
        f"select s - q as d from (select _anon_i, _anon_n as n, {days(ident(name))} as s from {work.of(table)}) "
        f"join (select _anon_i, {days(ident(known))} as q from {work.of(other)}) using (_anon_i) "
        f"semi join (select _anon_i from {first} order by hash(_anon_i) limit {_INDIVIDUALS}) using (_anon_i) "
        "where s is not null and q is not null qualify row_number() over (partition by n order by abs(s - q)) = 1"
    )
    return _near_median(work, nearest)
