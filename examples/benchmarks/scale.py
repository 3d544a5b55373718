"""How cost grows with rows: processor seconds, peak memory and loss of whole statements, each in a process of its own.

Seconds are user and system time of all threads, less what a process takes that only connects; kernels were compiled
before. Memory is the process's peak, Python and libraries (about 0.2 GB) with it.

    python examples/benchmarks/scale.py [--rows 10000 100000 1000000] [--parts 2GB] [--peers]
        [--json scale.json] [--plot scale.png] [--multiples]

The table is the census sample of the package, drawn again and again, ages and hours moved by up to two years and hours,
so that larger tables have more combinations. `--parts` works larger tables in parts within that much memory. `--json`
names a file that keeps the figures, of earlier runs too. The plot has both axes logarithmic and the exponent of the
fitted line; `--peers` adds what pycanon and anjana take. `--multiples` compares, in one process and in memory, with
a CREATE TABLE AS of the same columns, as text and as whole numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

QI = "['age', 'gender', 'race', 'marital_status', 'education', 'relationship', 'hours_per_week']"
CALLS = {
    "mondrian k = 10": "mondrian('{table}', 10, qi := {qi})",
    "mondrian k = 10, l = 5": "mondrian('{table}', 10, l := 5, diversity := 'distinct', qi := {qi}, "
    "sensitive := 'salary')",
    "muco 0.2": "muco('{table}', 0.2, qi := {qi}, sensitive := 'salary')",
    "anatomy l = 10": "anatomy('{table}', 10, qi := {qi}, sensitive := 'salary')",
    "rr p = 0.8": "rr_distort('{table}', p := 0.8, qi := {qi}, sensitive := 'salary')",
}
PEERS = {
    "pycanon k": "from pycanon import anonymity\nprint(anonymity.k_anonymity(table, qi))",
    "anjana k = 10": "from anjana.anonymity import k_anonymity\n"
    "trees = {c: {0: table[c].values, 1: ['*'] * len(table)} for c in qi}\n"
    "k_anonymity(table, [], qi, 10, 50, trees)",
}
ONE = """
import sys, numba, duckdb_anon
con = duckdb_anon.connect(sys.argv[1])
con.execute("set enable_progress_bar = false")
if sys.argv[3]:
    duckdb_anon.release(con, "released", sys.argv[2], memory=sys.argv[3], independent=True)
elif sys.argv[2]:
    con.execute(f"create table released as from {sys.argv[2]}")
else:
    con.execute("create table released as from people")
"""


def make(folder: Path, rows: int) -> Path:
    """A database with a table of so many rows."""
    import duckdb_anon

    file = folder / f"{rows}.duckdb"
    with duckdb_anon.connect(str(file)) as con:
        con.execute("create temp table few as from anon_sample('census', 40000, seed := 1)")
        con.execute(
            "create table people as select * exclude (i) replace (age + (hash(i, age) % 5)::integer - 2 as age, "
            "hours_per_week + (hash(age, i) % 5)::integer - 2 as hours_per_week) "
            f"from few, range({-(-rows // 40000)}) r(i) limit {rows}"
        )
    return file


def elsewhere(work: Callable[..., Any], *given: Any) -> Any:
    """What a function returns in another process: the peak of a measured one begins with that of its parent."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def measured(command: list[str]) -> tuple[float, float]:
    """Processor seconds and peak memory in GB of a process."""
    process = subprocess.Popen([sys.executable, "-c", *command], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[1:]} ended with {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6


def loss_of(file: Path) -> float | None:
    """NCP of the released boxes, None for other shapes."""
    import duckdb

    import duckdb_anon

    with duckdb_anon.connect(str(file)) as con:
        try:
            told = con.execute(
                f"select ncp from information_loss('people', 'released', qi := {QI}) where attribute = '(all)'"
            ).fetchall()
        except duckdb.Error:
            return None
    return float(told[0][0])


def plot(results: list[dict[str, float | str]], path: str) -> None:
    """Seconds by rows, both logarithmic, a line and its exponent a method."""
    import matplotlib.pyplot as plt
    import numpy as np

    figure, axes = plt.subplots(figsize=(7, 5))
    for name in dict.fromkeys(str(r["name"]) for r in results):
        own = [r for r in results if r["name"] == name]
        rows, seconds = (np.array([float(r[key]) for r in own]) for key in ("rows", "seconds"))
        label = name
        if len(own) > 1:
            label += f", rows^{np.polyfit(np.log(rows), np.log(seconds), 1)[0]:.2f}"
        axes.loglog(rows, seconds, marker="o", label=label)
    axes.set_xlabel("rows")
    axes.set_ylabel("processor seconds")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--methods", nargs="+", default=list(CALLS), choices=CALLS)
    parser.add_argument("--parts", default="", help="work in parts within this much memory")
    parser.add_argument("--loss", action="store_true", help="measure the loss of boxes too")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--plot", default="")
    parser.add_argument("--json", default="")
    parser.add_argument(
        "--multiples", action="store_true", help="compare with a plain CREATE TABLE AS, and nothing else"
    )
    given = parser.parse_args()
    if given.multiples:
        multiples(max(given.rows), given.methods)
        return
    results = json.loads(Path(given.json).read_text()) if given.json and Path(given.json).exists() else []
    print(f"{'rows':>12}  {'what':24}{'CPU s':>8}{'rows/s':>12}{'GB':>6}{'x CTAS':>8}  loss")
    with tempfile.TemporaryDirectory() as folder:
        begun = _warmed(elsewhere(make, Path(folder), 20_000), given.methods)
        for rows in given.rows:
            file = elsewhere(make, Path(folder), rows)
            plain, _ = measured([ONE, str(file), "", ""])
            plain = max(plain - begun, 0.01)
            for name in given.methods:
                with_table = CALLS[name].format(table="people", qi=QI)
                _drop(file)
                seconds, memory = measured([ONE, str(file), with_table, given.parts])
                seconds = max(seconds - begun, 0.01)
                loss = elsewhere(loss_of, file) if given.loss else None
                called = f"{name}, in parts" if given.parts else name
                results = [r for r in results if (r["name"], r["rows"]) != (called, rows)]
                results.append({"name": called, "rows": rows, "seconds": seconds, "memory": memory})
                results.sort(key=lambda r: (r["name"], r["rows"]))
                told = f"{loss:.4f}" if loss is not None else ""
                cost = f"{seconds:>8.1f}{rows / seconds:>12,.0f}{memory:>6.2f}{seconds / plain:>8.0f}"
                print(f"{rows:>12,}  {name:24}{cost}  {told}", flush=True)
            for name, code in PEERS.items() if given.peers else ():
                read = (
                    f"import duckdb\nqi = {QI}\n"
                    f"table = duckdb.connect({str(file)!r}, read_only=True).execute('from people').df()\n"
                )
                try:
                    seconds, memory = measured([read + code])
                except SystemExit as error:
                    print(f"{rows:>12,}  {name:24}  {error}")
                    continue
                print(f"{rows:>12,}  {name:24}{seconds:>8.1f}{rows / seconds:>12,.0f}{memory:>6.2f}", flush=True)
            file.unlink()
            if given.json:
                Path(given.json).write_text(json.dumps(results, indent=1))
            if given.plot:
                plot(results, given.plot)


def multiples(rows: int, methods: list[str]) -> None:
    """Processor seconds of releases over those of a CREATE TABLE AS, medians of three, run in turn."""
    import duckdb_anon

    def seconds(con: Any, query: str) -> float:
        con.execute("drop table if exists released")
        before = resource.getrusage(resource.RUSAGE_SELF)
        con.execute(f"create table released as {query}")
        after = resource.getrusage(resource.RUSAGE_SELF)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    with tempfile.TemporaryDirectory() as folder, duckdb_anon.connect(threads=2) as con:
        con.execute(f"attach '{make(Path(folder), rows)}' as made (read_only)")
        con.execute("create table text as from made.people")
        names = "gender, race, marital_status, education, relationship".split(", ")
        coded = ", ".join(f"(dense_rank() over (order by {name}))::integer as {name}" for name in names)
        con.execute(f"create table numbers as select * replace ({coded}) from text")
        for table in ("text", "numbers"):
            for name in methods:
                query = f"from {CALLS[name].format(table=table, qi=QI)}"
                seconds(con, query)  # compiles
                pairs = [(seconds(con, f"from {table}"), seconds(con, query)) for _ in range(3)]
                plain, release = (statistics.median(each) for each in zip(*pairs, strict=True))
                print(f"{table:8} {name:24}{release:>8.2f} s  {plain:.3f} s  x {release / plain:.0f}", flush=True)


def _warmed(file: Path, methods: list[str]) -> float:
    """Compile what is compiled at first use; return the seconds of a process that only connects."""
    for name in methods:
        _drop(file)
        measured([ONE, str(file), CALLS[name].format(table="people", qi=QI), ""])
    _drop(file)
    return statistics.median(measured(["import numba, duckdb_anon; duckdb_anon.connect()"])[0] for _ in range(5))


def _drop(file: Path) -> None:
    import duckdb

    with duckdb.connect(str(file)) as con:
        con.execute("drop table if exists released")


if __name__ == "__main__":
    main()
