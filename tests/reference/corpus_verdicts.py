"""Judges the corpus: `python -m tests.reference.corpus_verdicts [shape ...]` writes verdicts.csv anew, to be read over."""

import csv
import re
import statistics
import sys

import duckdb

from tests.reference.corpus import RELEASES, VERDICTS, database, queries, verdicts

ROLES = "qi := ['age', 'sex', 'region', 'born', 'weight'], sensitive := 'disease'"


_NOT_COMPARED = re.compile("nothing tells|nothing distinguishes|no aggregate to compare|have the same keys")
"""Why an answer has no place beside the original's: its rows have no keys, or are no numbers."""


def judge(con: duckdb.DuckDBPyConnection, query: str, shape: str) -> tuple[str, float | None, list[tuple[object, ...]]]:
    """A query's verdict on a release, its error, and the hard-bounded answers that do not hold the truth.

    Returns:
        'answered', or 'refused: ' and the beginning of the reason, a failure is raised; the median relative error, None
        where there is none.
    """
    try:
        row = con.execute(
            f"select rewrite_query($1, 'people', 'r_{shape}', bounds := 'sure', {ROLES})", [query]
        ).fetchone()
    except duckdb.Error as error:
        reason = re.sub(r" \[[a-z-]+\]$", "", str(error).split("\n")[0].split("rewrite_query: ")[-1])
        return f"refused: {reason.removeprefix('Invalid Input Error: ')[:90]}", None, []
    try:
        con.execute(row[0])
        rows = con.execute(
            "select keys, measure, original, low, high, confidence, relative_error, estimate "
            f"from relative_error($1, 'people', 'r_{shape}', {ROLES}) where original is not null",
            [query],
        ).fetchall()
    except duckdb.Error as error:
        if "which groups exist" in str(error):
            return "refused: most records are in groups below half a record", None, []
        if _NOT_COMPARED.search(str(error)) is None:
            raise
        return "answered", None, []
    wrong = [row[:5] for row in rows if row[5] == 1 and not _holds(*row[2:5])]
    errors = [row[6] for row in rows if row[6] is not None]
    return "answered", round(statistics.median(errors), 3) if errors else None, wrong


def _holds(truth: float, low: float | None, high: float | None) -> bool:
    above = low is None or truth >= low - 1e-6 * (1 + abs(low))
    return above and (high is None or truth <= high + 1e-6 * (1 + abs(high)))


def main() -> None:
    """Write the verdicts of the shapes and files that are named, all by default."""
    con = database()
    known = verdicts() if VERDICTS.exists() else {}
    files = [name for name in sys.argv[1:] if name not in RELEASES]
    for shape in [name for name in sys.argv[1:] if name in RELEASES] or list(RELEASES):
        for name, query in queries():
            if files and name.split(".")[0] not in files:
                continue
            try:
                verdict, error, wrong = judge(con, query, shape)
            except duckdb.Error as failure:
                verdict, error, wrong = f"FAILED {str(failure)[:200]}", None, []
            known[name, shape] = verdict, error
            if wrong or verdict.startswith("FAILED"):
                print(shape, name, verdict, wrong[:3], flush=True)
    with VERDICTS.open("w") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(["query", "shape", "verdict", "error"])
        writer.writerows(
            [*key, verdict, "" if error is None else error] for key, (verdict, error) in sorted(known.items())
        )


if __name__ == "__main__":
    main()
