"""Time randomized response: distorting many rows, finding p, estimating a cube of seven attributes.

Prints seconds and, where there is a plain SQL counterpart, the ratio to it, and the peak memory so far. Run from a
checkout:
`python examples/benchmarks/randomized_response.py [path of adult.csv]`.
"""

from __future__ import annotations

import resource
import sys
import time

import duckdb

import duckdb_anon

ROWS, ATTRIBUTES, RUNS = 1_000_000, 8, 3


def best(con: duckdb.DuckDBPyConnection, query: str) -> float:
    """Return the least seconds of some runs."""
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        con.execute(query)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def peak() -> str:
    """Return the most memory the process has had."""
    return f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"


def wide_domain(con: duckdb.DuckDBPyConnection) -> None:
    """Distort a large table with an attribute of thousands of values."""
    wages = "(1000 * exp(4 * (hash(i, 1) % 3000)::double / 3000))::integer as wage"
    con.execute(f"create or replace table wages as select {wages}, hash(i) % 60 as age from range({ROWS}) t(i)")
    domain = con.execute("select count(distinct wage) from wages").fetchone()
    seconds = best(con, "create or replace table released as from rr_distort('wages', p := 0.8, qi := ['wage', 'age'])")
    print(f"{ROWS:,} rows, a domain of {domain[0]:,} values: {seconds:.2f} s, {peak()}")


def distortion(con: duckdb.DuckDBPyConnection) -> None:
    """Distort a large table of eight attributes."""
    columns = ", ".join(f"(hash(i * {k + 1}) % {4 + 3 * k})::integer as a{k}" for k in range(ATTRIBUTES))
    con.execute(f"create or replace table big as select {columns}, i as cost from range({ROWS}) t(i)")
    names = ", ".join(f"'a{k}'" for k in range(ATTRIBUTES))
    call = f"rr_distort('big', p := 0.8, qi := [{names}], categorical := [{names}], keep := ['cost'])"
    plain = best(con, "create or replace table copied as from big")
    seconds = best(con, f"create or replace table released as from {call}")
    print(f"{ROWS:,} rows x {ATTRIBUTES} attributes distorted: {seconds:.2f} s, {seconds / plain:.1f} copies, {peak()}")


def parameters(con: duckdb.DuckDBPyConnection, path: str) -> None:
    """Find p on a real table, from hundreds to a million QI cells."""
    con.execute(f"create or replace table adult as select * from read_csv('{path}') where columns(*) is not null")
    qi = ["education", "income", "sex", "race"]
    for more in ([], ["marital_status", "relationship"], ["marital_status", "relationship", "workclass"]):
        roles = f"qi := {qi + more}, sensitive := 'occupation'"
        start = time.perf_counter()
        found = con.execute(f"from rr_parameters('adult', l := 3, {roles})").fetchall()
        cells = 1
        for _, size, *_ in found[:-1]:
            cells *= size
        print(f"p for {len(qi + more)} QI, {cells:,} cells: {time.perf_counter() - start:.2f} s")


def cube(con: duckdb.DuckDBPyConnection) -> None:
    """Estimate all cells of a cube of seven attributes: alone, and beside the original with intervals."""
    qi = ["education", "income", "sex", "race", "marital_status", "relationship"]
    names = ", ".join([*qi, "occupation"])
    query = f"select {names}, count(*) from adult group by cube({names})"
    con.execute(
        f"create or replace table r as from rr_distort('adult', p := 0.9, qi := {qi}, sensitive := 'occupation')"
    )
    text, *_ = con.execute("select rewrite_query(?, 'adult', 'r')", [query]).fetchone()
    alone = best(con, f"create or replace table cells as {text}")
    compared = best(con, f"create or replace table cells as from relative_error('{query}', 'adult', 'r')")
    count = con.execute("select count(low) from cells").fetchone()
    both = f"beside the original, with {count[0]:,} intervals: {compared:.2f} s"
    print(f"cube of 7 attributes: {alone:.2f} s; {both}, {peak()}")


if __name__ == "__main__":
    connection = duckdb_anon.connect()
    distortion(connection)
    wide_domain(connection)
    if len(sys.argv) > 1:
        parameters(connection, sys.argv[1])
        cube(connection)
