"""Do intervals by replay hold the truth? Seven methods on four tables, asked with `bounds := 'likely'`.

For each table and method: COUNT, SUM and AVG under one to four predicates, and twenty queries that have no closed form
on most releases (windows, distinct counts, quantiles, top lists, nested groups). Answers with hard bounds are left out;
those of generalized releases are imputed. Printed are how many intervals there are, the share of them that holds the
truth, the median of half their width over the truth, and the seconds that the replay and a later query took.

    python examples/studies/replay.py FOLDER [TABLE] [METHOD]     # with census.csv, adult.csv and visits.csv
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import plausible
from plausible import Table

import duckdb_anon

ROWS, CONDITIONS, SHOWN = 5_000, 16, 12
CALLS = {
    "mondrian": "mondrian('{}', 10)",
    "incognito": "incognito('{}', 10)",
    "anatomy": "anatomy('{}', {})",
    "slicing": "slicing('{}', {}, sensitive_column := 'alone')",
    "muco": "muco('{}', 0.1)",
    "microaggregate": "microaggregate('{}', 10)",
    "rank_swap": "rank_swap('{}', 5)",
}
GENERALIZED = ("mondrian", "incognito")
SYNTHETIC = Table(
    "synthetic",
    """select age, region, ['none', 'primary', 'secondary', 'tertiary'][1 + least(3, (age // 20 + region % 3) // 2)]
      as school, ['day', 'night', 'both'][1 + (hash(i, 5) % 5 + age // 30)::integer % 3] as shift,
      round(200 * exp(region / 9 + (hash(i, 3) % 1000) / 400))::integer as pay from (
      select i, 18 + (hash(i, 1) % 40 + hash(i, 4) % 30)::integer as age, (sqrt(hash(i, 2) % 144))::integer as region
      from range(20000) as r(i))""",
    ("age", "region", "school", "shift"),
    "pay",
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


def odd_queries(table: Table) -> list[str]:
    """The odd queries over two quasi-identifiers, the second of them a number, and the sensitive column."""
    columns = {"census": ("MARST", "AGE"), "adult": ("marital_status", "age"), "patients": ("race", "education")}
    first, second = columns.get(table.name, ("school", "age"))
    return [query.format(a=first, b=second, x=table.target, t=table.name, shown=SHOWN) for query in ODD]


def intervals(con: duckdb.DuckDBPyConnection, table: Table, query: str, engine: str) -> list[tuple[bool, float]]:
    """Of each interval of an answer: whether it holds the truth, and half its width over the truth."""
    rows = con.execute(
        "select original, low, high from relative_error($1, $2, 'released', bounds := 'likely', engine := $3) "
        "where confidence < 1 and original is not null",
        [query, table.name, engine],
    ).fetchall()
    return [
        (low - 1e-9 * abs(low) <= truth <= high + 1e-9 * abs(high), (high - low) / 2 / abs(truth) if truth else 0.0)
        for truth, low, high in rows
    ]


def made(con: duckdb.DuckDBPyConnection, folder: Path, table: Table) -> None:
    """Make a table of `ROWS` of its rows."""
    select = table.select.format(folder)
    con.execute(
        f"create or replace table {table.name} as select * exclude (place) from (select *, row_number() over () as "
        f"place from ({select})) as r order by hash(place) limit {ROWS}"
    )
    for column in table.qi:
        con.execute(f"comment on column {table.name}.{column} is 'anon: quasi'")
    con.execute(f"comment on column {table.name}.{table.target} is 'anon: sensitive'")


def line(name: str, found: list[tuple[bool, float]], seconds: str) -> None:
    covered = np.mean([holds for holds, _ in found]) if found else float("nan")
    width = np.median([half for _, half in found]) if found else float("nan")
    print(f"| {name} | {len(found)} | {covered:.3f} | {width:.3f} | {seconds} |", flush=True)


def study(con: duckdb.DuckDBPyConnection, table: Table, method: str) -> None:
    """Print what came out for one method on one table."""
    call = CALLS[method].format(table.name, DIVERSITY.get(table.name, table.diversity))
    try:
        duckdb_anon.release(con, "released", call, replace=True, independent=True)
    except duckdb_anon.AnonError as error:
        print(f"| {table.name}, {method}: {str(error)[:200]} | 0 | | | |", flush=True)
        return
    aggregates = f"count(*) as n, sum({table.target}) as s, avg({table.target}) as m"
    began, first = time.perf_counter(), 0.0
    plain: list[tuple[bool, float]] = []
    for where, _ in plausible.predicates(con, table, CONDITIONS):
        query = f"select {aggregates} from {table.name} where {where}"
        plain += intervals(con, table, query, "imputed" if method in GENERALIZED else "auto")
        first = first or time.perf_counter() - began
    later = (time.perf_counter() - began - first) / (CONDITIONS - 1)
    line(f"{table.name}, {method}: COUNT, SUM, AVG", plain, f"{first:.1f} / {later:.2f}")
    odd: list[tuple[bool, float]] = []
    for query in odd_queries(table):
        try:
            odd += intervals(con, table, query, "auto")
        except duckdb.Error as error:
            print(f"    refused: {query}: {str(error).splitlines()[0][:160]}", flush=True)
    line(f"{table.name}, {method}: odd queries", odd, "")


def main(folder: Path, only: str = "", method: str = "") -> None:
    con = duckdb_anon.connect()
    print("| | intervals | hold | half width | first / later query, s |\n|---|---|---|---|---|")
    for table in (*plausible.TABLES, SYNTHETIC):
        if only in ("", "all", table.name):
            made(con, folder, table)
            for name in CALLS:
                if method in ("", name):
                    study(con, table, name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:4])
