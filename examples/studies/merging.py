"""Merging against the composition attack: the experiments of Hasan et al. (2018), section 5, on Adult.

Ten disjoint parts of 2,400 rows and a pool of the rest; persons of the pool are added to every part, every part
is released on its own, and pairs of releases are intersected. Then, on the whole table: what generalization
loses, errors of COUNT queries by number of quasi-identifiers, what a classifier learns, and running time.

"merging" forbids pairs that never occur though expected, and generalizes cells that show one; "swapped" permutes such
rows anew first; "no rules" does neither.

Differences from the paper: Adult has 32,561 rows here (48,842 there), so parts, pool and overlaps keep its
proportions; the classifier is CART, not C4.5; three of the competitors are readings of abstracts. What the
paper claims is printed beside what came out.

    python examples/studies/merging.py adult.csv --out figures --runs 3
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import defaultdict
from pathlib import Path

import duckdb
import matplotlib
import numpy as np

import duckdb_anon

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

QI = ["age", "sex", "marital_status", "workclass", "relationship", "income"]
PARTS, PART_ROWS = 10, 2400
OVERLAPS = (60, 120, 180, 240, 300)  # 100 to 500 of 4,000 in the paper
METHODS = {
    "merging": "merging('{t}', {l}, unseen_pairs := true, cut := '{cut}', {roles}{more})",
    "merging, no rules": "merging('{t}', {l}, cut := '{cut}', {roles}{more})",
    "mondrian": "mondrian('{t}', k := {k}, cut := '{cut}', {roles}{more})",
    "composition": "composition('{t}', {k}, cut := '{cut}', {roles}{more})",
    "probabilistic": "probabilistic('{t}', {k}, cut := '{cut}', {roles}{more})",
    "hybrid": "hybrid('{t}', {k}, cut := '{cut}', {roles}{more})",
    "laplace": "laplace_on_groups('{t}', {k}, 0.3, cut := '{cut}', {roles}{more})",
}
DIMS = range(1, 6)
Results = dict[tuple[object, ...], list[float]]


def feasible(con: duckdb.DuckDBPyConnection, table: str, sensitive: str, k: int) -> float:
    """K where the table can meet l = k; else two thirds of what it can, so that there is room for cuts."""
    most = con.execute(
        f"select sum(n) / (max(n) + 1) from (select count(*) as n from {table} group by {sensitive})"
    ).fetchone()[0]
    return float(k) if k <= most else round(most / 1.5, 1)


def release(
    con: duckdb.DuckDBPyConnection, name: str, method: str, table: str, k: int, sensitive: str, seed: int, cut: str,
    row_id: bool = False,
) -> float:  # fmt: skip
    """Create the release `name`; return the seconds it took."""
    roles = f"qi := {QI}, sensitive := '{sensitive}', seed := {seed}"
    diversity = feasible(con, table, sensitive, k)
    more = ", row_id := true" if row_id else ""
    query = METHODS[method].format(t=table, k=k, l=diversity, roles=roles, more=more, cut=cut)
    start = time.perf_counter()
    con.execute(f"create or replace table {name} as from {query}")
    return time.perf_counter() - start


def split(con: duckdb.DuckDBPyConnection, sensitive: str, overlap: int, seed: int) -> None:
    """Tables part0 to part9, each with the same `overlap` persons of the pool, and the table shared."""
    columns = ", ".join([*QI, sensitive])
    con.execute(
        f"""create or replace table shuffled as select {columns}, row_number() over (order by hash(number, {seed})) - 1
        as place from adult where {sensitive} is not null"""
    )
    pool = PARTS * PART_ROWS
    con.execute(
        f"create or replace table shared as select {columns} from shuffled where place >= {pool} "
        f"order by place limit {overlap}"
    )
    for part in range(PARTS):
        own = f"place >= {part * PART_ROWS} and place < {(part + 1) * PART_ROWS}"
        con.execute(
            f"create or replace table part{part} as select {columns} from shuffled where {own} union all from shared"
        )


def attack(con: duckdb.DuckDBPyConnection, k: int, sensitive: str, runs: int, pairs: int, cut: str) -> Results:
    """Privacy risk by method and overlap, one entry a run and pair of parts."""
    found: Results = defaultdict(list)
    chosen = list(itertools.combinations(range(PARTS), 2)) if pairs > 5 else [(2 * p, 2 * p + 1) for p in range(pairs)]
    roles = f"qi := {QI}, sensitive := '{sensitive}'"
    for run, overlap in itertools.product(range(runs), OVERLAPS):
        split(con, sensitive, overlap, run)
        for method in METHODS:
            for part in sorted({part for pair in chosen for part in pair}):
                release(con, f"r{part}", method, f"part{part}", k, sensitive, 100 * run + part, cut)
            for a, b in chosen:
                query = f"select privacy_risk from composition_risk('r{a}', 'r{b}', 'shared', {roles})"
                found[method, overlap].append(con.execute(query).fetchone()[0])
    return found


def utility(con: duckdb.DuckDBPyConnection, k: int, sensitive: str, runs: int, cut: str) -> Results:
    """Loss, query errors, accuracy and seconds on the whole table, one entry a run."""
    found: Results = defaultdict(list)
    columns = ", ".join([*QI, sensitive])
    con.execute(f"create or replace table whole as select {columns} from adult where {sensitive} is not null")
    roles = f"qi := {QI}, sensitive := '{sensitive}'"
    for run, method in itertools.product(range(runs), METHODS):
        seconds = release(con, "released", method, "whole", k, sensitive, run, cut, row_id=method != "laplace")
        found[method, "seconds"].append(seconds)
        for column, measure in (("ncp", "information_loss"), ("distortion_ratio", "distortion_ratio")):
            loss = f"select {column} from {measure}('whole', 'released', {roles}) where attribute = '(all)'"
            found[method, column].append(con.execute(loss).fetchone()[0])
        for dims in DIMS:
            errors = f"""select avg(relative_error), median(relative_error) from workload_error('whole', 'released',
                n := 200, dims := {dims}, predicate_on_sensitive := true, seed := {run}, {roles})"""
            mean, median = con.execute(errors).fetchone()
            found[method, "mean error", dims].append(mean)
            found[method, "median error", dims].append(median)
        for target in (sensitive, "relationship"):
            learned = f"""select accuracy, original_accuracy, majority_accuracy from classification_accuracy(
                'whole', 'released', '{target}', folds := 10, min_leaf := 20, seed := {run}, {roles})"""
            for name, value in zip((method, "original", "majority"), con.execute(learned).fetchone(), strict=True):
                found[name, "accuracy", target].append(value)
    return found


def shown(values: list[float], digits: int = 2) -> str:
    """Mean and deviation."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}" if values else "-"


def table(title: str, rows: list[str], columns: list[object], cell: dict[tuple[str, object], str]) -> None:
    """Print a table."""
    print(f"\n{title}")
    print(f"{'':19}" + "".join(f"{column!s:>18}" for column in columns))
    for row in rows:
        print(f"{row:19}" + "".join(f"{cell.get((row, column), '-'):>18}" for column in columns))


def print_attack(found: Results, k: int, sensitive: str) -> None:
    """Risk by overlap."""
    cells = {(m, o): shown(found[m, o]) for m in METHODS for o in OVERLAPS}
    table(f"privacy risk in percent, {sensitive}, k = l = {k}, by shared persons", list(METHODS), list(OVERLAPS), cells)
    ranked = sorted(METHODS, key=lambda m: float(np.mean([v for o in OVERLAPS for v in found[m, o]])))
    print(f"lowest to highest: {', '.join(ranked)}")
    print("the paper: epsilon-DP lowest, merging and hybrid about equal, mondrian highest")


def print_utility(found: Results, k: int, sensitive: str) -> None:
    """Loss, errors, accuracy, seconds."""
    names = ["ncp", "distortion_ratio", "seconds"]
    cells = {(m, n): shown(found[m, n], 3) for m in METHODS for n in names}
    table(f"loss (NCP, distortion ratio) and seconds, {sensitive}, k = l = {k}", list(METHODS), names, cells)
    for kind in ("mean error", "median error"):
        cells = {(m, d): shown(found[m, kind, d], 3) for m in METHODS for d in DIMS}
        title = f"{kind} of COUNT by number of quasi-identifiers, {sensitive}, k = l = {k}"
        table(title, list(METHODS), list(DIMS), cells)
    errors = {m: float(np.mean([found[m, "mean error", d] for d in DIMS])) for m in METHODS}
    print(f"smallest to largest mean error: {', '.join(sorted(METHODS, key=lambda m: errors[m]))}")
    print("the paper: merging has the smallest error throughout")
    targets = [sensitive, "relationship"]
    rows = [*METHODS, "original", "majority"]
    cells = {(m, t): shown([100 * v for v in found[m, "accuracy", t]]) for m in rows for t in targets}
    table(f"accuracy in percent (CART, ten folds), k = l = {k}", rows, targets, cells)
    print(
        "the paper (J48; education, relationship; l = 4 / 6): original 33, 40; merging 20.23 / 17.23, 37.48 / 36.13; "
        "mondrian 19.33 / 16.43, 37.13 / 35.89; epsilon-DP 15.78 / 13.89, 32.92 / 29.04.\n"
        "Its figures for the original are about the share of the largest class here."
    )


def curves(axes: Axes, values: dict[str, list[list[float]]], places: list[int]) -> None:
    """Mean and deviation of each method; hollow markers of falling size, so that no curve hides an equal one."""
    for number, (method, by_place) in enumerate(values.items()):
        mean, spread = ([float(f(v)) for v in by_place] for f in (np.mean, np.std))
        look = {"marker": "os*D^vPX"[number], "markersize": 10 - number, "markerfacecolor": "none", "linewidth": 1.2}
        axes.errorbar(places, mean, spread, label=method, capsize=2, **look)
    axes.set_xticks(places)
    axes.grid(axis="y", alpha=0.3)


def bars(axes: Axes, values: dict[str, list[float]], title: str) -> None:
    """One horizontal bar a method, the first on top."""
    names = list(values)
    mean, spread = ([float(f(v)) for v in values.values()] for f in (np.mean, np.std))
    axes.barh(names, mean, xerr=spread, color=[f"C{i}" if i < len(METHODS) else "0.6" for i in range(len(names))])
    axes.invert_yaxis()
    axes.set_axisbelow(True)
    axes.set_title(title)
    axes.grid(axis="x", alpha=0.3)


def plot(risk: Results, used: Results, k: int, sensitive: str, out: Path) -> None:
    """One page: risk, query error, loss, accuracy."""
    figure, ((top, right), (left, low)) = plt.subplots(2, 2, figsize=(12, 8), layout="constrained")
    curves(top, {m: [risk[m, o] for o in OVERLAPS] for m in METHODS}, list(OVERLAPS))
    top.set(xlabel="persons in both parts", title="privacy risk (%)", ylim=(0, None))
    curves(right, {m: [used[m, "mean error", d] for d in DIMS] for m in METHODS}, list(DIMS))
    right.set(xlabel="quasi-identifiers in the query", title="mean relative error of COUNT", yscale="log")
    right.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    right.yaxis.set_major_formatter(ScalarFormatter())
    right.yaxis.set_minor_formatter(NullFormatter())
    bars(left, {m: used[m, "distortion_ratio"] for m in METHODS}, "distortion ratio")
    rows = [*METHODS, "original", "majority"]
    bars(low, {m: [100 * v for v in used[m, "accuracy", sensitive]] for m in rows}, f"accuracy (%), {sensitive}")
    figure.suptitle(f"{sensitive}, k = l = {k}")
    figure.legend(*top.get_legend_handles_labels(), loc="outside lower center", ncols=len(METHODS))
    figure.savefig(out / f"merging_{sensitive}_{k}.png", dpi=110)
    plt.close(figure)


def main() -> None:
    """Run everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("adult", type=Path)
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=5, help="disjoint pairs of parts to attack; above 5: all 45")
    parser.add_argument("--levels", type=int, nargs="+", default=[4, 6])
    parser.add_argument("--cut", choices=["median", "loss"], default="median")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    con = duckdb_anon.connect()
    con.execute(
        "create table adult as select *, row_number() over () as number from read_csv(?)", [str(arguments.adult)]
    )
    for sensitive, k in itertools.product(("occupation", "education"), arguments.levels):
        print(f"\n=== {sensitive}, k = l = {k}, {arguments.cut} cuts, runs: {arguments.runs}")
        con.execute(f"create or replace table whole as from adult where {sensitive} is not null")
        largest = feasible(con, "whole", sensitive, k)
        if largest < k:
            print(f"l = {k} cannot be met by this table; merging takes l = {largest:g}")
        risk = attack(con, k, sensitive, arguments.runs, arguments.pairs, arguments.cut)
        print_attack(risk, k, sensitive)
        used = utility(con, k, sensitive, arguments.runs, arguments.cut)
        print_utility(used, k, sensitive)
        plot(risk, used, k, sensitive, arguments.out)


if __name__ == "__main__":
    main()
