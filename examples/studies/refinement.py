"""What an attacker who knows the method learns beyond the released cells: every original that could be behind them.

    PYTHONPATH=. python examples/studies/refinement.py [--records 6] [--values 4,2]

All tables of so few records and values are released, once each. The originals of equal releases are what an attacker
who knows the method and its parameters cannot tell apart (downcoding: Cohen, 2022; refinement of local recoding). The
guess of a record's value is its share over these originals, each weighed by the orders of its records. Cells of one
value are left out. `even` is the guess that spreads a cell evenly, `guess` this one, both the mean probability of the
likeliest value; `left out`: cells of which is known that one of their values has no record, `narrower`: of
which it is an end; `certain`: cells whose value is known.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from math import factorial, prod
from typing import Any

import duckdb

import duckdb_anon

CALLS = (
    ("mondrian(k := 2)", "mondrian('t', 2, qi := ['a', 'b'], sensitive := [], row_id := true)"),
    ("mondrian(k := 3)", "mondrian('t', 3, qi := ['a', 'b'], sensitive := [], row_id := true)"),
    ("mondrian(k := 2, edges := 'tight')",
     "mondrian('t', 2, qi := ['a', 'b'], sensitive := [], edges := 'tight', row_id := true)"),
    ("mondrian(k := 2, mode := 'relaxed')",
     "mondrian('t', 2, qi := ['a', 'b'], sensitive := [], mode := 'relaxed', row_id := true)"),
    ("incognito(k := 2)",
     "incognito('t', 2, qi := ['a', 'b'], sensitive := [], hierarchies := {'a': 'tree'}, row_id := true)"),
    ("one_to_m_generalize(k := 1, l := 2)",
     "one_to_m_generalize('t', 1, 2, qi := ['a', 'b'], person := 'p', sensitive := 's',"
     " hierarchies := {'s': 'tree'}, row_id := true)"),
)  # fmt: skip
HEAD = ("call", "releases", "cells", "even", "guess", "left out", "narrower", "certain")

Record = tuple[int, ...]
Cell = tuple[str, str]


def originals(records: int, sizes: tuple[int, ...]) -> Iterator[tuple[Record, ...]]:
    """Every table of so many records, without regard to their order."""
    return combinations_with_replacement(list(product(*(range(size) for size in sizes))), records)


def orders(table: tuple[Record, ...]) -> int:
    """Number of orders of a table's records that can be told apart."""
    return factorial(len(table)) // prod(factorial(n) for n in Counter(table).values())


def released(con: duckdb.DuckDBPyConnection, call: str, table: tuple[Record, ...]) -> list[tuple[Cell, Record]]:
    """Published cells and record of each row."""
    rows = ", ".join(f"({a}, {b}, {i}, {i})" for i, (a, b) in enumerate(table))
    con.execute(f"create or replace table t as select * from (values {rows}) x(a, b, p, s)")
    found = con.execute(f"select a::varchar, b::varchar, row_id from {call}").fetchall()
    return [((str(a), str(b)), table[i]) for a, b, i in found]


def attacked(con: duckdb.DuckDBPyConnection, call: str, records: int, sizes: tuple[int, ...]) -> list[Any]:
    """Figures of one method, in the order of `HEAD` after the call."""
    behind: dict[Any, dict[tuple[Cell, int], Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
    tables: Counter[Any] = Counter()
    values: dict[tuple[str, int], set[int]] = defaultdict(set)
    for table in originals(records, sizes):
        try:
            rows = released(con, call, table)
        except duckdb.Error as error:
            if "cannot" not in str(error) and "fewer" not in str(error):
                raise
            continue
        weight = orders(table)
        release = tuple(sorted(cells for cells, _ in rows))
        tables[release] += weight
        for cells, record in rows:
            for q, value in enumerate(record):
                behind[release][cells, q][value] += weight
                values[cells[q], q].add(value)
    total, even, guess, left_out, narrower, certain = 0, 0.0, 0.0, 0, 0, 0
    for release, cells_of in behind.items():
        sizes_of = Counter(release)
        for (cells, q), counts in cells_of.items():
            covered = values[cells[q], q]
            if len(covered) == 1:
                continue
            weight = tables[release] * sizes_of[cells]
            total += weight
            even += weight / len(covered)
            guess += weight * max(counts.values()) / counts.total()
            left_out += weight * (len(counts) < len(covered))
            narrower += weight * (not {min(covered), max(covered)} <= set(counts))
            certain += weight * (len(counts) == 1)
    shares = [f"{x / total:.3f}" if total else "-" for x in (even, guess, left_out, narrower, certain)]
    return [len(behind), total, *shares]


def main() -> None:
    """Print a line a call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=6)
    parser.add_argument("--values", default="4,2", help="numbers of values of the two columns")
    given = parser.parse_args()
    sizes = tuple(int(size) for size in given.values.split(","))
    con = duckdb_anon.connect()
    con.execute(
        "create table tree as select v::integer as v, (v // 2)::varchar || '*' as l1, '*' as l2 from range(64) x(v)"
    )
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    for name, call in CALLS:
        print("| " + " | ".join(map(str, [name, *attacked(con, call, given.records, sizes)])) + " |", flush=True)


if __name__ == "__main__":
    main()
