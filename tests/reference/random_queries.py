"""Random queries over the table `people` of `rewrite_tables`, from a grammar of what the rewriter covers."""

import random

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
    if depth == 0 or rng.random() < 0.3:
        return _atom(rng)
    left, right = condition(rng, depth - 1), condition(rng, depth - 1)
    return rng.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})", f"({left} AND {right})"])


def _atom(rng: random.Random) -> str:
    sign = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    number, other = rng.randint(18, 42), rng.randint(18, 42)
    sexes, sicknesses = ["'F'", "'M'", "'X'"], ["'flu'", "'cold'", "'acne'", "'gout'"]
    return rng.choice(
        [
            f"age {sign} {number}",
            f"{number} {sign} age",
            f"age BETWEEN {min(number, other)} AND {max(number, other)}",
            f"age IN ({number}, {other}, 30)",
            "age NOT IN (20, 25, 30)",
            "age IS NULL",
            "age % 2 = 0",
            f"sex = {rng.choice(sexes)}",
            f"sex <> {rng.choice(sexes)}",
            f"sex IN ({rng.choice(sexes)}, {rng.choice(sexes)})",
            "sex IS NOT NULL",
            "sex LIKE 'F%'",
            f"weight {sign} {number * 2}.5",
            f"weight {sign} {number * 2}",
            f"weight BETWEEN {number} AND {other + 40}",
            f"born {sign} DATE '19{rng.randint(70, 99)}-06-15'",
            f"born {sign} '1985-01-31'",
            f"disease = {rng.choice(sicknesses)}",
            f"disease IN ({rng.choice(sicknesses)}, {rng.choice(sicknesses)})",
            "disease LIKE '%o%'",
            "disease IS NULL",
            "region IN ('n1', 's2')",
            "region LIKE 'n%'",
            f"cost {sign} {rng.randint(0, 100)}",
            "cost > age",
            "cost IS NULL",
            "(age < 30) IS NOT TRUE",
            f"coalesce(age, 0) {sign} {number}",
        ]
    )


def _aggregate(rng: random.Random) -> str:
    value = rng.choice(["cost", "age", "weight", "age + cost", "cost * 2 - age", "age * cost", "weight * cost"])
    case = f"CASE WHEN {condition(rng, 1)} THEN {rng.choice(['cost', 'age', '1'])} ELSE {rng.choice(['0', 'age'])} END"
    bare = rng.choice(
        [
            "count(*)",
            f"count({rng.choice(['age', 'sex', 'cost', 'disease'])})",
            f"sum({value})",
            f"avg({value})",
            f"sum({case})",
            f"count_if({condition(rng, 1)})",
            f"min({rng.choice(['cost', 'age', 'disease', 'born', 'weight'])})",
            f"max({rng.choice(['cost', 'age', 'disease', 'born', 'weight'])})",
        ]
    )
    if rng.random() < 0.25 and not bare.startswith("count_if"):
        return f"{bare} FILTER (WHERE {condition(rng, 1)})"
    return bare


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
            "ALL",
            ", ".join(keys),
            places,
            names,
            f"ROLLUP({', '.join(keys)})",
            f"CUBE({places})",
            f"GROUPING SETS (({places}), (1), ())",
        ]
    )
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
