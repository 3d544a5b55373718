"""Random queries over the tables of `tests.fuzz.bounds_tables`."""

import random
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


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
            "datediff('day', born, date '1980-06-01')", "date_part('month', born)", f"({a} * {a})", f"ceil({a} / 4)",
            f"({a})::{rng.choice(('integer', 'float', 'double', 'bigint', 'decimal(12,1)'))}", f"trunc({a})", f"length(({a})::varchar)",
            f"try_cast({a} as {rng.choice(('tinyint', 'utinyint', 'integer'))})", f"({a} // {rng.randint(-3, 4)})",
        )
    )  # fmt: skip


def condition(rng: random.Random, depth: int) -> str:
    """A condition."""
    if depth > 0 and rng.random() < 0.6:
        a, b = condition(rng, depth - 1), condition(rng, depth - 1)
        other = condition(rng, 0)
        return rng.choice(
            (
                f"({a} and {b})", f"({a} or {b})", f"not ({a})", f"(({a}) is not true)", f"(({a}) is null)",
                f"case when {a} then {b} else {other} end", f"coalesce({other}, {a})", f"if({other}, {a}, {b})",
            )
        )  # fmt: skip
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
            f"age::float {sign} {n}.5", f"weight::integer {sign} {n}", f"({n}, 'F') = (age, sex)", f"born::varchar {sign} '1971'",
            f"age is {rng.choice(('', 'not '))}distinct from {n}", f"weight ** 2 {sign} {n}", f"born - date '1971-01-01' {sign} {n}",
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
            f"sum({condition(rng, 2)})", f"sum(({value(rng, 1)})::boolean)", f"max({condition(rng, 1)})",
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
    """A query over t in pieces; with `in_step` the condition stands in a step of a WITH that hides the table."""

    keys: tuple[str, ...]
    measures: tuple[str, ...]
    where: str
    grouping: str
    in_step: bool = False
    unread: bool = False

    def text(self) -> str:
        """The query; `unread` counts the one row of aggregates that nothing reads."""
        if self.unread:
            return f"select 'x' as k0, count(*) as m0 from (select {self.measures[0]} from t{self.where})"
        displayed = [f"{key} as k{i}" for i, key in enumerate(self.keys)]
        displayed += [f"{node} as m{i}" for i, node in enumerate(self.measures)]
        text = f"select {', '.join(displayed)} from t{self.where}"
        if self.in_step:
            text = f"with T as (select * from t{self.where}) select {', '.join(displayed)} from t"
        if not self.keys:
            return text
        return f"{text} group by {self.grouping.format(', '.join(str(i + 1) for i in range(len(self.keys))))}"

    def halves(self) -> "list[Question]":
        """The same question with half of its measures each."""
        half = (len(self.measures) + 1) // 2
        pieces = (self.measures[:half], self.measures[half:])
        return [
            Question(self.keys, piece, self.where, self.grouping, self.in_step, self.unread)
            for piece in pieces
            if piece
        ]


COLUMNS = re.compile(r"\b(age|born|weight|sex|region|seen|disease|cost|who)\b")


def within(columns: Collection[str] | None, make: Callable[[], str]) -> str:
    """What `make` gives that names no other columns (None: any); what it gave last where sixty tries name others."""
    made = make()
    for _ in range(60):
        if columns is None or set(COLUMNS.findall(made)) <= set(columns):
            break
        made = make()
    return made


def question(rng: random.Random, exact: Sequence[str], only: bool) -> Question:
    """A query over t; `exact` are columns that the release has as they are: `only` these are named then."""
    columns = exact if only else None
    keys = [within(columns, lambda: rng.choice(KEYS)) for _ in range(rng.choice((0, 1, 2, 2, 3)))]
    if exact and keys and rng.random() < 0.5:
        keys[0] = rng.choice(exact)
    where = within(columns, lambda: condition(rng, rng.choice((1, 2, 3)))) if rng.random() < 0.6 else ""
    grouping = rng.choice(("{}", "{}", "{}", "all", "rollup({})", "cube({})"))
    measures = [within(columns, lambda: measure(rng)) for _ in range(rng.randint(3, 8))]
    if "(" in grouping and keys:
        # refused with subtotals
        measures = [node for node in measures if "distinct" not in node and not node.startswith(("median", "quantile"))]
    where = where and f" where {where}"
    named = tuple(dict.fromkeys(keys)), tuple(measures or ["count(*)"])
    return Question(*named, where, grouping, rng.random() < 0.1, rng.random() < 0.03)


def question_of_lists(rng: random.Random) -> Question:
    """A query that lists of nodes bound: rows by listed values, and persons."""
    ills = ("flu", "cold", "acne", "gout", "mumps")

    def of_lists(depth: int) -> str:
        if depth and rng.random() < 0.5:
            a, b = of_lists(depth - 1), of_lists(depth - 1)
            return rng.choice(
                (f"({a} and {b})", f"({a} or {b})", f"not ({a})", f"(({a}) is not true)", f"(({a}) is null)")
            )
        node, other = rng.sample(ills, 2)
        return rng.choice(
            (
                f"disease = '{node}'", f"disease <> '{node}'", f"disease in ('{node}', '{other}')", "disease is null",
                f"disease not in ('{node}', '{other}')", f"disease > '{node}'", "disease like '%u%'", f"upper(disease) = '{node.upper()}'",
                f"coalesce(disease, '{node}') = '{node}'", "length(disease) = 4", f"nullif(disease, '{node}') < '{other}'",
            )
        )  # fmt: skip

    keys = (
        "disease", "length(disease)", "upper(disease)", "(disease is null)", "left(disease, 1)",
        "coalesce(disease, 'none')",
    )  # fmt: skip
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
