"""How exact and how fast MuCo's random output tables are.

    python examples/benchmarks/cover.py FOLDER [--groups 5000] [--million]

FOLDER holds census.csv. Prints seconds for all seven attributes (best of three, and the first call of the
process), the largest difference between the cost of a group and that of the linear program handed to HiGHS, as a
share of the group's range, on every distinct program of the census table and on random groups, and the time
HiGHS takes for the same programs.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from duckdb_anon.engine.transport.column_coding import code_column
from duckdb_anon.kernels.partition.m_invariance import assign
from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.partition.privacy_models import FrequencyDiversity
from duckdb_anon.kernels.random_output_tables.lp_grouping import find_classes, find_patterns, spread
from duckdb_anon.kernels.random_output_tables.output_tables import cover
from duckdb_anon.model.coded_table import Attribute
from tests.reference.cover_lp import distances, in_tree, merged_cost, nominal, ordered

CENSUS = ("RELATE", "SEX", "AGE", "MARST", "RACE", "EDUC", "UHRSWORK")
DELTAS = (1 / 5, 1 / 6, 1 / 10)
MILLION = """select * replace (AGE + (random() * 5)::int - 2 as AGE, UHRSWORK + (random() * 5)::int - 2 as UHRSWORK)
from census, range(25) limit 1000000"""


def coded(query: str, columns: tuple[str, ...]) -> list[Attribute]:
    """Code columns of a query."""
    table = duckdb.sql(f"select {', '.join(columns)} from ({query})").to_arrow_table()
    return [code_column("benchmark", name, table[name], "") for name in columns]


def timed(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Seconds of the first and of the fastest run."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken[0], min(taken)


def speed(name: str, qi: list[Attribute], groups: np.ndarray, rounds: int = 3) -> None:
    """Print the time of all attributes for each delta."""
    for delta in DELTAS:
        first, best = timed(lambda d=delta: [cover(a, groups, d) for a in qi], rounds)
        print(f"{name:32} delta 1/{round(1 / delta):<3} first {first:6.3f} s  best {best:6.3f} s")
    print(f"{'':32} peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


def exactness_on_census(qi: list[Attribute], groups: np.ndarray) -> None:
    """Compare every distinct program of the table with HiGHS."""
    for delta in DELTAS:
        worst, programs, start = 0.0, 0, time.perf_counter()
        for attribute in qi:
            classes = find_classes(attribute, groups)
            cost = cover(attribute, groups, delta).cost
            for patterns in find_patterns(attribute.kind, classes, classes.first):
                distance = spread(attribute.kind, patterns.gaps)
                expected = np.array([merged_cost(d, c, delta) for d, c in zip(distance, patterns.count, strict=True)])
                group = classes.group[patterns.member[:, 0]]
                span = np.ptp(attribute.positions[classes.code[patterns.member]], axis=1)
                difference = np.abs(cost[group] / np.where(span > 0, span, 1.0) - expected[patterns.pattern_of])
                worst, programs = max(worst, float(difference.max())), programs + len(expected)
        print(
            f"census, delta 1/{round(1 / delta)}: {len(np.unique(groups)) * len(qi):,} groups, {programs:,} distinct "
            f"programs, largest difference {worst:.1e}; HiGHS {time.perf_counter() - start:.0f} s"
        )


def random_groups(number: int) -> Iterator[tuple[Attribute, float]]:
    """Random groups of 2 to 200 rows with ties, of every kind, with deltas they can meet."""
    rng = np.random.default_rng(0)
    for _ in range(number):
        rows = int(np.exp(rng.uniform(np.log(2), np.log(200))))
        delta = max(float(rng.choice([1.0, 0.75, 0.5, 0.37, 0.3, 1 / 5, 1 / 6, 1 / 10])), 1 / rows)
        most = max(2, int(rows * rng.random()))
        kind = rng.integers(4)
        if kind == 0:
            yield ordered(rng.integers(0, most, rows)), delta
        elif kind == 1:
            yield ordered(rng.normal(size=rows).round(int(rng.integers(0, 4)))), delta
        elif kind == 2:
            yield nominal(rng.integers(0, most, rows)), delta
        else:
            yield in_tree(rng.integers(0, 14, rows), [3, 1, 5, 2, 3]), delta


def exactness_on_random_groups(number: int) -> None:
    """Compare random groups with HiGHS."""
    worst, own, reference = 0.0, 0.0, 0.0
    for attribute, delta in random_groups(number):
        start = time.perf_counter()
        cost = cover(attribute, np.zeros(len(attribute.codes), dtype=np.int64), delta).cost[0]
        middle = time.perf_counter()
        distance = distances(attribute)
        expected = merged_cost(distance, np.bincount(attribute.codes), delta)
        own, reference = own + middle - start, reference + time.perf_counter() - middle
        worst = max(worst, abs(cost - expected) / max(float(distance.max()), 1e-300))
    print(
        f"{number:,} random groups one at a time: largest difference {worst:.1e}; {own:.0f} s, HiGHS {reference:.0f} s"
    )


def main() -> None:
    """Print everything."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--groups", type=int, default=5000)
    arguments.add_argument("--million", action="store_true")
    given = arguments.parse_args()
    duckdb.sql(f"create table census as from read_csv('{given.folder / 'census.csv'}')")
    *qi, income = coded("census", (*CENSUS, "INCWAGE"))
    leaves = partition(tuple(qi), income.codes, FrequencyDiversity(10), cut="median", width="spread")
    small = assign(leaves, income.codes, 10)
    speed("census, paper's groups", qi, small)
    speed("census, groups cut by loss", qi, partition(tuple(qi), income.codes, FrequencyDiversity(10), cut="loss"))
    if given.million:
        *wide, income_wide = coded(MILLION, (*CENSUS, "INCWAGE"))
        groups = partition(tuple(wide), income_wide.codes, FrequencyDiversity(10), cut="loss")
        speed(f"1M rows, {groups.max() + 1:,} groups", wide, groups, 1)
    exactness_on_census(qi, small)
    exactness_on_random_groups(given.groups)


if __name__ == "__main__":
    main()
