"""Hard bounds against the truth, cell by cell: `python -m tests.fuzz.bounds --cells 1000000 --seed 1`.

Random tables with NULLs, dates, floats and timestamps, released in every shape; random queries with several keys and
measures, nested conditions and expressions, keys that are NULL, subtotals, FILTER, HAVING-free. Every cell of every
answer that has hard bounds is held against the original's. A violation is shown with the release's call and the query;
`--start N --cells 1 --shapes SHAPE` asks table N again, `--seconds` stops earlier. Violations and progress are printed
as they come.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import duckdb

import duckdb_anon

SHAPES = {
    "boxes": (
        "mondrian('t', {k}{roles})", "mondrian('t', {k}, edges := 'tight'{roles})", "incognito('t', {k}{roles})",
        "mondrian('t', {k}, mode := 'relaxed'{roles})", "probabilistic('t', {k}{roles})",
    ),
    "suppressed": ("incognito('t', {k}, max_suppression := 0.3{roles})", "incognito('t', {k}, max_suppression := 1{roles})"),
    "buckets": ("anatomy('t', 1{roles})", "anatomy('t', 2{roles})"),
    "slices": ("slicing('t', 1{roles})", "slicing('t', 2{roles})"),
    "lists": ("one_to_m_generalize('t', {k}, 1{person})", "rmr('t', {k}{person})"),
    "randomized": (
        "rr_distort('t', p := 0.8{roles})", "rr_distort('t', p := 1{roles})", "rr_distort('t', p := 0.7, scope := 'qi'{roles})",
        "rr_distort('t', p := 0.8, scope := 'sensitive'{roles})",
    ),
    "unbounded": (
        "merging('t', 2{roles})", "muco('t', 0.5{roles})", "composition('t', {k}{roles})", "hybrid('t', {k}{roles})",
        "microaggregate('t', {k}{roles})", "rank_swap('t', 10{roles})", "laplace_on_groups('t', {k}, 1.0{plain})",
    ),
}  # fmt: skip
SELDOM = ("slices", "suppressed", "unbounded")
"""Shapes of few hard bounds, or none: a tenth as often as the others."""
QUASI = ("age", "born", "weight", "sex", "region", "seen", "cost")
SLACK = 1e-6


@dataclass
class Tally:
    """Cells with hard bounds, by shape and by measure; what was asked and refused; violations with what makes them again."""

    cells: Counter[str] = field(default_factory=Counter)
    measures: Counter[str] = field(default_factory=Counter)
    queries: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def shown(self) -> str:
        """The tally as text."""
        lines = [f"{'shape':<24}{'queries':>9}{'refused':>9}{'cells':>10}{'seconds':>9}"]
        lines += [
            f"{m:<24}{n:>9}{self.refused[m]:>9}{self.cells[m]:>10}{self.seconds[m]:>9.0f}"
            for m, n in sorted(self.queries.items())
        ]
        total = (self.queries.total(), self.refused.total(), self.cells.total())
        asked = ", ".join(f"{name} {n}" for name, n in self.measures.most_common())
        return "\n".join(
            [*lines, "{:<24}{:>9}{:>9}{:>10}".format("all", *total), asked, f"{len(self.violations)} violations"]
        )


def table(rng: random.Random, rows: int) -> list[str]:
    """Statements that make the table `t` and its tree."""
    null = rng.choice((0.0, 0.1, 0.3))
    ill = null * rng.choice((0, 0, 1))
    ills = ["flu", "cold", "acne", "gout", "mumps", *(f"x{i}" for i in range(rng.choice((0, 0, 25))))]

    def or_null(value: str, share: float = null) -> str:
        return f"case when random() < {share} then null else {value} end"

    wide = rng.choice((6, 30, 90))
    columns = (
        f"{or_null(f'(random() * {wide})::integer - 3')} as age",
        f"{or_null(f'''date '1970-01-01' + (random() * {wide * 20})::integer''')} as born",
        f"{or_null(f'round(random() * {wide}, {rng.choice((0, 1, 3))}) - 2')}::{rng.choice(('double', 'float', 'decimal(9,3)'))}"
        " as weight",
        or_null("(['F', 'M', 'X', ''])[1 + (random() * 3)::integer]") + " as sex",
        or_null("(['n1', 'n2', 's1', 's2', 's3'])[1 + (random() * 4)::integer]") + " as region",
        or_null(f"timestamp '2020-01-01' + to_hours((random() * {wide * 9})::integer)") + " as seen",
        or_null(f"({ills})[1 + (random() ** {rng.choice((1, 1, 2))} * {len(ills) - 1})::integer]", ill)
        + " as disease",
        or_null("(random() * 100)::integer - 20") + " as cost",
        f"'p' || (i // {rng.choice((1, 1, 3))}) as who",
    )  # fmt: skip
    return [
        f"select setseed({rng.random()})",
        f"create or replace table t as select {', '.join(columns)} from range({rows}) as r(i)",
        "create or replace table tree as select * from (values ('n1', 'north', '*'), ('n2', 'north', '*'), "
        "('s1', 'south', '*'), ('s2', 'south', '*'), ('s3', 'south', '*')) v(leaf, half, everything)",
        "create or replace table ills as select * from (values ('flu', 'hot', '*'), ('cold', 'hot', '*'), "
        "('acne', 'skin', '*'), ('gout', 'old', '*'), ('mumps', 'hot', '*')) v(leaf, kind, everything) "
        "union all select 'x' || i, 'kind ' || i // 4, '*' from range(25) as r(i)",
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


AGGREGATES = ("sum", "avg", "min", "max", "median", "sum", "avg")


def measure(rng: random.Random) -> str:
    """An aggregate, perhaps with FILTER."""
    column = rng.choice(("age", "sex", "cost", "disease", "born", "region", "weight"))
    made = rng.choice(
        (
            "count(*)", f"count({column})", f"count(distinct {column})", f"count_if({condition(rng, 1)})",
            *(f"{f}({value(rng, rng.choice((0, 0, 1, 2)))})" for f in AGGREGATES),
            f"sum(case when {condition(rng, 1)} then 1 else 0 end)", f"quantile_cont({rng.choice(('age', 'weight', 'cost'))}, 0.9)",
        )
    )  # fmt: skip
    return f"{made} filter (where {condition(rng, 1)})" if rng.random() < 0.2 and "count_if" not in made else made


KEYS = (
    "sex", "region", "age", "disease", "born", "cost", "weight", "seen", "age // 5", "(sex is null)", "year(born)", "upper(sex)",
    "cost % 10", "coalesce(region, 'none')", "case when age < 10 then 'young' else sex end", "month(born)",
)  # fmt: skip


@dataclass(frozen=True)
class Question:
    """A query over t in pieces, so that one that is refused can be asked with less."""

    keys: tuple[str, ...]
    measures: tuple[str, ...]
    where: str
    grouping: str

    def text(self) -> str:
        """The query."""
        shown = [f"{key} as k{i}" for i, key in enumerate(self.keys)]
        shown += [f"{one} as m{i}" for i, one in enumerate(self.measures)]
        text = f"select {', '.join(shown)} from t{self.where}"
        if not self.keys:
            return text
        return f"{text} group by {self.grouping.format(', '.join(str(i + 1) for i in range(len(self.keys))))}"

    def halves(self) -> list[Question]:
        """The same question with half of its measures each."""
        half = (len(self.measures) + 1) // 2
        pieces = (self.measures[:half], self.measures[half:])
        return [Question(self.keys, piece, self.where, self.grouping) for piece in pieces if piece]


COLUMNS = re.compile(r"\b(age|born|weight|sex|region|seen|disease|cost|who)\b")


def within(columns: Collection[str] | None, make: Callable[[], str]) -> str:
    """What `make` gives that names no other columns; what it gave last where sixty tries name others.

    Args:
        columns: columns that may be named, None for all.
        make: what is tried again.
    """
    made = make()
    for _ in range(60):
        if columns is None or set(COLUMNS.findall(made)) <= set(columns):
            break
        made = make()
    return made


def question(rng: random.Random, exact: Sequence[str], only: bool) -> Question:
    """A query over t.

    Args:
        rng: where it comes from.
        exact: columns that the release has as they are, for keys of many groups.
        only: whether the query names no other columns.
    """
    columns = exact if only else None
    keys = [within(columns, lambda: rng.choice(KEYS)) for _ in range(rng.choice((0, 1, 2, 2, 3)))]
    if exact and keys and rng.random() < 0.5:
        keys[0] = rng.choice(exact)
    where = within(columns, lambda: condition(rng, rng.choice((1, 2, 3)))) if rng.random() < 0.6 else ""
    grouping = rng.choice(("{}", "{}", "{}", "all", "rollup({})", "cube({})"))
    measures = [within(columns, lambda: measure(rng)) for _ in range(rng.randint(3, 8))]
    if "(" in grouping and keys:
        # refused with subtotals
        measures = [one for one in measures if "distinct" not in one and not one.startswith(("median", "quantile"))]
    where = where and f" where {where}"
    return Question(tuple(dict.fromkeys(keys)), tuple(measures or ["count(*)"]), where, grouping)


def question_of_lists(rng: random.Random) -> Question:
    """A query that lists of nodes bound: rows by listed values, and persons."""
    ills = ("flu", "cold", "acne", "gout", "mumps")

    def of_lists(depth: int) -> str:
        if depth and rng.random() < 0.5:
            a, b = of_lists(depth - 1), of_lists(depth - 1)
            return rng.choice(
                (f"({a} and {b})", f"({a} or {b})", f"not ({a})", f"(({a}) is not true)", f"(({a}) is null)")
            )
        one, other = rng.sample(ills, 2)
        return rng.choice(
            (
                f"disease = '{one}'", f"disease <> '{one}'", f"disease in ('{one}', '{other}')", "disease is null",
                f"disease not in ('{one}', '{other}')", f"disease > '{one}'", "disease like '%u%'", f"upper(disease) = '{one.upper()}'",
                f"coalesce(disease, '{one}') = '{one}'", "length(disease) = 4", f"nullif(disease, '{one}') < '{other}'",
            )
        )  # fmt: skip

    keys = (
        "disease",
        "length(disease)",
        "upper(disease)",
        "(disease is null)",
        "left(disease, 1)",
        "coalesce(disease, 'none')",
    )
    measures = tuple(
        rng.choice(
            (
                "count(*)", "count(disease)", f"count(*) filter (where {of_lists(2)})", f"count_if({of_lists(2)})",
                f"sum(case when {of_lists(1)} then 1 else 0 end)",
                "count(*)", f"count(disease) filter (where {of_lists(2)})", *["count(distinct who)"][: rng.random() < 0.1],
            )
        )
        for _ in range(rng.randint(6, 12))
    )  # fmt: skip
    where = f" where {of_lists(rng.choice((1, 2, 3)))}" if rng.random() < 0.5 else ""
    grouping = rng.choice(("{}", "{}", "all", "rollup({})", "cube({})"))
    return Question(tuple(rng.sample(keys, rng.choice((0, 1, 1, 2)))), measures, where, grouping)


def _roles(rng: random.Random, template: str) -> tuple[str, str, list[str]]:
    """Role arguments of a method's call, and of a measure's; columns that are released as they are."""
    whole, of_persons = "{roles}" not in template, "{person}" in template
    quasi = list(QUASI) if whole else rng.sample(QUASI, rng.choice((1, 2, 2, 3, 4)))
    trees = {"region": "tree"} if "region" in quasi and rng.random() < 0.5 else {}
    exact = [] if whole else [name for name in QUASI if name not in quasi]
    kept_as_is = (
        exact + quasi * ("anatomy" in template or "'sensitive'" in template) + ["disease"] * ("'qi'" in template)
    )
    kept = "" if whole else f", keep := {exact}"
    common = f", qi := {quasi}, sensitive := 'disease'"
    if of_persons:
        common, trees = f"{common}, person := 'who'", trees | {"disease": "ills"}
    common += f", hierarchies := {trees}" if trees else ""
    return common + kept + (", changing := 'set'" if of_persons else ""), common, kept_as_is


def campaign(
    cells: int,
    seed: int,
    start: int = 0,
    queries: int = 12,
    seconds: float = math.inf,
    shapes: Sequence[str] = tuple(SHAPES),
    told: Callable[[str], None] = lambda line: None,
) -> Tally:
    """Ask until so many cells with hard bounds have been held against the truth.

    Args:
        cells: how many.
        seed: seed of the campaign.
        start: number of the first table.
        queries: how many are asked of each release; half as many of boxes, whose answers have most cells.
        seconds: how long at most, by hand.
        shapes: shapes of the releases that are asked; the rest is as without it.
        told: gets a line for each violation, and one for every hundred tables.
    """
    tally, number, end = Tally(), start, time.monotonic() + seconds
    con = duckdb_anon.connect()
    con.execute("set threads = 1")
    while tally.cells.total() < cells and time.monotonic() < end:
        made = f"{seed} {number}"
        rng, known = random.Random(made), len(tally.violations)
        asked = [shape for shape in SHAPES if (shape not in SELDOM or rng.random() < 0.1) and shape in shapes]
        for statement in table(rng, rng.choice((4, 12, 40, 150, 400))):
            con.execute(statement).fetchall()
        for shape in asked:
            began = time.process_time()
            _release(con, random.Random(f"{made} {shape}"), shape, tally, f"seed {seed}, table {number}", queries)
            tally.seconds[shape] += time.process_time() - began
        number += 1
        for violation in tally.violations[known:]:
            told(violation)
        if number % 100 == 0:
            told(f"table {number}: {tally.cells.total()} cells, {len(tally.violations)} violations")
    con.close()
    return tally


def _release(
    con: duckdb.DuckDBPyConnection, rng: random.Random, shape: str, tally: Tally, where: str, queries: int
) -> None:
    template = rng.choice(SHAPES[shape])
    roles, asked, exact = _roles(rng, template)
    call = template.format(k=rng.choice((1, 2, 3, 5)), roles=roles, plain=roles, person=roles)
    try:
        con.execute(f"create or replace table r as from {call.removesuffix(')')}, seed := 1)")
    except duckdb.Error as error:
        if "internal" in str(error).lower():
            tally.violations.append(f"{where}: {call}: {error}")
        tally.refused[f"({shape})"] += 1
        return
    for _ in range(queries // 2 if shape == "boxes" else queries):
        of_lists = shape == "lists" and rng.random() < 0.9
        only = shape in ("randomized", "buckets") and bool(exact) and rng.random() < 0.8
        _ask(
            con,
            question_of_lists(rng) if of_lists else question(rng, exact, only),
            asked,
            tally,
            shape,
            f"{where}: {call}",
        )


def _ask(
    con: duckdb.DuckDBPyConnection, question: Question, roles: str, tally: Tally, shape: str, where: str, deep: int = 2
) -> None:
    """Ask; a question that is refused is asked again in halves, its first measure alone at last."""
    tally.queries[shape] += 1
    text = question.text()
    try:
        rows = con.execute(
            "select keys, measure, original, low, high from relative_error(?, 't', 'r', bounds := 'hard'" + roles + ") "
            "where confidence = 1 and original is not null", [text],
        ).fetchall()  # fmt: skip
    except duckdb.Error as error:
        if "internal" in str(error).lower() or "Binder" in str(error) or "Catalog" in str(error):
            tally.violations.append(f"{where}: {text}: {error}")
        tally.refused[shape] += 1
        if deep and len(question.measures) > 1:
            for half in question.halves():
                _ask(con, half, roles, tally, shape, where, deep - 1)
        return
    tally.cells[shape] += len(rows)
    for keys, name, truth, low, high in rows:
        tally.measures[question.measures[int(name[1:])].split("(")[0]] += 1
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
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    given = parser.parse_args(arguments)

    def told(line: str) -> None:
        print(line, flush=True)

    tally = campaign(given.cells, given.seed, given.start, seconds=given.seconds, shapes=given.shapes, told=told)
    print(tally.shown())
    return bool(tally.violations)


if __name__ == "__main__":
    sys.exit(main())
