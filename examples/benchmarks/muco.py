"""How long muco takes, against the time of copying the same table, and what its release is worth.

    python examples/benchmarks/muco.py [census.csv] [--million]

Without a file the package's own sample is used. Prints whole-statement seconds (best of three), the ratio to a
plain CREATE TABLE AS, peak memory of the process, and for each delta query error beside measured disclosure.
"""

from __future__ import annotations

import argparse
import resource
import time

import duckdb

import duckdb_anon


def open_census(path: str | None) -> duckdb.DuckDBPyConnection:
    """A database with the labelled table census."""
    con = duckdb_anon.connect()
    if path:
        con.execute(f"create table census as select * exclude (OCC) from read_csv('{path}')")
        con.execute("alter table census rename column INCWAGE to salary")
    else:
        con.execute("create table census as from anon_sample('census', seed := 1)")
    for (column,) in con.execute("select column_name from duckdb_columns() where table_name = 'census'").fetchall():
        role = "sensitive" if column == "salary" else "quasi"
        con.execute(f"comment on column census.{column} is 'anon: {role}'")
    return con


def seconds(con: duckdb.DuckDBPyConnection, source: str, rounds: int = 3) -> float:
    """Best time of CREATE TABLE AS from `source`."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        con.execute(f"create or replace table release as from {source}")
        best = min(best, time.perf_counter() - start)
    return best


def speed(con: duckdb.DuckDBPyConnection, table: str, rounds: int) -> None:
    """Times of a few calls as ratios to a plain copy."""
    copy = seconds(con, table, rounds)
    print(f"{table}: plain copy {copy:.3f} s")
    for name, more in (
        ("default, delta 0.2", "0.2"),
        ("not repaired, delta 0.2", "0.2, repair := false"),
        ("the paper's tables, 1/6, l = 10", "1/6, l := 10, tables := 'linear'"),
    ):
        took = seconds(con, f"muco('{table}', {more})", rounds)
        print(f"  muco {name:32s} {took:7.3f} s   {took / copy:7.1f} x copy")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  peak memory of this process {peak:,.0f} MiB")


def worth(con: duckdb.DuckDBPyConnection) -> None:
    """Query error beside measured disclosure, l = 10."""
    nominal = con.execute(
        "select list(column_name) from duckdb_columns() where table_name = 'census' "
        "and column_name in ('RELATE', 'SEX', 'MARST', 'RACE', 'EDUC')"
    ).fetchone()
    categorical = f"categorical := {nominal[0]}," if nominal and nominal[0] else ""
    print("\nsetting  delta   error mean / median   loss   disclosure at 0.7, identity / attribute")
    for name, more in (("default", ""), ("paper", ", tables := 'linear'")):
        for d in (5, 6, 7, 8, 10):
            con.execute(f"create or replace table release as from muco('census', 1/{d}, l := 10{more}, row_id := true)")
            error = con.execute(
                "select avg(relative_error), median(relative_error) from workload_error('census', 'release', "
                f"aggregate := 'sum(salary)', style := 'half', selectivity := 0.5, {categorical} seed := 1)"
            ).fetchone()
            loss = con.execute(
                "select iloss from information_loss('census', 'release') where attribute = '(all)'"
            ).fetchone()
            risk = con.execute("select identity, attribute from disclosure('census', 'release')").fetchone()
            errors = f"{error[0]:.4f} / {error[1]:.4f}"
            print(f"{name:8s} 1/{d:<4d}  {errors}       {loss[0]:.4f}   {risk[0]:.4f} / {risk[1]:.4f}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("census", nargs="?", help="census.csv; default: the package's sample")
    parser.add_argument("--million", action="store_true", help="also a million rows, ages and hours jittered")
    given = parser.parse_args()
    con = open_census(given.census)
    speed(con, "census", 3)
    worth(con)
    if given.million:
        jitter = {"AGE", "UHRSWORK", "age", "hours_per_week"}
        columns = [r[0] for r in con.execute("describe census").fetchall()]
        select = ", ".join(
            f'"{c}" + (hash(i, {k}) % 5)::integer - 2 as "{c}"' if c in jitter else f'"{c}"'
            for k, c in enumerate(columns)
        )
        con.execute(
            f"create table million as select {select} "
            "from (select *, row_number() over () as i from census, range(25)) limit 1000000"
        )
        for column in columns:
            role = "sensitive" if column == "salary" else "quasi"
            con.execute(f"comment on column million.{column} is 'anon: {role}'")
        speed(con, "million", 1)


if __name__ == "__main__":
    main()
