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
import numpy as np

import duckdb_anon
from duckdb_anon.kernels.partition import FrequencyDiversity, partition
from duckdb_anon.kernels.slicing.record_linkage_bound import plain_shares, record_association
from duckdb_anon.model.coded_table import Attribute

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


def attribute(name: str, values: np.ndarray) -> Attribute:
    """A column of the benchmark as codes."""
    distinct, first, codes = np.unique(values, return_index=True, return_inverse=True)
    places = np.arange(len(distinct), dtype=float)
    return Attribute(name, "ordered", codes.astype(np.int32), places, len(distinct), -1, first.astype(np.int64))


def diversity_tests(con: duckdb.DuckDBPyConnection) -> None:
    """Time the general test and the local one on the same buckets, and print whether they agree."""
    names = ("age", "sex", "relationship", "workclass", "occupation")
    columns = con.execute("select coalesce(columns(*), '') from (select " + ", ".join(
        f"{n}::varchar as {n}" for n in names) + " from people)").fetchnumpy()  # fmt: skip
    coded = {name: attribute(name, np.asarray(columns[name], dtype=str)) for name in names}
    sensitive = coded["occupation"].codes.astype(np.int64)
    bucket = partition(tuple(coded[n] for n in names[:4]), sensitive.astype(np.int32), FrequencyDiversity(2.0))
    pair = coded["age"].codes.astype(np.int64) * 100 + coded["sex"].codes
    other = coded["relationship"].codes.astype(np.int64) * 100 + coded["workclass"].codes
    parts = [np.unique(p, return_inverse=True)[1] for p in (pair, other)] + [np.zeros(len(bucket), dtype=np.int64)]
    start = time.perf_counter()
    general = record_association(plain_shares(parts, sensitive, bucket), parts).max()
    middle = time.perf_counter()
    cell, count = np.unique(bucket * (sensitive.max() + 1) + sensitive, return_counts=True)
    local = (count / np.bincount(bucket)[cell // (sensitive.max() + 1)]).max()
    end = time.perf_counter()
    print(
        f"diversity of {bucket.max() + 1} buckets: every record against every bucket {middle - start:.3f} s, "
        f"locally {end - middle:.3f} s ({(middle - start) / (end - middle):.0f} times), "
        f"equal: {abs(general - local) < 1e-12}"
    )


def main() -> None:
    """Time everything on Adult, and on a million rows when asked."""
    con = duckdb_anon.connect()
    con.execute("create table people as from read_csv(?)", [sys.argv[1] if len(sys.argv) > 1 else "adult.csv"])
    measure(con, 5)
    diversity_tests(con)
    if "million" in sys.argv[2:]:
        con.execute(
            """create or replace table people as select * replace (age + (random() * 5)::int - 2 as age) from people,
            range(31) limit 1000000"""
        )
        measure(con, 1)
        diversity_tests(con)


if __name__ == "__main__":
    main()
