"""Section 5 of Gong, Luo, Yang, Ni & Li (2017) again: what 1:M-generalization and RMR lose, and how long they take.

Run: python examples/studies/one_to_m.py [folder with visits.csv] [output folder] [persons for RMR, default 10000]
Prints three tables (varying k, l and the number of persons), compares each with what the paper says, writes a
plot a table, and prints a lower bound: no k-anonymous generalization of the fingerprints along this hierarchy, by
whatever algorithm, has a smaller SA-NCP. Means over three samples of persons; times under whatever load there is.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import duckdb
import matplotlib
import numpy as np

import duckdb_anon
from duckdb_anon.engine.transport.column_coding import code_column
from duckdb_anon.kernels.set_valued.partition_top_down import pairs_below
from duckdb_anon.kernels.set_valued.person_sets import Persons, fingerprints_of
from duckdb_anon.model.hierarchy import Hierarchy

matplotlib.use("Agg")
import matplotlib.pyplot as plt

QI = "['month_of_birth', 'year_of_birth', 'race', 'years_of_education', 'income']"
ROLES = f"qi := {QI}, sensitive := 'diagnosis', person := 'person_id', hierarchies := {{'diagnosis': 'icd'}}"
SAMPLES = 3
COLUMNS = ("QID-NCP %", "SA-NCP %", "seconds")
Row = dict[str, float]


def load(folder: Path) -> duckdb.DuckDBPyConnection:
    """Read the visits and their hierarchy."""
    con = duckdb_anon.connect()
    con.execute(f"create table visits as from read_csv('{folder / 'visits.csv'}', types = {{'diagnosis': 'VARCHAR'}})")
    con.execute(f"create table icd as from read_csv('{folder / 'diagnosis_hierarchy.csv'}', all_varchar = true)")
    return con


def sample(con: duckdb.DuckDBPyConnection, persons: int, number: int) -> None:
    """Make `part`, the visits of that many persons; another number, other persons."""
    chosen = f"select person_id from visits group by person_id order by hash(person_id || '-{number}') limit {persons}"
    con.execute(f"create or replace table part as select * from visits semi join ({chosen}) using (person_id)")


def measured(con: duckdb.DuckDBPyConnection, call: str) -> Row:
    """Release `part` and measure it; QID-NCP and SA-NCP in percent."""
    start = time.perf_counter()
    con.execute(f"create or replace table r as from {call}")
    seconds = time.perf_counter() - start
    qid = con.execute(f"select ncp from information_loss('part', 'r', {ROLES}) where attribute = '(all)'").fetchone()
    lost = con.execute(f"select sa_ncp from sa_ncp('part', 'r', {ROLES})").fetchone()
    if qid is None or lost is None:
        raise RuntimeError("a measure returned no row")
    return {"QID-NCP %": 100 * qid[0], "SA-NCP %": 100 * lost[0], "seconds": seconds}


def averaged(con: duckdb.DuckDBPyConnection, calls: dict[str, str], persons: int) -> dict[str, Row]:
    """Mean of each method over the samples; a method that cannot meet its constraint is left out."""
    found: dict[str, list[Row]] = {name: [] for name in calls}
    for number in range(SAMPLES):
        sample(con, persons, number)
        for name, call in calls.items():
            try:
                found[name].append(measured(con, call))
            except duckdb.Error as error:
                print(f"  {name}, {persons} persons: {error}")
    return {
        name: {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        for name, rows in found.items()
        if rows
    }


def ours(k: int, l: float, diversity: str = "frequency") -> str:  # noqa: E741
    """Call of 1:M-generalization on `part`."""
    return f"one_to_m_generalize('part', {k}, {l}, diversity := '{diversity}', row_id := true, seed := 1, {ROLES})"


def theirs(k: int) -> str:
    """Call of RMR on `part`."""
    return f"rmr('part', {k}, m := 2, max_qid_ncp := 0.65, row_id := true, seed := 1, {ROLES})"


def show(title: str, label: str, results: dict[float, dict[str, Row]], output: Path, name: str) -> None:
    """Print a table and plot its three columns against the varied parameter."""
    print(f"\n{title}\n{label:>8}  {'method':<14}{'QID-NCP %':>11}{'SA-NCP %':>11}{'seconds':>10}")
    for value, methods in results.items():
        for method, row in methods.items():
            print(f"{value:>8}  {method:<14}{row['QID-NCP %']:>11.2f}{row['SA-NCP %']:>11.2f}{row['seconds']:>10.2f}")
    first, last = min(results), max(results)
    for method in results[first]:
        if method in results[last]:
            changes = (f"{c} {results[first][method][c]:.2f} -> {results[last][method][c]:.2f}" for c in COLUMNS)
            print(f"  from {label} = {first} to {last}, {method}: {', '.join(changes)}")
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.5))
    for axis, column in zip(axes, COLUMNS, strict=True):
        for method in dict.fromkeys(m for methods in results.values() for m in methods):
            points = [(value, methods[method][column]) for value, methods in results.items() if method in methods]
            axis.plot(*zip(*points, strict=True), marker="o", label=method)
        axis.set_xlabel(label)
        axis.set_title(column)
        axis.set_ylim(bottom=0)
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(output / f"{name}.png", dpi=120)
    plt.close(figure)


def persons_of(con: duckdb.DuckDBPyConnection) -> Persons:
    """Fingerprints of all persons, as the kernel sees them."""
    rows = con.sql("select person_id, diagnosis from visits").to_arrow_table()
    paths = tuple(sorted(tuple(reversed(row)) for row in con.execute("from icd").fetchall()))
    diagnosis = code_column("study", "diagnosis", rows["diagnosis"], "hierarchy", Hierarchy.of_paths(paths, "icd"))
    return fingerprints_of(code_column("study", "person_id", rows["person_id"], "").codes, [diagnosis])


def lower_bound(persons: Persons, k: int) -> float:
    """Return a value below the SA-NCP of every k-anonymous set of fingerprints.

    Every published set of nodes is one that at least k persons could be published as. All such sets are listed (a
    set is only shared if the coarser ones are), and each person gets its best, as if nobody else wanted it.
    """
    forest, nodes = persons.forest, len(persons.forest.labels)
    owner = persons.person_of_entry.astype(np.int32)
    keys, words, gains, first = [], [], [], []
    for depth in range(len(forest.path) - 1):
        node = forest.path[depth][persons.items]
        pairs = pairs_below(persons, owner, node, np.flatnonzero(forest.depth[node] == depth))
        keys.append(pairs.person.astype(np.int64) * nodes + node[pairs.first])
        words.append(pairs.word)
        gains.append(pairs.gain)
        first.append(np.stack([pairs.first, pairs.first + pairs.width], axis=1))
    key, word, gain, span = (np.concatenate(column) for column in (keys, words, gains, first))
    order = np.argsort(key)
    key, word, gain, span = key[order], word[order], gain[order], span[order]
    best = np.zeros(len(persons))
    stack = [(np.arange(len(persons)), [int(persons.forest.roots[0])], -1, np.zeros(len(persons)))]
    while stack:
        members, cut, last, saved = stack.pop()
        best[members] = np.maximum(best[members], saved)
        # each set is reached once: its nodes are expanded in ascending order, parents before children
        for v in [v for v in cut if v > last and forest.leaf_count[v] > 1]:
            places = np.searchsorted(key, members * nodes + v)
            _, alike, count = np.unique(word[places], return_inverse=True, return_counts=True)
            for part in np.flatnonzero(count >= k):
                inside = np.flatnonzero(alike == part)
                begin, end = span[places[inside[0]]]
                children = np.unique(forest.path[forest.depth[v] + 1][persons.items[begin:end]]).tolist()
                refined = [u for u in cut if u != v] + children
                stack.append((members[inside], refined, v, saved[inside] + gain[places[inside]]))
    return float(forest.ncp[forest.roots[persons.items]].sum() - best.sum()) / len(persons.items)


def main() -> None:
    """Run the study."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    output = Path(sys.argv[2] if len(sys.argv) > 2 else "one_to_m_study")
    few = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    output.mkdir(parents=True, exist_ok=True)
    con = load(folder)
    found = con.execute("select count(distinct person_id) from visits").fetchone()
    everyone = found[0] if found else 0

    results = {k: averaged(con, {"1:M, l = 5": ours(k, 5), "RMR": theirs(k)}, few) for k in (5, 10, 20, 30, 40, 50)}
    show(f"Varying k, {few} persons (paper: both losses of 1:M rise slightly with k, RMR loses more)",
         "k", results, output, "varying_k")  # fmt: skip

    results = {}
    for least in (2, 3, 4, 5, 6, 8, 10):
        calls = {"1:M frequency": ours(10, least), "1:M distinct": ours(10, least, "distinct"), "RMR": theirs(10)}
        results[least] = averaged(con, calls, few)
    show(f"Varying l, k = 10, {few} persons (paper: only QID-NCP of 1:M rises, SA-NCP does not depend on l)",
         "l", results, output, "varying_l")  # fmt: skip

    results = {}
    for n in (5_000, 10_000, 20_000, 40_000, everyone):
        calls = {"1:M, l = 5": ours(10, 5)} | ({"RMR": theirs(10)} if n <= 2 * few else {})
        results[n] = averaged(con, calls, n)
    show("Varying n, k = 10 (paper: losses fall with n, RMR's SA-NCP quickly; time of 1:M about linear)",
         "n", results, output, "varying_n")  # fmt: skip

    sample(con, everyone, 0)
    persons = persons_of(con)
    print(f"\nAll {everyone} persons, l = 5, distinct diversity: the authors' published code -> ours")
    for k, qid, lost in ((10, 8.60, 10.79), (100, 8.84, 16.11)):
        row = measured(con, ours(k, 5, "distinct"))
        bound = 100 * lower_bound(persons, k)
        print(f"  k = {k:<4} QID-NCP {qid:.2f} -> {row['QID-NCP %']:.2f}   SA-NCP {lost:.2f} -> {row['SA-NCP %']:.2f}, "
              f"no less than {bound:.2f} by any method   {row['seconds']:.2f} s")  # fmt: skip


if __name__ == "__main__":
    main()
