"""Do intervals hold the truth? Eight methods on nine tables, asked with `bounds := 'likely'`.

For each table and method: COUNT, SUM and AVG under one to three predicates, and twenty queries that have no closed form
on most releases (windows, distinct counts, quantiles, top lists, nested groups). Answers with hard bounds are left out;
those of generalized releases are imputed. Printed are, by kind of measure, how many intervals there are, the confidence
that they state, the share of them that holds the truth, the factor by which .8 of them would hold it, and the median of
half their width over the truth. A factor of `measures/queries/replay.py` is at least 1.5 times what a table of
`CALIBRATION` needs, in halves; the tables of `KEPT_BACK` say what it covers elsewhere. Those of `UNUSED` were measured
when all factors stood: HI and OFP of R's Ecdat, and diamonds of ggplot2.

    python examples/studies/replay.py FOLDER TABLES [METHODS]     # hours,elderly,diamonds mondrian,muco
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import plausible
import sqlglot
from plausible import Table

import duckdb_anon
from duckdb_anon.rewrite.replay import kind_of

ROWS, CONDITIONS, SHOWN = 3_000, 12, 12
CALLS = {
    "mondrian": "mondrian('{}', 10)",
    "incognito": "incognito('{}', 10)",
    "anatomy": "anatomy('{}', {})",
    "slicing": "slicing('{}', {}, sensitive_column := 'alone')",
    "muco": "muco('{}', 0.1)",
    "microaggregate": "microaggregate('{}', 10)",
    "rank_swap": "rank_swap('{}', 5)",
    "rr_distort": "rr_distort('{}', p := 0.8, scope := 'both')",
}
GENERALIZED = ("mondrian", "incognito")
CALIBRATION, KEPT_BACK = ("made", "patients", "workers"), ("census", "adult", "randhie")
UNUSED = ("hours", "elderly", "diamonds")
COVERED = 0.8
RANDHIE = Table(
    "randhie",  # comes with statsmodels: randhie.load_pandas().data.to_csv(FOLDER / "randhie.csv")
    "select round(lncoins, 2) as coins, idp, round(fmde, 1) as fmde, disea::integer as school, hlthg, mdvis "
    "from read_csv('{}/randhie.csv')",
    ("coins", "idp", "fmde", "school", "hlthg"),
    "mdvis",
    2,
)
HOURS = Table(
    "hours",
    "select education, race, experience, region, kidslt6 + kids618 as children, (husby // 2)::integer as husband, "
    "whrswk from read_csv('{}/HI.csv')",
    ("education", "race", "experience", "region", "children", "husband"),
    "whrswk",
    2,
)
ELDERLY = Table(
    "elderly",
    "select round(age * 10)::integer as age, sex, school, numchron, hlth, region, ofp as visits "
    "from read_csv('{}/OFP.csv')",
    ("age", "sex", "school", "numchron", "hlth", "region"),
    "visits",
    2,
)
DIAMONDS = Table(
    "diamonds",
    'select round(carat, 1) as carat, cut, color, clarity, round("table")::integer as facet, price '
    "from read_csv('{}/diamonds.csv')",
    ("carat", "cut", "color", "clarity", "facet"),
    "price",
)
DIVERSITY = {"patients": 3}
"""Where a third of the rows have no income."""
ODD = (
    "select count(distinct {a}) as n from {t}",
    "select count(distinct {a}) as n from {t} where {b} > (select avg({b}) from {t})",
    "select {a}, count(distinct {b}) as n from {t} group by {a} order by 2 desc, 1 limit {shown}",
    "select median({x}) as m from {t}",
    "select {a}, median({x}) as m from {t} group by {a} order by count(*) desc, {a} limit {shown}",
    "select quantile_cont({x}, 0.9) as q from {t} where {b} > (select avg({b}) from {t})",
    "select stddev({x}) as s, corr({x}, {b}) as c from {t}",
    "select {a}, count(*) as n from {t} group by {a} order by n desc, {a} limit {shown}",
    "select {a}, {b}, sum({x}) as s from {t} group by {a}, {b} order by count(*) desc, {a}, {b} limit {shown}",
    "select {a}, count(*) as n, rank() over (order by count(*) desc) as place from {t} group by {a} "
    "order by n desc, {a} limit {shown}",
    "select {a}, sum(count(*)) over (order by {a}) as running from {t} group by {a} order by {a} limit {shown}",
    "select {a}, count(*) / sum(count(*)) over () as share from {t} group by {a} order by 2 desc, {a} limit {shown}",
    "select {b}, avg({x}) - lag(avg({x})) over (order by {b}) as step from {t} group by {b} order by {b} limit {shown}",
    "select avg(n) as m from (select {a}, {b}, count(*) as n from {t} group by {a}, {b})",
    "select max(m) as most from (select {a}, avg({x}) as m from {t} group by {a} having count(*) > 100)",
    "select count(*) as groups from (select {a}, {b} from {t} group by {a}, {b} having count(*) >= 20)",
    "select count(*) as n from {t} as o where {x} > (select avg({x}) from {t} as i where i.{b} = o.{b})",
    "select {a}, avg({x}) as m from {t} where {b} >= (select median({b}) from {t}) group by {a} "
    "order by count(*) desc, {a} limit {shown}",
    "select count(*) as n from {t} where {b} in (select {b} from {t} group by {b} order by count(*) desc limit 5)",
    "select sum(n) as top from (select {a}, {b}, count(*) as n from {t} group by {a}, {b} order by n desc limit 10)",
)


class Interval(NamedTuple):
    """An interval: its measure's kind, its confidence, whether it holds the truth, the factor it needs, its width."""

    kind: str
    stated: float
    holds: bool
    needed: float
    width: float


def odd_queries(table: Table) -> list[str]:
    """The odd queries over two quasi-identifiers, the second of them a number, and the sensitive column."""
    columns = {
        "census": ("MARST", "AGE"), "adult": ("marital_status", "age"), "patients": ("race", "education"),
        "workers": ("relationship", "age"), "randhie": ("school", "coins"), "hours": ("education", "experience"),
        "elderly": ("numchron", "school"), "diamonds": ("clarity", "carat"),
    }  # fmt: skip
    first, second = columns.get(table.name, ("school", "age"))
    return [query.format(a=first, b=second, x=table.target, t=table.name, shown=SHOWN) for query in ODD]


def intervals(con: duckdb.DuckDBPyConnection, table: Table, query: str, engine: str) -> list[Interval]:
    """The intervals of an answer, with the kind of its measure."""
    kinds = {str(one.alias_or_name): kind_of(one.unalias()) for one in sqlglot.parse_one(query, "duckdb").selects}
    rows = con.execute(
        "select measure, original, estimate, low, high, confidence from relative_error($1, $2, 'released', "
        "bounds := 'likely', engine := $3) where confidence < 1 and original is not null",
        [query, table.name, engine],
    ).fetchall()
    found = []
    for measure, truth, estimate, low, high, stated in rows:
        half = (high - low) / 2
        needed = 0.0 if low - 1e-9 * abs(low) <= truth <= high + 1e-9 * abs(high) else np.inf
        needed = abs(truth - estimate) / half if half > 0 else needed
        holds = low <= truth <= high or not needed
        found.append(Interval(kinds[measure], stated, holds, needed, half / abs(truth or np.nan)))
    return found


def lines(name: str, found: list[Interval]) -> None:
    """Print what came out, kind by kind."""
    for kind in sorted({one.kind for one in found}):
        these = [one for one in found if one.kind == kind]
        factor, width = np.quantile([one.needed for one in these], COVERED), np.nanmedian([one.width for one in these])
        covered = np.mean([one.holds for one in these])
        stated = max(one.stated for one in these)
        print(
            f"| {name}: {kind} | {len(these)} | {stated:.2f} | {covered:.3f} | {factor:.2f} | {width:.3f} |", flush=True
        )


def study(con: duckdb.DuckDBPyConnection, table: Table, method: str) -> list[Interval]:
    """The intervals of one method on one table."""
    call = CALLS[method].format(table.name, DIVERSITY.get(table.name, table.diversity))
    try:
        duckdb_anon.release(con, "released", call, replace=True, independent=True)
    except duckdb_anon.AnonError as error:
        print(f"    {table.name}, {method}: {str(error)[:200]}", flush=True)
        return []
    aggregates = f"count(*) as n, sum({table.target}) as s, avg({table.target}) as m"
    wheres = plausible.predicates(con, table, CONDITIONS)
    engine = "imputed" if method in GENERALIZED else "auto"
    asked = [(f"select {aggregates} from {table.name} where {where}", engine) for where in wheres]
    found = []
    for query, chosen in [*asked, *((query, "auto") for query in odd_queries(table))]:
        try:
            found += intervals(con, table, query, chosen)
        except duckdb.Error as error:
            print(f"    refused: {query}: {str(error).splitlines()[0][:160]}", flush=True)
    return found


def main(folder: Path, tables: str = ",".join(KEPT_BACK), methods: str = ",".join(CALLS)) -> None:
    """Ask the tables, and print each and all of a method together."""
    con = duckdb_anon.connect()
    print("| | intervals | stated | hold | factor for .8 | half width |\n|---|---|---|---|---|---|")
    every = {table.name: table for table in (*plausible.TABLES, RANDHIE, HOURS, ELDERLY, DIAMONDS)}
    together: dict[str, list[Interval]] = {}
    for name in tables.split(","):
        plausible.made(con, folder, every[name], ROWS)
        for method in methods.split(","):
            found = study(con, every[name], method)
            lines(f"{name}, {method}", found)
            together.setdefault(method, []).extend(found)
    for method, found in together.items():
        lines(f"all, {method}", found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:4])
