"""Hard bounds against the truth, cell by cell: `python -m tests.fuzz.bounds --cells 1000000 --seed 1`.

Random tables with NULLs, dates, floats and timestamps, released by every method; random queries with nested conditions and
expressions, keys that are NULL, subtotals, FILTER, HAVING-free. Every cell of every answer that has hard bounds is held
against the original's. A violation is shown with what makes it again.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb

import duckdb_anon

METHODS = (
    "mondrian('t', {k}{roles})", "mondrian('t', {k}, edges := 'tight'{roles})", "mondrian('t', {k}, mode := 'relaxed'{roles})",
    "incognito('t', {k}{roles})", "incognito('t', {k}, max_suppression := 0.3{roles})", "anatomy('t', 2{roles})",
    "anatomy('t', 1{roles})", "slicing('t', 2{roles})", "merging('t', 2{roles})", "muco('t', 0.5{roles})",
    "composition('t', {k}{roles})", "probabilistic('t', {k}{roles})", "hybrid('t', {k}{roles})", "microaggregate('t', {k}{roles})",
    "rank_swap('t', 10{roles})", "rr_distort('t', p := 0.8{roles})", "rr_distort('t', p := 1{roles})",
    "laplace_on_groups('t', {k}, 1.0{plain})", "diffgen('t', 1.0{plain})", "one_to_m_generalize('t', {k}, 1{person})",
    "rmr('t', {k}{person})",
)  # fmt: skip
QUASI = ("age", "born", "weight", "sex", "region", "seen", "cost")
SLACK = 1e-6


@dataclass
class Tally:
    """Cells with hard bounds, by method; what was asked and refused; violations with what makes them again."""

    cells: Counter[str] = field(default_factory=Counter)
    queries: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def shown(self) -> str:
        """The tally as text."""
        lines = [f"{'method':<24}{'queries':>9}{'refused':>9}{'cells':>10}"]
        lines += [f"{m:<24}{n:>9}{self.refused[m]:>9}{self.cells[m]:>10}" for m, n in sorted(self.queries.items())]
        total = (self.queries.total(), self.refused.total(), self.cells.total())
        return "\n".join([*lines, "{:<24}{:>9}{:>9}{:>10}".format("all", *total), f"{len(self.violations)} violations"])


def table(rng: random.Random, rows: int) -> list[str]:
    """Statements that make the table `t` and its tree."""
    null = rng.choice((0.0, 0.0, 0.1, 0.3))

    def or_null(value: str) -> str:
        return f"case when random() < {null} then null else {value} end"

    wide = rng.choice((6, 30, 90))
    columns = (
        f"{or_null(f'(random() * {wide})::integer - 3')} as age",
        f"{or_null(f'''date '1970-01-01' + (random() * {wide * 20})::integer''')} as born",
        f"{or_null(f'round(random() * {wide}, {rng.choice((0, 1, 3))}) - 2')}::{rng.choice(('double', 'float', 'decimal(9,3)'))}"
        " as weight",
        or_null("(['F', 'M', 'X', ''])[1 + (random() * 3)::integer]") + " as sex",
        or_null("(['n1', 'n2', 's1', 's2', 's3'])[1 + (random() * 4)::integer]") + " as region",
        or_null(f"timestamp '2020-01-01' + to_hours((random() * {wide * 9})::integer)") + " as seen",
        or_null("(['flu', 'cold', 'acne', 'gout', 'mumps'])[1 + (random() ** 2 * 4)::integer]") + " as disease",
        or_null("(random() * 100)::integer - 20") + " as cost",
        f"'p' || (i // {rng.choice((1, 1, 3))}) as who",
    )  # fmt: skip
    return [
        f"select setseed({rng.random()})",
        f"create or replace table t as select {', '.join(columns)} from range({rows}) as r(i)",
        "create or replace table tree as select * from (values ('n1', 'north', '*'), ('n2', 'north', '*'), "
        "('s1', 'south', '*'), ('s2', 'south', '*'), ('s3', 'south', '*')) v(leaf, half, everything)",
        "create or replace table ills as select * from (values ('flu', 'hot', '*'), ('cold', 'hot', '*'), "
        "('acne', 'skin', '*'), ('gout', 'old', '*'), ('mumps', 'hot', '*')) v(leaf, kind, everything)",
    ]


def value(rng: random.Random, depth: int) -> str:
    """A numeric expression."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(
            ("age", "weight", "cost", "age", "cost", str(rng.randint(-5, 40)), "year(born)", "hour(seen)")
        )
    a, b = value(rng, depth - 1), value(rng, depth - 1)
    return rng.choice(
        (
            f"({a} + {b})", f"({a} - {b})", f"({a} * {rng.randint(-2, 3)})", f"abs({a})", f"({a} % 7)", f"-({a})",
            f"coalesce({a}, {b})", f"least({a}, {b})", f"greatest({a}, {rng.randint(-5, 50)})", f"round({a})",
            f"nullif({a}, {rng.randint(0, 9)})", f"({a} * {b})", f"floor({a} / 3)", f"sign({a})",
            f"case when {condition(rng, depth - 1)} then {a} else {b} end", f"case when {condition(rng, depth - 1)} then {a} end",
            "datediff('day', born, date '1980-06-01')", "date_part('month', born)",
        )
    )  # fmt: skip


def condition(rng: random.Random, depth: int) -> str:
    """A condition."""
    if depth > 0 and rng.random() < 0.6:
        a, b = condition(rng, depth - 1), condition(rng, depth - 1)
        return rng.choice((f"({a} and {b})", f"({a} or {b})", f"not ({a})", f"(({a}) is not true)", f"(({a}) is null)"))
    sign = rng.choice(("=", "<>", "<", "<=", ">", ">="))
    n, m = rng.randint(-4, 40), rng.randint(-4, 40)
    day, other = (f"date '1970-01-01' + {rng.randint(0, 1500)}" for _ in range(2))
    return rng.choice(
        (
            f"age {sign} {n}", f"age between {min(n, m)} and {max(n, m)}", f"age in ({n}, {m})", "age is null", "age % 2 = 0",
            f"weight {sign} {n}.5", f"weight between {min(n, m)} and {max(n, m)}", "weight is not null",
            f"born {sign} {day}", f"born between least({day}, {other}) and greatest({day}, {other})", "born is null",
            f"born {sign} date '1972-05-05'", f"seen {sign} timestamp '2020-01-0{rng.randint(1, 9)} 07:00:00'", "sex = 'F'",
            "sex <> 'M'", "sex in ('M', '')", "sex is null", "sex like 'F%'", "coalesce(sex, 'M') = 'M'", "region = 'n1'",
            "region in ('n1', 's2')", "region is null", "region not in ('s3', 'n2')", "disease = 'flu'", "disease <> 'cold'",
            "disease is null", "disease in ('gout', 'flu')", f"cost {sign} {n}", "cost is null", f"cost {sign} age",
            f"age + cost {sign} {n}", f"abs(age - {n}) < 5", f"coalesce(age, {n}) {sign} {m}", "upper(sex) = 'F'",
            f"year(born) {sign} {rng.randint(1970, 1974)}", f"nullif(age, {n}) {sign} {m}", f"{value(rng, min(depth, 1))} {sign} {n}",
        )
    )  # fmt: skip


def measure(rng: random.Random) -> str:
    """An aggregate, perhaps with FILTER."""
    column = rng.choice(("age", "sex", "cost", "disease", "born", "region", "weight"))
    made = rng.choice(
        (
            "count(*)", f"count({column})", f"count(distinct {column})", f"count_if({condition(rng, 1)})",
            *(f"{f}({value(rng, rng.choice((0, 0, 1, 2)))})" for f in ("sum", "avg", "min", "max", "median", "sum", "avg")),
            f"sum(case when {condition(rng, 1)} then 1 else 0 end)", f"quantile_cont({rng.choice(('age', 'weight', 'cost'))}, 0.9)",
        )
    )  # fmt: skip
    return f"{made} filter (where {condition(rng, 1)})" if rng.random() < 0.2 and "count_if" not in made else made


KEYS = (
    "sex", "region", "age", "disease", "born", "cost", "age // 5", "(sex is null)", "year(born)", "upper(sex)", "cost % 10",
    "coalesce(region, 'none')", "case when age < 10 then 'young' else sex end", "month(born)",
)  # fmt: skip


def query(rng: random.Random) -> str:
    """A query over t."""
    keys = rng.sample(KEYS, rng.choice((0, 1, 1, 2, 2)))
    where = f" where {condition(rng, rng.choice((1, 2, 3)))}" if rng.random() < 0.7 else ""
    shown = [f"{key} as k{i}" for i, key in enumerate(keys)]
    shown += [f"{measure(rng)} as m{i}" for i in range(rng.randint(1, 4))]
    text = f"select {', '.join(shown)} from t{where}"
    if not keys:
        return text
    places = ", ".join(str(i + 1) for i in range(len(keys)))
    return f"{text} group by {rng.choice((places, places, 'all', f'rollup({places})', f'cube({places})'))}"


def _roles(rng: random.Random, template: str) -> tuple[str, str]:
    """Role arguments of a method's call, and of a measure's."""
    whole, of_persons = "{roles}" not in template, "{person}" in template
    quasi = list(QUASI) if whole else rng.sample(QUASI, rng.choice((1, 2, 2, 3, 4)))
    trees = {"region": "tree"} if "region" in quasi and rng.random() < 0.5 else {}
    kept = "" if whole else f", keep := {[name for name in QUASI if name not in quasi]}"
    common = f", qi := {quasi}, sensitive := 'disease'"
    if of_persons:
        common, trees = f"{common}, person := 'who'", trees | {"disease": "ills"}
    common += f", hierarchies := {trees}" if trees else ""
    return common + kept + (", changing := 'set'" if of_persons else ""), common


def campaign(cells: int, seed: int, start: int = 0, queries: int = 12, seconds: float = math.inf) -> Tally:
    """Ask until so many cells with hard bounds have been held against the truth.

    Args:
        cells: how many.
        seed: seed of the campaign.
        start: number of the first table.
        queries: how many are asked of each release.
        seconds: how long at most, by hand.
    """
    tally, number, end = Tally(), start, time.monotonic() + seconds
    con = duckdb_anon.connect()
    con.execute("set threads = 1")
    while tally.cells.total() < cells and time.monotonic() < end:
        rng = random.Random(f"{seed} {number}")
        for statement in table(rng, rng.choice((4, 12, 40, 150))):
            con.execute(statement).fetchall()
        for template in rng.sample(METHODS, 3):
            _release(con, rng, template, tally, f"seed {seed}, table {number}", queries)
        number += 1
    con.close()
    return tally


def _release(
    con: duckdb.DuckDBPyConnection, rng: random.Random, template: str, tally: Tally, where: str, queries: int
) -> None:
    (roles, asked), method = _roles(rng, template), template.split("(")[0]
    call = template.format(k=rng.choice((1, 2, 3, 5)), roles=roles, plain=roles, person=roles)
    try:
        con.execute(f"create or replace table r as from {call.removesuffix(')')}, seed := 1)")
    except duckdb.Error as error:
        if "internal" in str(error).lower():
            tally.violations.append(f"{where}: {call}: {error}")
        tally.refused[f"({method})"] += 1
        return
    for _ in range(queries):
        _ask(con, query(rng), asked, tally, method, f"{where}: {call}")


def _ask(con: duckdb.DuckDBPyConnection, text: str, roles: str, tally: Tally, method: str, where: str) -> None:
    tally.queries[method] += 1
    try:
        rows = con.execute(
            "select keys, measure, original, low, high from relative_error(?, 't', 'r', bounds := 'hard'" + roles + ") "
            "where confidence = 1 and original is not null", [text],
        ).fetchall()  # fmt: skip
    except duckdb.Error as error:
        if "internal" in str(error).lower() or "Binder" in str(error) or "Catalog" in str(error):
            tally.violations.append(f"{where}: {text}: {error}")
        tally.refused[method] += 1
        return
    tally.cells[method] += len(rows)
    for keys, name, truth, low, high in rows:
        slack = SLACK * max(1.0, abs(truth))
        if (low is not None and truth < low - slack) or (high is not None and truth > high + slack):
            tally.violations.append(f"{where}: {text}: {keys} {name}: {truth} is not in [{low}, {high}]")


def main(arguments: Sequence[str] | None = None) -> int:
    """The campaign by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf)
    given = parser.parse_args(arguments)
    tally = campaign(given.cells, given.seed, given.start, seconds=given.seconds)
    print("\n".join(tally.violations))
    print(tally.shown())
    return bool(tally.violations)


if __name__ == "__main__":
    sys.exit(main())
