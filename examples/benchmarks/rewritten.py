"""How much longer a rewritten query takes on a release than the query itself on a plain table.

    python examples/benchmarks/rewritten.py [census.csv] [--rows 1000000] [--shapes boxes buckets] [--bounds none sure]
        [--database kept.duckdb] [--all] [--bare]

The same people in a plain table and in releases of each shape; every query is run on the plain table and, rewritten, on
the release, one after the other, several times each. Prints the ratio of the least processor seconds (user and system
time of all threads): median and worst of each shape, apart for queries that read a sensitive column that buckets or
slices hide, and with --all each query. With --bare the releases are those of CREATE TABLE AS, which say nothing of
themselves. Without a file the package's own sample is used. Rewriting is not in the time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from pathlib import Path

import duckdb

import duckdb_anon

QI = "qi := ['age', 'sex', 'race', 'marst', 'educ'], categorical := ['sex', 'race', 'marst']"
ROLES = f"{QI}, sensitive := 'job', keep := ['wage', 'hours']"
NAMES = {
    "age": ("AGE", "age"),
    "sex": ("SEX", "gender"),
    "race": ("RACE", "race"),
    "marst": ("MARST", "marital_status"),
    "educ": ("EDUC", "education"),
    "hours": ("UHRSWORK", "hours_per_week"),
    "wage": ("INCWAGE", "salary"),
}
CODED = ("sex", "race", "marst", "educ")
"""Columns that are codes in the census and texts in the sample."""
RELEASES = {
    "rows": f"muco('people', 0.25, {ROLES}, seed := 1)",
    "boxes": f"mondrian('people', 10, {ROLES}, seed := 1)",
    "buckets": f"anatomy('people', 4, {ROLES}, seed := 1)",
    "sliced": "slicing('people', 4, columns := [['age', 'sex', 'race'], ['marst', 'educ'], ['job']], "
    f"{ROLES}, seed := 1)",
    "randomized": "rr_distort('people', p := 0.8, qi := ['age', 'sex', 'race', 'marst', 'educ'], sensitive := 'hours', "
    "keep := ['wage'], scope := 'both', seed := 1)",
}
QUERIES = (
    "SELECT count(*) FROM people WHERE age > 40",
    "SELECT sex, count(*) FROM people GROUP BY sex",
    "SELECT age, count(*) FROM people GROUP BY age",
    "SELECT count(*) FROM people WHERE age < 30 AND sex = 1",
    "SELECT avg(wage) FROM people WHERE age BETWEEN 20 AND 30",
    "SELECT sex, count(*) FROM people WHERE age > 25 GROUP BY sex",
    "SELECT marst, sum(wage) FROM people WHERE age < 40 GROUP BY marst",
    "SELECT hours, count(*) FROM people WHERE sex = 1 GROUP BY hours",
    "SELECT sum(wage) FROM people WHERE educ >= 9 AND marst = 1 AND race IN (1, 2)",
    "SELECT marst, avg(age) FROM people GROUP BY marst",
    "SELECT race, sex, count(*), sum(wage) FROM people WHERE age BETWEEN 30 AND 50 GROUP BY race, sex",
    "SELECT count(*), sum(hours) FROM people WHERE hours > 40 AND age < 50",
    "SELECT job, count(*) FROM people GROUP BY job",
    "SELECT job, count(*) FROM people WHERE sex = 1 GROUP BY job",
    "SELECT job, sex, count(*) FROM people WHERE age < 40 GROUP BY job, sex",
    "SELECT count(*) FROM people WHERE job = 20",
    "SELECT sex, count(*), avg(wage) FROM people WHERE job IN (20, 21) AND age < 50 GROUP BY sex",
    "SELECT count(*) FROM people WHERE job > 100 AND age < 30",
)
HIDDEN = ("buckets", "sliced")


def open_people(path: str | None, rows: int, database: str | None, shapes: list[str]) -> duckdb.DuckDBPyConnection:
    """A database with the plain table people and its releases; what a kept one has is not made again."""
    con = duckdb.connect(database or ":memory:")
    duckdb_anon.load(con)
    there = {name for (name,) in con.execute("select table_name from duckdb_tables()").fetchall()}
    if "people" not in there:
        source = f"read_csv('{path}')" if path else "anon_sample('census', seed := 1)"
        columns = ", ".join(
            f'"{of_file}" as {name}'
            if path
            else f'dense_rank() over (order by "{of_sample}") as {name}'
            if name in CODED
            else f'"{of_sample}" as {name}'
            for name, (of_file, of_sample) in NAMES.items()
        )
        con.execute("select setseed(0.5)")
        con.execute(
            "create table people as select * replace ((age + floor(random() * 3) - 1)::bigint as age, "
            "(wage + floor(random() * 20000))::bigint as wage) "
            f"from (select {columns} from {source}, range({rows // 1000 + 1}) order by random() limit {rows})"
        )
        con.execute("create table jobs as select *, least(wage // 1000, 400)::bigint as job from people")
        con.execute("drop table people; alter table jobs rename to people")
    for shape in shapes:
        if f"r_{shape}" not in there:
            duckdb_anon.release(con, f"r_{shape}", RELEASES[shape].replace(", seed := 1", ""), independent=True)
    return con


def spent(con: duckdb.DuckDBPyConnection, text: str) -> float:
    """Processor seconds of one run."""
    start = time.process_time()
    con.execute(text).fetchall()
    return time.process_time() - start


def ratio(con: duckdb.DuckDBPyConnection, query: str, rewritten: str, runs: int) -> tuple[float, float]:
    """Least processor seconds of both, run in turn."""
    plain, other = zip(*((spent(con, query), spent(con, rewritten)) for _ in range(runs)), strict=True)
    return min(plain), min(other)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("census", nargs="?")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--shapes", nargs="+", default=list(RELEASES), choices=list(RELEASES))
    parser.add_argument("--bounds", nargs="+", default=["none", "sure"])
    parser.add_argument("--database", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="print each query")
    parser.add_argument("--bare", action="store_true", help="releases without a description")
    given = parser.parse_args()
    con = open_people(given.census, given.rows, str(given.database) if given.database else None, given.shapes)
    print(f"{'release':12} {'bounds':7} {'queries':24} {'number':>6} {'median':>7} {'worst':>7}")
    for shape in given.shapes:
        release = f"bare_{shape}" if given.bare else f"r_{shape}"
        if given.bare:
            con.execute(f"create or replace table {release} as from r_{shape}")
            con.execute("checkpoint")  # as the others are: what only the log of a file has is read slower
        for bounds in given.bounds:
            found: dict[str, list[tuple[float, str]]] = defaultdict(list)
            for query in QUERIES:
                if shape == "randomized" and "job" in query:
                    continue
                call = (
                    f"select rewrite_query($1, 'people', '{release}', bounds := '{bounds}', {QI}, sensitive := 'job')"
                )
                rewritten = con.execute(call, [query]).fetchall()[0][0]
                plain, other = ratio(con, query, rewritten, given.runs)
                kind = "of the hidden column" if shape in HIDDEN and "job" in query else "of other columns"
                found[kind if shape in HIDDEN else "all"].append((other / plain, query))
                if given.all:
                    print(f"    {plain * 1e3:8.1f} ms {other * 1e3:8.1f} ms {other / plain:7.1f}  {query}", flush=True)
            for kind, ratios in found.items():
                only = [one for one, _ in ratios]
                print(
                    f"{shape:12} {bounds:7} {kind:24} {len(only):6} {statistics.median(only):7.1f} {max(only):7.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
