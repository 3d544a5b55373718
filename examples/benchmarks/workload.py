"""How long a thousand queries take on releases of each shape, against one pass over the original.

    python examples/benchmarks/workload.py [census.csv] [--million]

Without a file the package's own sample is used. Prints seconds of workload_error (1,000 queries, both answers,
planning and coding included), the same per query, the ratio to answering the queries one by one on the
original with DuckDB, and the errors found: MuCo's workload of SUM queries (Li et al. 2020, section 5.3).
"""

from __future__ import annotations

import argparse
import time

import duckdb

import duckdb_anon

QI = ("RELATE", "SEX", "AGE", "MARST", "RACE", "EDUC", "UHRSWORK")
NAMES = ("RELATE", "SEX", "MARST", "RACE", "EDUC")
SAMPLE = {
    "gender": "SEX",
    "age": "AGE",
    "relationship": "RELATE",
    "marital_status": "MARST",
    "race": "RACE",
    "education": "EDUC",
    "hours_per_week": "UHRSWORK",
    "salary": "INCWAGE",
}
RELEASES = {
    "rows (muco)": "muco('census', 0.2, l := 10, seed := 1)",
    "boxes (mondrian, l = 10)": "mondrian('census', l := 10, width := 'spread', seed := 1)",
    "buckets (anatomy, l = 10)": "anatomy('census', 10, seed := 1)",
    "sliced (two columns)": "slicing('census', 5, columns := [['AGE', 'SEX', 'RACE'], "
    "['RELATE', 'MARST', 'EDUC', 'UHRSWORK']], seed := 1)",
}
WORKLOAD = (
    "style := 'half', selectivity := 0.5, dims := 4, aggregate := 'sum(INCWAGE)', seed := 7, "
    f"categorical := {list(NAMES)}"
)


def open_census(path: str | None, million: bool) -> duckdb.DuckDBPyConnection:
    """A database with the labelled table census, 25 times over with jitter for a million rows."""
    con = duckdb_anon.connect()
    source = f"read_csv('{path}')" if path else "anon_sample('census', seed := 1)"
    con.execute(f"create table census as from {source}")
    if not path:
        for ours, name in SAMPLE.items():
            con.execute(f"alter table census rename column {ours} to {name}")
    if million:
        con.execute("select setseed(0.5)")
        con.execute(
            "create or replace table census as select * replace ((AGE + floor(random() * 5) - 2)::bigint as AGE, "
            "(UHRSWORK + floor(random() * 5) - 2)::bigint as UHRSWORK) from census, range(25)"
        )
    for column in QI:
        con.execute(f"comment on column census.{column} is 'anon: quasi'")
    con.execute("comment on column census.INCWAGE is 'anon: sensitive'")
    return con


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("census", nargs="?")
    parser.add_argument("--million", action="store_true")
    arguments = parser.parse_args()
    con = open_census(arguments.census, arguments.million)
    rows = con.execute("select count(*) from census").fetchall()[0][0]
    queries = [q for (q,) in con.execute(f"select query from workload('census', {WORKLOAD}) limit 100").fetchall()]
    start = time.perf_counter()
    for query in queries:
        con.execute(query).fetchall()
    one_by_one = (time.perf_counter() - start) * 10
    print(f"{rows} rows; 1,000 queries one by one on the original alone: {one_by_one:.1f} s")
    print(f"{'release':28} {'seconds':>8} {'ms a query':>11} {'ratio':>6} {'mean error':>11} {'median':>8}")
    for name, source in RELEASES.items():
        con.execute(f"create or replace table release as from {source}")
        best, answer = float("inf"), (0.0, 0.0)
        for _ in range(1 if arguments.million else 3):
            start = time.perf_counter()
            answer = con.execute(
                "select avg(relative_error), median(relative_error) "
                f"from workload_error('census', 'release', {WORKLOAD})"
            ).fetchall()[0]
            best = min(best, time.perf_counter() - start)
        print(f"{name:28} {best:8.2f} {best:11.2f} {best / one_by_one:6.2f} {answer[0]:11.4f} {answer[1]:8.4f}")


if __name__ == "__main__":
    main()
