"""What attackers find in a release of every shape; `people` are those who are not in the original."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import numpy as np
import pytest

from tests.reference import linkage
from tests.reference.answers import answered
from tests.reference.tiny_releases import ORIGINAL, Row, S, carried, cell, covers, printed, values_of

PEOPLE = [(1, "F"), (2, "F"), (2, "M"), (4, "F")]
Score = Callable[[Row, str, Any], float]


def check_disclosure(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows, p = printed(con, shape), 0.6
    identity, attribute = [], []
    for t, (a, g, s) in enumerate(ORIGINAL):
        found = carries = 0.0
        for known in ({"a": a}, {"g": g}, {"a": a, "g": g}):
            weight = p ** len(known) * (1 - p) ** (2 - len(known)) / (1 - (1 - p) ** 2)
            some = [i for i, row in enumerate(rows) if all(covers(row, n, v) for n, v in known.items())]
            if some:
                found += weight * (t in some) / len(some)
                carries += weight * sum(carried(rows[i], s) for i in some) / len(some)
        identity.append(found)
        attribute.append(carries)
    told = answered(con, f"from disclosure('tiny', '{shape}_linked', p_match := {p})")
    assert told["identity"] == pytest.approx(np.mean(identity))
    assert told["attribute"] == pytest.approx(np.mean(attribute))
    assert told["identity_highest"] == pytest.approx(max(identity))
    assert told["attribute_highest"] == pytest.approx(max(attribute))


def mismatch(row: Row, name: str, value: Any) -> float:
    """The exact attacker's score of a cell: who does not match on everything is as far as anybody."""
    return 0.0 if covers(row, name, value) else -math.inf


def closeness(row: Row, name: str, value: Any) -> float:
    """The nearest attacker's: a in shares of its range of 3, g in 0 and 1."""
    if name == "g":
        return 0.0 if covers(row, name, value) else -1.0
    low, high = min(values_of(cell(row, name))), max(values_of(cell(row, name)))
    return -max(low - value, value - high, 0) / 3


def likelihood(rows: list[Row], shape: str) -> Score:
    """The likelihood attacker's: evenly inside a cell, next to nothing outside; the channel of randomized values."""

    def score(row: Row, name: str, value: Any) -> float:
        if shape == "randomized" and name == "g":
            kept = row["rr"][name]["p"]
            return math.log((kept if row[name] == value else 1 - kept) / np.mean([r[name] == row[name] for r in rows]))
        return -math.log(len(values_of(cell(row, name)))) if covers(row, name, value) else -40.0

    return score


def scores(shape: str, rows: list[Row], score: Score, person: Sequence[Any], how: str) -> list[float]:
    """Score of every row; in slices that of its bucket, by its best row or by a row of it at random."""
    each = [sum(score(row, name, value) for name, value in zip("ag", person, strict=False)) for row in rows]
    if score is mismatch:
        each = [max(s, -1.0) for s in each]
    if shape != "sliced":
        return each
    found = []
    for row in rows:
        mates = [s for s, other in zip(each, rows, strict=True) if other["bucket"] == row["bucket"]]
        best = max(mates)
        found.append(best if how == "best" else best + math.log(sum(math.exp(s - best) for s in mates) / len(mates)))
    return found


def held(shape: str, rows: list[Row]) -> list[dict[object, float]]:
    """Values each row votes for, a noisy count for that many."""
    weight = [max(row.get("noisy_count", 1.0), 0.0) for row in rows]
    return [{v: w * carried(row, v) for v in S if carried(row, v)} for w, row in zip(weight, rows, strict=True)]


def share(shape: str, rows: list[Row], name: str) -> Callable[[int, object], float]:
    """How much of a row lies at a value of a column; in slices, of its bucket."""

    def of(r: int, value: Any) -> float:
        mates = [row for row in rows if row["bucket"] == rows[r]["bucket"]] if shape == "sliced" else [rows[r]]
        return sum(values_of(cell(row, name)).get(value, 0.0) for row in mates) / len(mates)

    return of


def baseline(shape: str, rows: list[Row]) -> float:
    """Success of naive Bayes that never saw the own row."""
    weight = [max(row.get("noisy_count", 1.0), 0.0) for row in rows]
    every = [{v: carried(row, v) for v in S if carried(row, v)} for row in rows]
    columns = [share(shape, rows, name) for name in "ag"]
    size = [sum(row["bucket"] == other["bucket"] for other in rows) if shape == "sliced" else 1 for row in rows]
    total = 0.0
    for t, (a, g, s) in enumerate(ORIGINAL):
        own: dict[int, Callable[[int, object], float]] = {}
        if t < len(rows) and shape != "counts":
            own[t] = lambda column, value, t=t: values_of(cell(rows[t], "ag"[column])).get(value, 0.0) / size[t]  # type: ignore[misc]
        total += linkage.guess([(a, g)], columns, every, own, {s}, weight) / len(ORIGINAL)
    return total


def group(shape: str, rows: list[Row], r: int) -> set[int]:
    """Rows of the class or bucket of a row."""
    key = [str(row["bucket"] if "bucket" in row else (row["a"], row["g"])) for row in rows]
    return {j for j, other in enumerate(key) if other == key[r]}


def check_linkage(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows = printed(con, shape)
    found = con.execute(f"select attacker, identity, attribute, baseline from linkage_risk('tiny', '{shape}_linked')")
    told = {name: figures for name, *figures in found.fetchall()}
    assert told["likelihood_excluding"] == [None] * 3
    attackers: dict[str, tuple[Score, str]] = {"exact": (mismatch, "best"), "nearest": (closeness, "best")}
    if shape != "rows":
        attackers["likelihood"] = (likelihood(rows, shape), "share")
    else:  # nobody said what made these rows: learnt by a bootstrap
        assert None not in told["likelihood"]
    for attacker, (score, how) in attackers.items():
        identity = attribute = 0.0
        for t, person in enumerate(ORIGINAL):
            each = scores(shape, rows, score, person, how)
            identity += linkage.identity(each, t) / 8 if t < len(rows) else 0.0
            attribute += linkage.attribute(each, held(shape, rows), person[2], how == "share") / 8
        nobody = shape == "counts"
        assert told[attacker][0] == (None if nobody else pytest.approx(identity)), attacker
        assert told[attacker][1:] == pytest.approx([attribute, baseline(shape, rows)]), attacker
    if shape in ("rows", "randomized", "counts"):
        assert told["told"] == [None] * 3  # no class, or nobody with a row in one
        return
    identity = 0.0
    for t, person in enumerate(ORIGINAL[: len(rows)]):
        each = scores(shape, rows, likelihood(rows, shape), person, "share")
        inside = group(shape, rows, t)
        identity += linkage.identity([s if j in inside else -math.inf for j, s in enumerate(each)], t) / 8
    assert told["told"][0] == pytest.approx(identity)


def weighed(rows: list[Row], person: Sequence[Any]) -> dict[object, float]:
    """What naive Bayes of the release says of each value, for known quasi-identifiers: P(x | s) / P(x)."""
    weight = [max(row.get("noisy_count", 1.0), 0.0) for row in rows]
    factor = dict.fromkeys(S, 1.0)
    for v in S:
        prior = sum(w * carried(row, v) for w, row in zip(weight, rows, strict=True))
        for name, value in zip("ag", person, strict=False):
            at = [values_of(cell(row, name)).get(value, 0.0) for row in rows]
            marginal = max(sum(at), 1e-9) / len(rows)
            seen = sum(w * carried(row, v) * p for w, row, p in zip(weight, rows, at, strict=True))
            factor[v] *= (seen + marginal) / (prior + 1) / marginal
    return factor


def check_attribute(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    """The attackers that both measures have say the same; deFinetti's weighs the values of each class."""
    rows = printed(con, shape)
    found = con.execute(f"""select attacker, attribute, largest_share
        from attribute_risk('tiny', '{shape}_linked', seed := 1)""")
    told = {name: figures for name, *figures in found.fetchall()}
    same = con.execute(f"select attacker, attribute from linkage_risk('tiny', '{shape}_linked', seed := 1)").fetchall()
    assert {name: figures[0] for name, figures in told.items()} == dict(same)
    if shape in ("rows", "randomized"):
        assert told["definetti"] == [None, None]
        return
    votes = held(shape, rows)
    classes = {frozenset(group(shape, rows, r)) for r in range(len(rows))}
    counts = [[sum(votes[r].get(v, 0.0) for r in some) for v in S] for some in classes]
    assert told["exact"][1] == pytest.approx(sum(map(max, counts)) / sum(map(sum, counts)))
    if "bucket" in rows[0]:
        return  # fitted under the counts of buckets: see the tests of attribute_risk
    right = 0.0
    for person in ORIGINAL:
        factor, each = weighed(rows, person), scores(shape, rows, likelihood(rows, shape), person, "share")
        tilted: list[dict[object, float]] = [{} for _ in rows]
        for some in classes:
            before = sum(sum(votes[r].values()) for r in some)
            after = sum(n * factor[v] for r in some for v, n in votes[r].items())
            for r in some:
                tilted[r] = {v: n * factor[v] * before / after for v, n in votes[r].items() if after > 0}
        right += linkage.attribute(each, tilted, person[2], True) / len(ORIGINAL)
    assert told["definetti"][0] == pytest.approx(right)


def check_membership(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows = printed(con, shape)
    found = con.execute(f"select attacker, auc from membership_risk('tiny', '{shape}_linked', holdout := 'people')")
    told = dict(found.fetchall())
    attackers: dict[str, tuple[Score, str]] = {"nearest": (closeness, "best")}
    if shape != "rows":
        attackers["likelihood"] = (likelihood(rows, shape), "share")
    for attacker, (score, how) in attackers.items():
        inside, outside = (
            [max(scores(shape, rows, score, person, how)) for person in people] for people in (ORIGINAL, PEOPLE)
        )
        pairs = [(i > o + 1e-9) + 0.5 * (abs(i - o) <= 1e-9) for i in inside for o in outside]
        assert told[attacker] == pytest.approx(np.mean(pairs)), attacker


Check = Callable[[duckdb.DuckDBPyConnection, str], None]
RIGHT: dict[str, Check] = {
    "disclosure": check_disclosure, "linkage_risk": check_linkage, "attribute_risk": check_attribute,
    "membership_risk": check_membership,
}  # fmt: skip
