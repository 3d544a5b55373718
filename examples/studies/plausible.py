"""Which engine errs less? Closed forms, plausible tables, and the default, against the truth on five tables.

A workload is 40 ranges on one to three quasi-identifiers that hold for at least a hundredth of the rows, each asked
three times: COUNT, SUM of the sensitive column, and COUNT of an interval of it. Each release answers these 120 by
`relative_error` with each engine. Printed are the mean relative errors over all seeds, of each of the three and of all,
and the processor seconds a question.

    python examples/studies/plausible.py FOLDER     # with census.csv, adult.csv and visits.csv
    python examples/studies/plausible.py FOLDER --tables census --methods mondrian rr_distort --seeds 3 --rows 40000
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

import duckdb_anon

CALLS = {
    "mondrian": "mondrian('{}', 10)",
    "rr_distort": "rr_distort('{}', p := 0.8, scope := 'both', seed := {seed})",
    "anatomy": "anatomy('{}', {}, seed := {seed})",
    "muco": "muco('{}', 0.1, seed := {seed})",
}
ENGINES = ("closed", "imputed", "auto")
CONDITIONS = 40
LEAST = 0.01


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
    Table(
        "made",
        """select age, region, ['none', 'primary', 'secondary', 'tertiary'][1 + least(3, (age // 20 + region % 3) // 2)]
          as school, ['day', 'night', 'both'][1 + (hash(i, 5) % 5 + age // 30)::integer % 3] as shift,
          round(200 * exp(region / 9 + (hash(i, 3) % 1000) / 400))::integer as pay from (
          select i, 18 + (hash(i, 1) % 40 + hash(i, 4) % 30)::integer as age, sqrt(hash(i, 2) % 144)::integer as region
          from range(20000) as r(i))""",
        ("age", "region", "school", "shift"),
        "pay",
    ),
)


def literal(value: object) -> str:
    return repr(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"


def made(con: duckdb.DuckDBPyConnection, folder: Path, table: Table, rows: int) -> None:
    """Make a table of `rows` of its rows, with labels."""
    con.execute(
        f"create or replace table {table.name} as select * exclude (place) from (select *, row_number() over () as "
        f"place from ({table.select.format(folder)})) as r order by hash(place) limit {rows}"
    )
    for column in table.qi:
        con.execute(f"comment on column {table.name}.{column} is 'anon: quasi'")
    con.execute(f"comment on column {table.name}.{table.target} is 'anon: sensitive'")


def predicates(con: duckdb.DuckDBPyConnection, table: Table, most: int, seed: int = 7) -> list[str]:
    """Ranges (subsets of texts) on one to three columns, each of which holds for a hundredth of the rows or more."""
    rng = np.random.default_rng(seed)
    domains = {
        name: [v for (v,) in con.execute(f"select distinct {name} from {table.name} order by 1").fetchall()]
        for name in table.qi
    }
    asked: list[str] = []
    while len(asked) < most:
        parts = []
        for name in rng.choice(table.qi, size=1 + len(asked) % 3, replace=False):
            values = domains[name]
            wide = max(1, int(np.ceil(len(values) * rng.uniform(0.1, 0.6))))
            if isinstance(values[0], str):
                chosen = rng.choice(len(values), size=wide, replace=False)
                parts.append(f"{name} in ({', '.join(literal(values[i]) for i in sorted(chosen))})")
            else:
                low = int(rng.integers(0, len(values) - wide + 1))
                parts.append(f"{name} between {literal(values[low])} and {literal(values[low + wide - 1])}")
        where = " and ".join(parts)
        count = f"select count(*) filter (where {where}) / count(*), sum({table.target}) filter (where {where})"
        ((share, total),) = con.execute(f"{count} from {table.name}").fetchall()
        if share >= LEAST and total:
            asked.append(where)
    return asked


def questions(con: duckdb.DuckDBPyConnection, table: Table, seed: int) -> list[tuple[str, str]]:
    """Type and text of each question of a workload."""
    rng = np.random.default_rng(seed)
    (ends,) = con.execute(
        f"select quantile_disc({table.target}, {[i / 10 for i in range(11)]}) from {table.name}"
    ).fetchall()[0]
    found = []
    for where in predicates(con, table, CONDITIONS, seed):
        low = int(rng.integers(0, 8))
        high = int(rng.integers(low + 2, 11))
        among = f"{table.target} between {literal(ends[low])} and {literal(ends[high])}"
        for kind, measure, condition in (
            ("COUNT", "count(*)", where),
            ("SUM", f"sum({table.target})", where),
            ("COUNT of values", "count(*)", f"{where} and {among}"),
        ):
            found.append((kind, f"select {measure} as x from {table.name} where {condition}"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", nargs="+", default=[table.name for table in TABLES])
    parser.add_argument("--methods", nargs="+", default=list(CALLS), choices=list(CALLS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=10_000)
    given = parser.parse_args()
    con = duckdb_anon.connect()
    kinds = ("COUNT", "SUM", "COUNT of values")
    print(f"| | {' | '.join(kinds)} | all | s a question |\n|---|---|---|---|---|---|")
    for table in [one for one in TABLES if one.name in given.tables]:
        made(con, given.folder, table, given.rows)
        for method in given.methods:
            errors: dict[tuple[str, str], list[float]] = {}
            spent = dict.fromkeys(ENGINES, 0.0)
            for seed in range(1, given.seeds + 1):
                call = CALLS[method].format(table.name, table.diversity, seed=seed)
                con.execute(f"create or replace table released as from {call}")
                for kind, query in questions(con, table, seed):
                    for engine in ENGINES:
                        began = time.process_time()
                        row = con.execute(
                            "select coalesce(relative_error, original) from relative_error($1, $2, 'released', "
                            "bounds := 'none', engine := $3)",
                            [query, table.name, engine],
                        ).fetchone()
                        spent[engine] += time.process_time() - began
                        errors.setdefault((engine, kind), []).append(float(row[0] if row else "nan"))
            for engine in ENGINES:
                means = [np.mean(errors[engine, kind]) for kind in kinds]
                cells = [*(f"{mean:.4f}" for mean in (*means, np.mean(means)))]
                each = spent[engine] / sum(len(errors[engine, kind]) for kind in kinds)
                print(f"| {table.name}, {method}: {engine} | {' | '.join(cells)} | {each:.3f} |", flush=True)


if __name__ == "__main__":
    main()
