"""Do learnt shares and plausible tables err less than even shares? Releases of four tables against the truth.

A workload asks COUNT, SUM and AVG of the sensitive column under one to four predicates on quasi-identifiers that hold
for at least a thousandth of the rows. Each release answers it by `estimate`, with even and with learnt shares, and by
the mean over 10 and 20 tables that `impute` draws. Printed are the mean and the median relative error, of COUNT and SUM
and of all three, and the processor seconds that the answers took.

    python examples/studies/plausible.py FOLDER     # with census.csv, adult.csv and visits.csv
    python examples/studies/plausible.py FOLDER --queries 400 --methods mondrian incognito --draws
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

import duckdb_anon

CALLS = {
    "mondrian": "mondrian('{}', 10)",
    "incognito": "incognito('{}', 10)",
    "anatomy": "anatomy('{}', {})",
    "rr_distort": "rr_distort('{}', p := 0.8)",
    "muco": "muco('{}', 0.1)",
}
Answer = tuple[float, float, float]


@dataclass(frozen=True)
class Table:
    """A table: its name, the SELECT that makes it of the folder, and its columns by role."""

    name: str
    select: str
    qi: tuple[str, ...]
    target: str
    diversity: int = 4


TABLES = (
    Table(
        "census",
        "select * exclude OCC from read_csv('{}/census.csv')",
        ("RELATE", "SEX", "AGE", "MARST", "RACE", "EDUC", "UHRSWORK"),
        "INCWAGE",
    ),
    Table(
        "adult",
        "select age, workclass, education_num, marital_status, race, sex, native_country, hours_per_week "
        "from read_csv('{}/adult.csv') where workclass is not null and native_country is not null",
        ("age", "workclass", "education_num", "marital_status", "race", "sex", "native_country"),
        "hours_per_week",
        2,  # almost half of the rows have 40 hours
    ),
    Table(
        "patients",
        "select any_value(month_of_birth) as month, any_value(year_of_birth) as year, any_value(race) as race, "
        "any_value(years_of_education) as education, any_value(income) as income from read_csv('{}/visits.csv', "
        "types = {{'diagnosis': 'VARCHAR'}}) where hash(person_id) % 2 = 0 group by person_id",
        ("month", "year", "race", "education"),
        "income",
    ),
    Table(
        "workers",
        "select age, occupation, relationship, sex, hours_per_week, fnlwgt // 10000 as weight, education_num "
        "from read_csv('{}/adult.csv') where occupation is not null",
        ("age", "occupation", "relationship", "sex", "hours_per_week", "weight"),
        "education_num",
        2,
    ),
)


def literal(value: object) -> str:
    return repr(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"


def predicates(con: duckdb.DuckDBPyConnection, table: Table, most: int) -> list[tuple[str, Answer]]:
    """Conditions on one to four columns, with the original's answers."""
    rng = np.random.default_rng(7)
    domains = {
        name: [v for (v,) in con.execute(f"select distinct {name} from {table.name} order by 1").fetchall()]
        for name in table.qi
    }
    asked: list[tuple[str, Answer]] = []
    while len(asked) < most:
        parts = []
        for name in rng.choice(table.qi, size=1 + len(asked) % 4, replace=False):
            values = domains[name]
            wide = max(1, int(np.ceil(len(values) * rng.uniform(0.1, 0.6))))
            if isinstance(values[0], str):
                chosen = rng.choice(len(values), size=wide, replace=False)
                parts.append(f"{name} in ({', '.join(literal(values[i]) for i in sorted(chosen))})")
            else:
                low = int(rng.integers(0, len(values) - wide + 1))
                parts.append(f"{name} between {literal(values[low])} and {literal(values[low + wide - 1])}")
        where = " and ".join(parts)
        truth = plainly(con, table, table.name, where)
        if truth[0] >= 0.001 * plainly(con, table, table.name, "true")[0] and truth[1]:
            asked.append((where, truth))
    return asked


def plainly(con: duckdb.DuckDBPyConnection, table: Table, name: str, where: str) -> Answer:
    row = con.execute(f"select count(*), sum({table.target}), avg({table.target}) from {name} where {where}").fetchone()
    count, total, mean = row or (0, None, None)
    return float(count), float(total or 0), float(mean if mean is not None else "nan")


def estimated(con: duckdb.DuckDBPyConnection, table: Table, release: str, spread: str) -> Callable[[str], Answer]:
    asked = f"select count(*) as a, sum({table.target}) as b, avg({table.target}) as c from {table.name} where "

    def answer(where: str) -> Answer:
        rows = con.execute(
            "select estimate from estimate($query, $release, original := $original, bounds := 'none', "
            "spread := $spread)",
            {"query": asked + where, "release": release, "original": table.name, "spread": spread},
        ).fetchall()
        return tuple(float("nan") if value is None else float(value) for (value,) in rows)  # type: ignore[return-value]

    return answer


def imputed(con: duckdb.DuckDBPyConnection, table: Table, release: str, draws: int) -> Callable[[str], Answer]:
    con.execute(
        f"create or replace table drawn as from impute('{release}', draws := {draws}, "
        f"original := '{table.name}', seed := 1)"
    )

    def answer(where: str) -> Answer:
        each = [plainly(con, table, f"(from drawn where draw = {draw})", where) for draw in range(1, draws + 1)]
        return tuple(np.nanmean(np.array(each), axis=0))  # type: ignore[return-value]

    return answer


def line(name: str, answer: Callable[[str], Answer], asked: list[tuple[str, Answer]], since: float) -> None:
    found = np.array([answer(where) for where, _ in asked])
    errors = np.abs(found / np.array([truth for _, truth in asked]) - 1)
    seconds = time.process_time() - since
    both = errors[:, :2]
    print(
        f"| {name} | {np.nanmean(both):.4f} ({np.nanmedian(both):.4f}) | {np.nanmean(errors):.4f} "
        f"({np.nanmedian(errors):.4f}) | {seconds:.1f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--queries", type=int, default=66)
    parser.add_argument("--tables", nargs="+", default=[table.name for table in TABLES])
    parser.add_argument("--methods", nargs="+", default=list(CALLS), choices=list(CALLS))
    parser.add_argument("--draws", nargs="*", type=int, default=[10, 20])
    given = parser.parse_args()
    con = duckdb_anon.connect()
    print("| | COUNT, SUM: mean (median) relative error | with AVG | processor s |\n|---|---|---|---|")
    for table in [one for one in TABLES if one.name in given.tables]:
        con.execute(f"create table {table.name} as {table.select.format(given.folder)}")
        for column in table.qi:
            con.execute(f"comment on column {table.name}.{column} is 'anon: quasi'")
        con.execute(f"comment on column {table.name}.{table.target} is 'anon: sensitive'")
        asked = predicates(con, table, given.queries)
        for method in given.methods:
            call = CALLS[method]
            release = f"{table.name}_{method}"
            con.execute(f"create table {release} as from {call.format(table.name, table.diversity)[:-1]}, seed := 1)")
            for spread in ("uniform", "learnt"):
                began = time.process_time()
                line(
                    f"{table.name}, {method}: estimate, {spread}", estimated(con, table, release, spread), asked, began
                )
            for draws in given.draws:
                began = time.process_time()
                line(f"{table.name}, {method}: {draws} draws", imputed(con, table, release, draws), asked, began)


if __name__ == "__main__":
    main()
