"""How long 1:M-generalization takes and what it loses, beside the authors' published code.

Run: python examples/benchmarks/one_to_m.py [folder with visits.csv] [million]
Whole statements on all visits, the best of five; with `million`, also one million persons: visits drawn again
with other incomes. The authors' figures were taken once on a two-core machine; only the ratios mean something.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import duckdb

import duckdb_anon

ROLES = (
    "qi := ['month_of_birth', 'year_of_birth', 'race', 'years_of_education', 'income'], sensitive := 'diagnosis', "
    "person := 'person_id', hierarchies := {'diagnosis': 'icd'}"
)
PEER = {10: (4.3, 8.60, 10.79), 100: (7.8, 8.84, 16.11)}


def statement(con: duckdb.DuckDBPyConnection, table: str, k: int, repeat: int) -> float:
    """Smallest time of several runs of a whole release, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        con.execute(
            "create or replace temp table r as from "
            f"one_to_m_generalize('{table}', {k}, 5, diversity := 'distinct', row_id := true, {ROLES})"
        )
        times.append(time.perf_counter() - start)
    return min(times)


def number(con: duckdb.DuckDBPyConnection, query: str) -> float:
    """The one number a query returns."""
    row = con.execute(query).fetchone()
    if row is None:
        raise RuntimeError(query)
    return float(row[0])


def main() -> None:
    """Print seconds and losses, and their ratios to the peer's."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    con = duckdb_anon.connect()
    con.execute(f"create table visits as from read_csv('{folder / 'visits.csv'}', types = {{'diagnosis': 'VARCHAR'}})")
    con.execute(f"create table icd as from read_csv('{folder / 'diagnosis_hierarchy.csv'}', all_varchar = true)")
    for k, (seconds, qid, lost) in PEER.items():
        mine = statement(con, "visits", k, 5)
        con.execute("create or replace table measured as from r")
        ncp = number(con, f"select ncp from information_loss('visits', 'measured', {ROLES}) where attribute = '(all)'")
        items = number(con, f"select sa_ncp from sa_ncp('visits', 'measured', {ROLES})")
        print(
            f"k = {k:<4} {mine:6.2f} s, {seconds / mine:4.1f} times as fast   QID-NCP {100 * ncp:5.2f}% "
            f"({100 * ncp / qid:.2f} of theirs)   SA-NCP {100 * items:5.2f}% ({100 * items / lost:.3f} of theirs)"
        )
    if "million" in sys.argv:
        con.execute(
            "create table many as select * replace (person_id || '-' || i as person_id, greatest(0, income + "
            "(hash(person_id, i) % 2001)::integer - 1000) as income) from visits, range(18) as t(i) "
            "where hash(person_id || '-' || i) % 1054224 < 1000000"
        )
        persons = number(con, "select count(distinct person_id) from many")
        rows = number(con, "select count(*) from many")
        spent = statement(con, "many", 10, 1)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{persons:.0f} persons, {rows:.0f} rows: {spent:.1f} s, {memory:.1f} GiB at most in this process")


if __name__ == "__main__":
    main()
