"""k and l of a database as it leaves: counted on the finished rows, of each table by itself and of the joined tables.

An individual's record is the multiset of its released known cells with their places; a class is the individuals with
one record. Where values are permuted it is the places alone, and a class is the individuals of a group with the same
ones. A table without known columns is one class of the individuals that have rows in it. Sensitive values count
as they leave, after treatments and dropped rows; NULL is a value, a row that is not there is none.
Cost: a few aggregations of the released rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duckdb_anon.database.plan import NAME, Plan, Table
from duckdb_anon.database.work import Work
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import RequirementError

Released = Mapping[str, Sequence[str]]
"""Released columns of each table."""


@dataclass(frozen=True)
class Counted:
    """What was counted of one table, or of the joined tables.

    Attributes:
        of: the table; 'the joined tables'.
        smallest: least number of individuals with one record; 0 where no row is released.
        value: largest share of one sensitive value among the individuals with one record: of those that have it in
            any of their rows; None where no sensitive value is released, or the plan has no l.
        column: the column of that value.
        list: largest share of one list of all sensitive values of an individual, likewise.
    """

    of: str
    smallest: int
    value: float | None
    column: str | None
    list: float | None

    def share(self, plan: Plan) -> float | None:
        """The share that l of a plan bounds."""
        return self.list if plan.l_counts == "lists" else self.value


def counted(work: Work, tables: Sequence[Table], released: Released) -> list[Counted]:
    """Count k and l of tables that join, and of each of them by itself; the joined ones come first."""
    alone = [] if len(tables) == 1 else [one for table in tables for one in counted(work, [table], released)]
    of = tables[0].name if len(tables) == 1 else "the joined tables"
    if work.plan.l is None:
        sizes = f"select count(*) as n from ({_records(work, tables, released)}) group by h"
        [(smallest,)] = work.con.execute(f"select coalesce(min(n), 0) from ({sizes})").fetchall()
        return [Counted(of, int(smallest), None, None, None), *alone]
    smallest, value, column, share = work.con.execute(
        f"{_with_shares(work, tables, released)}, "
        "worst as (select c, m / n as share from of_values join sizes using (h) order by share desc, c limit 1) "
        "select (select coalesce(min(n), 0) from sizes), (select share from worst), (select c from worst), "
        "(select max(m / n) from of_lists join sizes using (h))"
    ).fetchall()[0]
    return [Counted(of, int(smallest), value, column, None if value is None else share), *alone]


def make_alike(work: Work, tables: Sequence[Table], released: Released) -> int:
    """Fill table `alike` with the individuals of classes in which l does not hold, and return how many these are."""
    work.con.execute(
        f"create or replace table {work.space}.alike as {_with_shares(work, tables, released)}, "
        f"failed as (select distinct h from of_{work.plan.l_counts} join sizes using (h) "
        f"where m * {work.plan.l!r} > n * {1 + 1e-12!r}) select i from records semi join failed using (h)"
    )
    return int(work.con.execute(f"select count(*) from {work.space}.alike").fetchall()[0][0])


def _with_shares(work: Work, tables: Sequence[Table], released: Released) -> str:
    """WITH clause: records, sizes of classes, and numbers of individuals with each value and with each list."""
    text = "md5(string_agg(c || ':' || coalesce(v, chr(0)), chr(10) order by c, v))"
    return (
        f"with records as ({_records(work, tables, released)}), held as ({_held(work, tables, released)}), "
        "sizes as (select h, count(*) as n from records group by h), "
        "of_values as (select h, c, count(*) as m from records join held using (i) group by h, c, v), "
        f"lists as (select i, {text} as t from held group by i), "
        "of_lists as (select h, count(*) as m from records left join lists using (i) group by h, t)"
    )


def _records(work: Work, tables: Sequence[Table], released: Released) -> str:
    """SELECT of individuals `i` and what identifies the record `h` of each."""
    parts = []
    for number, table in enumerate(tables):
        known = [ident(info.name) for info in table.known if info.name in released[table.name]]
        known = ["_anon_c"] if known and work.plan.delta is not None else known
        place = [] if table is work.plan.individuals else ["_anon_s", "_anon_ps"]
        record = f"hash({', '.join([str(number), *place, *known])})" if known else "0"
        parts.append(
            f"select _anon_i as i, {record}::hugeint as h from {work.of(table, 'release')} "
            f"join {work.boxes} using (_anon_i)"
        )
    return f"select i, sum(h) as h from ({' union all '.join(parts)}) group by i"


def _held(work: Work, tables: Sequence[Table], released: Released) -> str:
    """SELECT of individuals `i`, sensitive columns `c` and their released values `v`, each once."""
    parts = [
        f"select distinct _anon_i as i, {literal(f'{table.name}.{info.name}')} as c, {ident(info.name)}::varchar as v "
        f"from {work.of(table, 'release')}"
        for table in tables
        for info in table.roles.sensitive
        if info.name in released[table.name]
    ]
    return " union all ".join(parts) or "select 0 as i, '' as c, '' as v where false"


def require_permuted(work: Work, tables: Sequence[Table]) -> None:
    """Refuse known columns whose released values are not those of the originals, in each place of each group."""
    for table in tables:
        sums = ", ".join(f"sum(hash({ident(info.name)})::hugeint)" for info in table.known)
        by_place = f"select _anon_c, _anon_s, count(*), {sums} from {{}} join {work.boxes} using (_anon_i) group by all"
        kept = f"(select _anon_s, o.* from {work.of(table, 'kept')} join {work.of(table)} as o using (_anon_n))"
        [(wrong,)] = work.con.execute(
            f"select count(*) from ({by_place.format(work.of(table, 'release'))} except {by_place.format(kept)})"
        ).fetchall()
        if wrong:
            raise RequirementError(
                f"{NAME}: {table.name}: released values of {wrong} places are not those of the group. Nothing is "
                "released. Report this as an error"
            )


def require_promise(plan: Plan, found: Sequence[Counted]) -> None:
    """Refuse a release that does not keep k and l, as counted."""
    for one in found:
        if 0 < one.smallest < plan.least:
            asked = f"k := {plan.k}" if plan.delta is None else f"delta := {plan.delta}"
            raise RequirementError(
                f"{NAME}: {one.of}: a released record is that of {one.smallest} individuals, and {asked} needs "
                f"{plan.least}. Leave the table out, or ask for less"
            )
        share = one.share(plan)
        if plan.l is not None and share is not None and share * plan.l > 1 + 1e-12:
            what = "a list of sensitive values" if plan.l_counts == "lists" else f"a value of {one.column}"
            raise RequirementError(
                f"{NAME}: {one.of}: {what} has the share {share:.4g} among individuals with one released record, "
                f"and l := {plan.l:g} allows {1 / plan.l:.4g}. The largest l that holds is {1 / share:.4g}; leave the "
                "column out, or treat it"
            )
