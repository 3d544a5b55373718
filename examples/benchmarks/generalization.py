"""Generalization and its checks in SQL, side by side with pycanon and anjana in one run.

Run: python examples/benchmarks/generalization.py FOLDER [--peers PYTHON]
FOLDER holds census.csv and adult.csv; PYTHON is an interpreter that has pycanon and anjana (default: this one).
Times are the smallest of several runs, everything from SQL text to a stored table included. Peers that are not
installed are left out.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CENSUS = ["RELATE", "SEX", "AGE", "MARST", "RACE", "EDUC", "UHRSWORK"]
ADULT = ["age", "sex", "race", "marital_status", "education", "relationship", "hours_per_week"]
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


def peers(folder: Path, big: Path) -> dict[str, float]:
    """Times of pycanon's checks and anjana's k-anonymity; runs in the peers' interpreter."""
    import pandas as pd

    times: dict[str, float] = {}
    # the peers cannot compare missing values with texts
    adult, table = pd.read_csv(folder / "adult.csv", keep_default_na=False), pd.read_csv(big)
    try:
        from pycanon import anonymity

        for name, data, qi, sensitive in (("adult", adult, ADULT, "occupation"), ("1M", table, CENSUS, "INCWAGE")):
            times[f"k of {name}"] = best(lambda d=data, q=qi: anonymity.k_anonymity(d, q), 1)[0]
            times[f"l of {name}"] = best(lambda d=data, q=qi, s=sensitive: anonymity.l_diversity(d, q, [s]), 1)[0]
    except ImportError:
        pass
    try:
        from anjana.anonymity import k_anonymity

        data = adult[ADULT].astype(str)
        trees = {name: {0: data[name].to_numpy(), 1: pd.Series(["*"] * len(data)).to_numpy()} for name in ADULT}
        for share in (0, 5):
            times[f"incognito adult {share}%"] = best(
                lambda s=share: k_anonymity(data.copy(), [], ADULT, 10, s, trees), 1
            )[0]
    except ImportError:
        pass
    return times


def measure(con: Any, label: str, call: str, table: str, qi: list[str], other: float | None = None) -> None:
    """Time one release and print what it lost and what its smallest class is."""
    repeat = 2 if table == "big" else 5
    seconds, _ = best(lambda: con.execute(f"create or replace table r as from {call}"), repeat)
    lost = con.execute(f"select 100 * ncp from information_loss('{table}', 'r') where attribute = '(all)'").fetchone()
    k, classes = con.execute(f"select smallest, classes from class_statistics('r', {qi})").fetchone()
    ratio = f"  peer {other:.2f} s, {other / seconds:.1f} times" if other else ""
    print(f"{label:46} {seconds:7.3f} s  NCP {lost[0]:6.2f}%  {classes:7} classes, k {k}{ratio}", flush=True)


def check(con: Any, label: str, call: str, other: float | None) -> None:
    """Time one check."""
    seconds, rows = best(lambda: con.execute(f"from {call}").fetchall(), 5)
    ratio = f"  peer {other:.2f} s, {other / seconds:.0f} times" if other else ""
    print(f"{label:46} {seconds:7.3f} s  {rows[0]}{ratio}", flush=True)


def tables(folder: Path) -> Any:
    """A loaded connection with labelled tables adult, census and big."""
    import duckdb_anon

    con = duckdb_anon.connect()
    for name in ("adult", "census"):
        con.execute(f"create table {name} as from read_csv('{folder / name}.csv')")
    con.execute(f"create table big as {BIG}")
    for name, qi, sensitive in (
        ("adult", ADULT, "occupation"), ("census", CENSUS, "INCWAGE"), ("big", CENSUS, "INCWAGE"),
    ):  # fmt: skip
        for column in qi:
            con.execute(f"comment on column {name}.{column} is 'anon: quasi'")
        con.execute(f"comment on column {name}.{sensitive} is 'anon: sensitive'")
    return con


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--as-peer", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_peer:
        print(json.dumps(peers(given.folder, given.as_peer)))
        return
    con = tables(given.folder)
    big = Path("big.csv").resolve()
    con.execute(f"copy big to '{big}'")
    try:
        out = subprocess.run(
            [given.peers, __file__, str(given.folder), "--as-peer", str(big)], capture_output=True, text=True
        )
        other = json.loads(out.stdout.splitlines()[-1]) if out.returncode == 0 and out.stdout else {}
        if out.returncode:
            print("peers left out:", out.stderr.splitlines()[-1] if out.stderr else "no reason given")
    finally:
        big.unlink()
    for name, qi, sensitive in (("adult", ADULT, "occupation"), ("big", CENSUS, "INCWAGE")):
        spelled = "1M" if name == "big" else name
        check(con, f"k of {spelled}", f"k_anonymity('{name}', {qi})", other.get(f"k of {spelled}"))
        check(con, f"l of {spelled}", f"l_diversity('{name}', {qi}, '{sensitive}')", other.get(f"l of {spelled}"))
        check(con, f"t of {spelled}", f"t_closeness('{name}', {qi}, '{sensitive}')", None)
    for cut in ("median", "loss"):
        for name, qi in (("adult", ADULT), ("census", CENSUS), ("big", CENSUS)):
            measure(con, f"mondrian {name} k = 10, {cut}", f"mondrian('{name}', k := 10, cut := '{cut}')", name, qi)
        for name in ("census", "big"):
            call = f"mondrian('{name}', k := 10, l := 10, diversity := 'distinct', cut := '{cut}')"
            measure(con, f"mondrian {name} k = 10, distinct l = 10, {cut}", call, name, CENSUS)
    for share in (0, 5):
        call = f"incognito('adult', k := 10, max_suppression := {share / 100})"
        measure(con, f"incognito adult k = 10, {share}% suppressed", call, "adult", ADULT,
                other.get(f"incognito adult {share}%"))  # fmt: skip
    measure(con, "incognito census entropy l = 5", "incognito('census', l := 5)", "census", CENSUS)
    for name in ("census", "big"):
        seconds, _ = best(lambda n=name: con.execute(f"create or replace table r as from anatomy('{n}', l := 10)"), 2)
        print(f"{f'anatomy {name} l = 10':46} {seconds:7.3f} s")
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
