"""The corpus of analytical queries (`tests/corpus`), and the releases it is asked of."""

import csv
from collections.abc import Iterator
from pathlib import Path

import duckdb

from duckdb_anon import load
from tests.reference.rewrite_tables import PEOPLE, REGIONS

FOLDER = Path(__file__).parent.parent / "corpus"
VERDICTS = FOLDER / "verdicts.csv"
ROWS = 600
_ROLES = "qi := ['age', 'sex', 'region', 'born', 'weight'], sensitive := 'disease', keep := ['cost']"
RELEASES = {
    "rows": f"muco('people', 0.5, {_ROLES}, seed := 1)",
    "boxes": f"mondrian('people', 5, {_ROLES}, seed := 1)",
    "buckets": f"anatomy('people', 2, {_ROLES}, seed := 1)",
    "sliced": f"slicing('people', 2, columns := [['age', 'sex'], ['region', 'born', 'weight'], ['disease']], {_ROLES}, seed := 1)",
    "randomized": "rr_distort('people', p := 0.8, qi := ['age', 'sex', 'region'], sensitive := 'disease', "
    "keep := ['cost', 'born', 'weight'], scope := 'both', seed := 1)",
    "counts": "diffgen('(FROM people WHERE age IS NOT NULL)', 2.0, domain := 'observed', qi := ['age', 'sex', 'region'], sensitive := 'disease', seed := 1)",
    "sampled": f"composition('people', 4, {_ROLES}, seed := 1)",
}
"""A release of each shape, by the method that makes it."""


def queries() -> Iterator[tuple[str, str]]:
    """Name (file.query) and text of every query."""
    for file in sorted(FOLDER.glob("*.sql")):
        for piece in file.read_text().split("-- name: ")[1:]:
            name, text = piece.split("\n", 1)
            yield f"{file.stem}.{name.strip()}", text.strip().rstrip(";")


def verdicts() -> dict[tuple[str, str], tuple[str, float | None]]:
    """(query, shape) to its verdict, answered, or refused and why, and the median relative error of its answers."""
    with VERDICTS.open() as lines:
        rows = list(csv.DictReader(lines))
    return {
        (row["query"], row["shape"]): (row["verdict"], float(row["error"]) if row["error"] else None) for row in rows
    }


def database() -> duckdb.DuckDBPyConnection:
    """The original, its dimension, and the releases, each named by its shape with an r_ before it."""
    # ties that a query leaves open, as ORDER BY count(*) LIMIT 5 does, are broken by threads that run at the same time
    con = duckdb.connect(config={"threads": 1})
    load(con)
    con.execute(PEOPLE.format(rows=ROWS))
    con.execute("update people set disease = 'none' where disease is null")  # a MAP of counts cannot name NULL
    con.execute(REGIONS)
    for shape, call in RELEASES.items():
        try:
            con.execute(f"create table r_{shape} as from {call}")
        except Exception as e:
            print(shape, str(e)[:300])
    return con
