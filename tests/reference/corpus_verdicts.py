"""Judges the corpus: `python -m tests.reference.corpus_verdicts [shape ...]` writes verdicts.csv anew, to be read over."""

from __future__ import annotations

import csv
import re
import sys

import duckdb

from tests.reference.corpus import RELEASES, VERDICTS, database, queries, verdicts

ROLES = "qi := ['age', 'sex', 'region', 'born', 'weight'], sensitive := 'disease'"


def judge(con: duckdb.DuckDBPyConnection, query: str, shape: str) -> tuple[str, list[tuple[object, ...]]]:
    """A query's verdict on a release, and the hard-bounded answers that do not hold the truth.

    Returns:
        'answered', or 'refused: ' and the beginning of the reason; a failure is raised.
    """
    try:
        row = con.execute(
            f"select rewrite_query($1, 'people', 'r_{shape}', bounds := 'sure', {ROLES})", [query]
        ).fetchone()
    except duckdb.Error as error:
        reason = re.sub(r" \[[a-z-]+\]$", "", str(error).split("\n")[0].split("rewrite_query: ")[-1])
        return f"refused: {reason.removeprefix('Invalid Input Error: ')[:90]}", []
    assert row is not None
    names = [column[0] for column in con.execute(row[0]).description]
    if not any(name.endswith("_low") for name in names):
        return "answered", []
    wrong = con.execute(
        f"""select keys, measure, original, low, high from relative_error($1, 'people', 'r_{shape}', {ROLES})
        where confidence = 1 and original is not null
          and not (original between low - 1e-6 * (1 + abs(low)) and high + 1e-6 * (1 + abs(high)))""",
        [query],
    ).fetchall()
    return "answered", wrong


def main() -> None:
    """Write the verdicts of the shapes named, all by default."""
    con = database()
    known = verdicts() if VERDICTS.exists() else {}
    for shape in sys.argv[1:] or list(RELEASES):
        for name, query in queries():
            try:
                known[name, shape], wrong = judge(con, query, shape)
            except duckdb.Error as error:
                known[name, shape], wrong = f"FAILED {str(error)[:200]}", []
            if wrong or known[name, shape].startswith("FAILED"):
                print(shape, name, known[name, shape], wrong[:3])
    with VERDICTS.open("w") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(["query", "shape", "verdict"])
        writer.writerows([query, shape, verdict] for (query, shape), verdict in sorted(known.items()))


if __name__ == "__main__":
    main()
