"""Generalization and its checks in SQL, side by side with pycanon and anjana in one run.

Run: python examples/benchmarks/generalization.py FOLDER [--peers PYTHON ...] [--limit SECONDS]
FOLDER holds census.csv and adult.csv; each PYTHON is an interpreter that has pycanon, anjana or both (default: this
one). Times are the smallest of several runs, everything from SQL text to a stored table included; peers run once, from
a DataFrame in memory to the result. Peers that are not installed are left out; a task of theirs that takes longer than
the limit (default 120 s) is ended.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CENSUS = ["RELATE", "SEX", "AGE", "MARST", "RACE", "EDUC", "UHRSWORK"]
ADULT = ["age", "sex", "race", "marital_status", "education", "relationship", "hours_per_week"]
COLUMNS = {"adult": (ADULT, "occupation"), "census": (CENSUS, "INCWAGE"), "1M": (CENSUS, "INCWAGE")}
TABLES = {"adult": "adult", "census": "census", "1M": "big"}
BIG = """
    select RELATE, SEX, (AGE + hash(r, AGE, i) % 5 - 2)::integer as AGE, MARST, RACE, EDUC,
        (UHRSWORK + hash(i, UHRSWORK, r) % 5 - 2)::integer as UHRSWORK, INCWAGE
    from (select *, row_number() over () as r from census), range(25) as t(i) limit 1000000
"""


def best(work: Callable[[], Any], repeat: int = 3) -> tuple[float, Any]:
    """Smallest time of several runs, and the last result."""
    times, result = [], None
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def peer_tasks(folder: Path, big: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What the peers are timed at: the checks of pycanon, k-anonymity by anjana."""
    import pandas as pd

    # the peers cannot compare missing values with texts
    frames = {name: pd.read_csv(folder / f"{name}.csv", keep_default_na=False) for name in ("adult", "census")}
    frames["1M"] = pd.read_csv(big)
    try:
        from pycanon import anonymity

        for name in ("adult", "1M"):
            data, (qi, sensitive) = frames[name], COLUMNS[name]
            yield f"k of {name}", lambda d=data, q=qi: anonymity.k_anonymity(d, q)
            yield f"l of {name}", lambda d=data, q=qi, s=sensitive: anonymity.l_diversity(d, q, [s])
            yield f"t of {name}", lambda d=data, q=qi, s=sensitive: round(anonymity.t_closeness(d, q, [s]), 4)
    except ImportError:
        pass
    try:
        from anjana.anonymity import k_anonymity

        for name in ("adult", "census"):
            qi = COLUMNS[name][0]
            data = frames[name][qi].astype(str)
            values = {column: data[column].unique() for column in qi}
            trees = {column: {0: found, 1: ["*"] * len(found)} for column, found in values.items()}
            for share in (0, 5):
                yield (
                    f"incognito {name} {share}%",
                    lambda d=data, q=qi, s=share, t=trees: starred(k_anonymity(d.copy(), [], q, 10, s, t)[q]),
                )
    except ImportError:
        pass


def starred(release: Any) -> str:
    """Share of the cells of a release by anjana that are wholly generalized."""
    return f"NCP {100 * (release == '*').to_numpy().mean():.2f}%"


def run_peers(folder: Path, big: Path, limit: int) -> None:
    """Time each task of the peers and print it as a line of JSON; runs in the peers' interpreter."""

    def over(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, over)
    for label, task in peer_tasks(folder, big):
        signal.alarm(limit)
        try:
            seconds, result = best(task, 1)
        except TimeoutError:
            seconds, result = limit, "ended"
        signal.alarm(0)
        print(json.dumps([label, seconds, str(result)]), flush=True)


Peers = dict[str, tuple[float, str]]


def ratio(label: str, seconds: float, other: Peers) -> str:
    """How much longer the peer took, and what it found."""
    if label not in other:
        return ""
    peer, found = other[label]
    over = "over " if found == "ended" else ""
    return f"  peer {over}{peer:.2f} s, {over}{peer / seconds:.1f} times: {found}"


def measure(con: Any, label: str, call: str, name: str, other: Peers) -> None:
    """Time one release and print what it lost and what its smallest class is."""
    table = TABLES[name]
    seconds, _ = best(lambda: con.execute(f"create or replace table r as from {call}"), 3 if table == "big" else 5)
    lost = con.execute(f"select 100 * ncp from information_loss('{table}', 'r') where attribute = '(all)'").fetchone()
    k, classes = con.execute(f"select smallest, classes from class_statistics('r', {COLUMNS[name][0]})").fetchone()
    found = f"NCP {lost[0]:6.2f}%  {classes:6} classes, k {k}"
    print(f"{label:46} {seconds:7.3f} s  {found}{ratio(label, seconds, other)}", flush=True)


def check(con: Any, label: str, call: str, other: Peers) -> None:
    """Time one check."""
    seconds, rows = best(lambda: con.execute(f"from {call}").fetchall(), 5)
    print(f"{label:46} {seconds:7.3f} s  {rows[0]}{ratio(label, seconds, other)}", flush=True)


def tables(folder: Path) -> Any:
    """A loaded connection with labelled tables adult, census and big."""
    import duckdb_anon

    con = duckdb_anon.connect()
    for name in ("adult", "census"):
        con.execute(f"create table {name} as from read_csv('{folder / name}.csv')")
    con.execute(f"create table big as {BIG}")
    for name, (qi, sensitive) in COLUMNS.items():
        for column in qi:
            con.execute(f"comment on column {TABLES[name]}.{column} is 'anon: quasi'")
        con.execute(f"comment on column {TABLES[name]}.{sensitive} is 'anon: sensitive'")
    return con


def ask_peers(con: Any, given: argparse.Namespace) -> Peers:
    """Run every peer in its own interpreter."""
    found: Peers = {}
    with tempfile.TemporaryDirectory() as scratch:
        big = Path(scratch) / "big.csv"
        con.execute(f"copy big to '{big}'")
        for python in given.peers:
            command = [python, __file__, str(given.folder), "--limit", str(given.limit), "--as-peer", str(big)]
            out = subprocess.run(command, capture_output=True, text=True)
            found |= {label: (seconds, result) for label, seconds, result in map(json.loads, out.stdout.splitlines())}
            if out.returncode:
                print("peers left out:", out.stderr.splitlines()[-1] if out.stderr else "no reason given")
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", nargs="+", default=[sys.executable])
    parser.add_argument("--limit", type=int, default=120)
    parser.add_argument("--as-peer", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_peer:
        run_peers(given.folder, given.as_peer, given.limit)
        return
    con = tables(given.folder)
    other = ask_peers(con, given)
    for name in ("adult", "1M"):
        table, (qi, sensitive) = TABLES[name], COLUMNS[name]
        check(con, f"k of {name}", f"k_anonymity('{table}', {qi})", other)
        check(con, f"l of {name}", f"l_diversity('{table}', {qi}, '{sensitive}')", other)
        check(con, f"t of {name}", f"t_closeness('{table}', {qi}, '{sensitive}')", other)
    for name in ("adult", "census"):
        qi = COLUMNS[name][0]
        for share in (0, 5):
            # the lattice anjana is given: each column as it is, or not at all
            call = f"incognito('{TABLES[name]}', k := 10, max_suppression := {share / 100}, categorical := {qi})"
            measure(con, f"incognito {name} {share}%", call, name, other)
    for cut in ("loss", "median"):
        for name in COLUMNS:
            call = f"mondrian('{TABLES[name]}', k := 10, cut := '{cut}')"
            measure(con, f"mondrian {name} k = 10, {cut}", call, name, other)
        for name in ("census", "1M"):
            call = f"mondrian('{TABLES[name]}', k := 10, l := 10, diversity := 'distinct', cut := '{cut}')"
            measure(con, f"mondrian {name} k = 10, distinct l = 10, {cut}", call, name, other)
    measure(con, "incognito census entropy l = 5", "incognito('census', l := 5)", "census", other)
    for name in ("census", "big"):
        seconds, _ = best(lambda n=name: con.execute(f"create or replace table r as from anatomy('{n}', l := 10)"), 2)
        print(f"{f'anatomy {name} l = 10':46} {seconds:7.3f} s")
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
