"""How long merging, slicing and the methods beside them take, as whole statements.

Run: python examples/benchmarks/merging.py adult.csv [million]
Best of five on Adult; with `million`, once on a million rows (Adult repeated, ages jittered). The last lines
compare the diversity test of every record against every bucket with the local one that suffices after cuts
which keep equal values together.
"""

from __future__ import annotations

import resource
import sys
import time

import duckdb

import duckdb_anon

ROLES = "qi := ['age', 'sex', 'marital_status', 'workclass', 'relationship', 'income'], sensitive := 'occupation'"
CALLS = {
    "merging, l = 2": f"merging('people', 2, {ROLES})",
    "merging, l = 4": f"merging('people', 4, {ROLES})",
    "merging, l = 4, median cuts": f"merging('people', 4, cut := 'median', {ROLES})",
    "merging, l = 2, unseen pairs": f"merging('people', 2, unseen_pairs := true, {ROLES})",
    "slicing, l = 2": f"slicing('people', 2, sensitive_column := 'alone', {ROLES})",
    "composition, k = 4": f"composition('people', 4, {ROLES})",
    "probabilistic, k = 4": f"probabilistic('people', 4, {ROLES})",
    "hybrid, k = 4": f"hybrid('people', 4, {ROLES})",
    "laplace_on_groups, k = 4": f"laplace_on_groups('people', 4, 0.3, {ROLES})",
    "diffgen, 10 rounds": f"diffgen('people', 1.0, domain := 'observed', {ROLES})",
}


def seconds(con: duckdb.DuckDBPyConnection, call: str, repeat: int) -> float:
    """Smallest time of several runs of a whole statement."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        con.execute(f"create or replace temp table r as from {call}")
        times.append(time.perf_counter() - start)
    return min(times)


def measure(con: duckdb.DuckDBPyConnection, repeat: int) -> None:
    """Print the time of each call and its ratio to writing the table once."""
    start = time.perf_counter()
    con.execute("create or replace temp table r as from people")
    plain = time.perf_counter() - start
    for name, call in CALLS.items():
        taken = seconds(con, call, repeat)
        print(f"{name:34} {taken:7.2f} s  ({taken / plain:6.0f} times CREATE TABLE AS)")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def main() -> None:
    """Time everything on Adult, and on a million rows when asked."""
    con = duckdb_anon.connect()
    con.execute("create table people as from read_csv(?)", [sys.argv[1] if len(sys.argv) > 1 else "adult.csv"])
    measure(con, 5)
    if "million" in sys.argv[2:]:
        con.execute(
            """create or replace table people as select * replace (age + (random() * 5)::int - 2 as age) from people,
            range(31) limit 1000000"""
        )
        measure(con, 1)


if __name__ == "__main__":
    main()
