"""Random queries over the table `people` of `rewrite_tables`, from a grammar of what the rewriter covers."""

import random

from tests.fuzz import bounds_questions as questions
from tests.fuzz.bounds_questions import within

COLUMNS = ("age", "sex", "region", "disease", "born", "weight", "cost")
KEYS = ("sex", "region", "age", "age // 10", "disease", "born", "(sex IS NULL)", "year(born)", "upper(sex)")


def random_query(rng: random.Random, depth: int = 2) -> str:
    """Draw one query; its rows are told apart by its keys."""
    form = rng.random()
    if form < 0.1:
        return _nested(rng, depth)
    if form < 0.2:
        return _cte(rng, depth)
    if form < 0.3:
        return _joined(rng, depth)
    return _grouped(rng, depth, "people", "")


def condition(rng: random.Random, depth: int) -> str:
    """Draw a condition."""
    return within(COLUMNS, lambda: questions.condition(rng, depth))


def _aggregate(rng: random.Random) -> str:
    return within(COLUMNS, lambda: questions.measure(rng))


def _grouped(rng: random.Random, depth: int, table: str, alias: str) -> str:
    keys = rng.sample(KEYS, rng.choice([0, 0, 1, 1, 2]))
    measures = [_aggregate(rng) for _ in range(rng.randint(1, 3))]
    where = f" WHERE {condition(rng, depth)}" if rng.random() < 0.75 else ""
    chosen = ", ".join([f"{key} AS k{i}" for i, key in enumerate(keys)] + measures)
    text = f"SELECT {chosen} FROM {table}{alias}{where}"
    if rng.random() < 0.15:
        text = f"FROM {table}{alias} SELECT {chosen}{where}"
    if not keys:
        return text
    names = ", ".join(f"k{i}" for i in range(len(keys)))
    places = ", ".join(str(i + 1) for i in range(len(keys)))
    group = rng.choice(
        [
            "ALL", ", ".join(keys), places, names, f"ROLLUP({', '.join(keys)})", f"CUBE({places})",
            f"GROUPING SETS (({places}), (1), ())",
        ]
    )  # fmt: skip
    text += f" GROUP BY {group}"
    if rng.random() < 0.2:
        text += f" HAVING count(*) > {rng.randint(1, 5)}"
    return text


def _nested(rng: random.Random, depth: int) -> str:
    inner = f"SELECT sex, count(*) AS n, sum(cost) AS s FROM people WHERE {condition(rng, depth)} GROUP BY sex"
    return rng.choice(
        [
            f"SELECT max(n), sum(s) FROM ({inner})",
            f"WITH per_sex AS ({inner}) SELECT sex, n FROM per_sex WHERE n > 1",
            f"SELECT count(*) FROM people WHERE cost > (SELECT avg(cost) FROM people WHERE {condition(rng, 1)})",
            f"SELECT 1 AS k, count(*) FROM people WHERE {condition(rng, 1)} "
            f"UNION ALL SELECT 2, sum(cost) FROM people WHERE {condition(rng, 1)}",
        ]
    )


def _cte(rng: random.Random, depth: int) -> str:
    inner = f"SELECT *, age // 10 AS decade FROM people WHERE {condition(rng, depth)}"
    outer = f"SELECT decade, count(*), {_aggregate(rng)} FROM chosen WHERE {condition(rng, 1)} GROUP BY decade"
    if rng.random() < 0.5:
        return f"WITH chosen AS ({inner}) {outer}"
    return outer.replace("FROM chosen", f"FROM ({inner}) AS chosen")


def _joined(rng: random.Random, depth: int) -> str:
    kind = rng.choice(["JOIN", "LEFT JOIN"])
    column = rng.choice(["r.climate", "r.climate, sex"])
    where = condition(rng, depth)
    return (
        f"SELECT {column}, count(*), sum(cost) FROM people AS p {kind} regions AS r ON p.region = r.name "
        f"WHERE {where} GROUP BY ALL"
    )
