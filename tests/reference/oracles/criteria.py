"""WP29's criteria on a release of every shape, against every predicate and every pair of rows, one at a time.

What is drawn at random is held against its expectation: guesses within six deviations, ties between what they allow.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import numpy as np
import pytest

from tests.reference import wp29
from tests.reference.answers import answered
from tests.reference.tiny_releases import ORIGINAL, Row, cell, printed, values_of

OTHERS = [(1, "F", "cold"), (2, "M", "flu"), (4, "F", "flu"), (4, "F", "cold"), (3, "M", "flu")]
SPANS = [3.0, None, None]
Plain = tuple[Any, ...]


def columns(shape: str) -> str:
    """What is looked at: counts of a bucket are no values of a row."""
    return "ag" if shape == "buckets" else "ags"


def plain(shape: str, rows: list[Row]) -> list[Plain]:
    """Rows as the criteria take them: intervals at their middle, sets at their most frequent value."""
    names = columns(shape)
    common: dict[str, Counter[Any]] = {name: Counter() for name in names}
    for name, row in itertools.product(names, rows):
        common[name].update(values_of(cell(row, name)))  # type: ignore[arg-type]

    def one(row: Row, name: str) -> Any:
        values = values_of(cell(row, name))
        return sum(values) / len(values) if name == "a" else max(sorted(values), key=lambda v: common[name][v])

    return [tuple(one(row, name) for name in names) for row in rows]


def alone(terms: Sequence[tuple[int, str, Any]], rows: Sequence[Plain]) -> bool:
    return sum(wp29.holds(row, terms) for row in rows) == 1


def rate(predicates: Sequence[Sequence[tuple[int, str, Any]]], rows: Sequence[Plain]) -> float:
    return float(np.mean([alone(terms, rows) for terms in predicates])) if predicates else 0.0


def univariate(rows: list[Plain]) -> list[list[tuple[int, str, Any]]]:
    found: list[list[tuple[int, str, Any]]] = []
    for a in range(len(rows[0])):
        held = Counter(row[a] for row in rows)
        found += [[(a, "=", value)] for value, n in held.items() if n == 1]
        if a == 0:
            found += [[(a, sign, end)] for sign, end in (("<=", min(held)), (">=", max(held))) if held[end] == 1]
    return found


def multivariate(rows: list[Plain], n: int) -> list[list[tuple[int, str, Any]]]:
    """Every predicate that some row and some n columns make, once, if it holds for one row."""
    median = np.median([row[0] for row in rows])
    found = {
        tuple((a, "=" if a else ">=" if row[0] > median else "<=", row[a]) for a in chosen)
        for row in rows
        for chosen in itertools.combinations(range(len(row)), n)
    }
    return [list(terms) for terms in found if alone(terms, rows)]


def by_chance(rows: list[Plain], n: int) -> tuple[float, int]:
    """How many of all predicates with values at random single somebody out of the original."""
    hits = total = 0
    width = len(rows[0])
    for chosen in itertools.combinations(range(width), n):
        signs = [("=",) if a else (">=", "<=") for a in chosen]
        for values, some in itertools.product(itertools.product(rows, repeat=n), itertools.product(*signs)):
            terms = [(a, sign, row[a]) for a, sign, row in zip(chosen, some, values, strict=True)]
            weight = 1 if any(a == 0 for a in chosen) else 2  # both signs are as likely
            hits += weight * alone(terms, [row[:width] for row in ORIGINAL])
            total += weight
    return hits / total, total


def within(found: float, chance: float, trials: int) -> bool:
    return abs(found - chance) <= 6 * math.sqrt(chance * (1 - chance) / max(trials, 1)) + 1 / max(trials, 1)


Answer = dict[str, Any]


def check_singling_out(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows = plain(shape, printed(con, shape))
    made: dict[str, tuple[int, list[list[tuple[int, str, Any]]]]] = {
        "univariate": (1, univariate(rows)), "multivariate": (2, multivariate(rows, 2))
    }  # fmt: skip
    for mode, (n, predicates) in made.items():
        told = answered(
            con,
            f"from singling_out('tiny', '{shape}_release', mode := '{mode}', n := 2, holdout := 'others', seed := 1, "
            f"columns := {list(columns(shape))})",
        )
        width = len(rows[0])
        attack, control = (rate(predicates, [p[:width] for p in people]) for people in (ORIGINAL, OTHERS))
        assert told["attacks"] == len(predicates)
        assert (told["attack"], told["control"]) == pytest.approx((attack, control))
        chance, _ = by_chance(rows, n)
        assert within(told["baseline"], chance, len(predicates)) or not predicates
        check_risk(told, attack, control, max(len(predicates), 1), max(len(predicates), 1))


def check_risk(told: Answer, attack: float, control: float, attacks: int, controls: int) -> None:
    """(attack - control) / (1 - control), rates as the middle of Wilson's intervals, errors propagated."""

    def interval(p: float, n: int) -> tuple[float, float]:
        z = 1.959963984540054
        return (p + z * z / 2 / n) / (1 + z * z / n), z / (1 + z * z / n) * math.sqrt(
            p * (1 - p) / n + z * z / 4 / n / n
        )

    (a, half_a), (c, half_c) = interval(attack, attacks), interval(control, controls)
    risk = (a - c) / (1 - c)
    half = math.hypot(half_a / (1 - c), half_c * (1 - a) / (1 - c) ** 2)
    wanted = [max(0.0, risk), max(0.0, risk - half), min(1.0, max(0.0, risk + half))]
    assert [told["risk"], told["risk_low"], told["risk_high"]] == pytest.approx(wanted)


def check_nearest(
    con: duckdb.DuckDBPyConnection, call: str, bounds: Callable[[Sequence[Plain]], tuple[float, float]]
) -> Answer:
    told = answered(con, f"from {call}, holdout := 'others', seed := 1)")
    for figure, people in (("attack", ORIGINAL), ("control", OTHERS)):
        surely, possibly = bounds(people)
        assert surely - 1e-9 <= told[figure] <= possibly + 1e-9, figure
    check_risk(told, told["attack"], told["control"], len(ORIGINAL), len(OTHERS))
    return told


def check_linkability(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows = plain(shape, printed(con, shape))
    rest = list(columns(shape)[1:])

    def bounds(people: Sequence[Plain]) -> tuple[float, float]:
        pairs = [
            (wp29.nearest(p, rows, (0,), SPANS), wp29.nearest(p, rows, range(1, len(rest) + 1), SPANS)) for p in people
        ]
        return (float(np.mean([len(x | y) == 1 for x, y in pairs])), float(np.mean([bool(x & y) for x, y in pairs])))

    call = f"linkability('tiny', '{shape}_release', columns_a := ['a'], columns_b := {rest}"
    told = check_nearest(con, call, bounds)
    assert within(told["baseline"], 1 / len(rows), len(ORIGINAL))


def check_inference(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows = plain(shape, printed(con, shape))
    secret = len(rows[0]) - 1  # g where s shows counts

    def bounds(people: Sequence[Plain]) -> tuple[float, float]:
        near = [({rows[r][secret] for r in wp29.nearest(p, rows, range(secret), SPANS)}, p[secret]) for p in people]
        return (
            float(np.mean([guesses == {truth} for guesses, truth in near])),
            float(np.mean([truth in guesses for guesses, truth in near])),
        )

    name, known = columns(shape)[secret], list(columns(shape)[:secret])
    told = check_nearest(con, f"inference('tiny', '{shape}_release', secret := '{name}', known := {known}", bounds)
    chance = float(np.mean([row[secret] == p[secret] for row, p in itertools.product(rows, ORIGINAL)]))
    assert within(told["baseline"], chance, len(ORIGINAL))


Check = Callable[[duckdb.DuckDBPyConnection, str], None]
RIGHT: dict[str, Check] = {
    "singling_out": check_singling_out, "linkability": check_linkability, "inference": check_inference,
}  # fmt: skip
