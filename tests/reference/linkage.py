"""Attacks by their definitions, one target, one published row and one column at a time, on values."""

from collections.abc import Callable, Sequence
from math import exp, inf, log

Row = Sequence[object]
Score = Callable[[int, object, object], float]
TIE = 1e-9


def covers(cell: object, value: object) -> bool:
    """A box is a dict of both ends, a set a list."""
    if isinstance(cell, list):
        return value in cell
    if isinstance(cell, dict):
        return cell["lower"] is None or (value is not None and cell["lower"] <= value <= cell["upper"])
    return cell == value


def exact(a: int, value: object, cell: object) -> float:
    return 0.0 if covers(cell, value) else -inf


def nearest(ranges: Sequence[tuple[float, float] | None]) -> Score:
    """Minus the distance; `ranges` has None for nominal columns."""

    def score(a: int, value: object, cell: object) -> float:
        if covers(cell, value):
            return 0.0
        ends = ranges[a]
        if ends is None or value is None or cell is None:
            return -1.0
        lower, upper = (cell["lower"], cell["upper"]) if isinstance(cell, dict) else (cell, cell)
        return -min(1.0, max(lower - value, value - upper, 0) / (ends[1] - ends[0]))

    return score


def boxes(domains: Sequence[Sequence[object]]) -> Score:
    """1 inside over the values covered, almost nothing outside."""

    def score(a: int, value: object, cell: object) -> float:
        inside = sum(covers(cell, v) for v in domains[a])
        return -log(max(inside, 1)) if covers(cell, value) else -40.0

    return score


def counted(pairs: Sequence[tuple[Row, Row]], domains: Sequence[Sequence[object]], smoothing: float = 0.02) -> Score:
    """Transitions of each column counted over pairs of rows before and after."""

    def score(a: int, value: object, cell: object) -> float:
        n, size = len(pairs), len(domains[a])
        seen = sum(b[a] == value and c[a] == cell for b, c in pairs) + smoothing
        total = sum(b[a] == value for b, _ in pairs) + smoothing * size
        share = (sum(c[a] == cell for _, c in pairs) + smoothing * size) / (n + smoothing * size * size)
        return log(seen / total) - log(share)

    return score


def scores(
    target: Row,
    release: Sequence[Row],
    score: Score,
    known: Sequence[int],
    most_equal: int | None = None,
) -> list[float]:
    """Score of every published row; rows with too many equal columns are out."""
    found = []
    for row in release:
        out = most_equal is not None and sum(covers(row[a], target[a]) for a in known) > most_equal
        found.append(-inf if out else sum(score(a, target[a], row[a]) for a in known))
    return found


def identity(found: Sequence[float], own: int | None) -> float:
    """Chance that a row picked evenly among the best is the target's."""
    return identity_of_person([found], {own})


def attribute(found: Sequence[float], carried: Sequence[dict[object, float]], truth: object, soft: bool) -> float:
    """Chance that the value with most votes is true; row r carries values with weights `carried[r]`."""
    return attribute_of_person([found], carried, {truth}, soft)


def identity_of_person(found: Sequence[Sequence[float]], own: set[int | None]) -> float:
    """The same for somebody with a list of scores a record: pairs of a record and a row that score best."""
    best = max(s for scores in found for s in scores)
    pairs = [r for scores in found for r, s in enumerate(scores) if s >= best - TIE]
    return sum(r in own for r in pairs) / len(pairs)


def attribute_of_person(
    found: Sequence[Sequence[float]],
    carried: Sequence[dict[object, float]],
    truths: set[object],
    soft: bool,
    told: set[object] = frozenset(),  # type: ignore[assignment]
) -> float:
    """Chance that the value with most votes of all records is one of hers that was not told."""
    best, votes = max(s for scores in found for s in scores), dict[object, float]()
    for scores in found:
        for s, values in zip(scores, carried, strict=True):
            if s >= best - (20 if soft else TIE):
                for value, weight in values.items():
                    if value not in told:
                        votes[value] = votes.get(value, 0) + weight * (exp(s - best) if soft and s > -inf else 1)
    most = max(votes.values(), default=0)
    winners = [value for value, number in votes.items() if number > 0 and number >= most * (1 - TIE)]
    return sum(value in truths for value in winners) / len(winners) if winners else 0.0


def guess(
    records: Sequence[Row],
    shares: Sequence[Callable[[int, object], float]],
    carried: Sequence[dict[object, float]],
    own: dict[int, Callable[[int, object], float]],
    truths: set[object],
    weight: Sequence[float],
) -> float:
    """Chance that naive Bayes without the own rows names one of her values, one value and one column at a time.

    `shares` says for each column how much of a row is at a value, `own` the same of each of her rows.
    """
    values = sorted({v for one in carried for v in one}, key=str)
    total = dict.fromkeys(values, 0.0)
    every = range(len(carried))
    for record in records:
        posterior = {}
        for v in values:
            count = sum(weight[r] * carried[r].get(v, 0) for r in every) - sum(carried[r].get(v, 0) for r in own)
            if count <= 1e-9:
                continue
            posterior[v] = count
            for a, share in enumerate(shares):
                x = record[a]
                marginal = max(sum(share(r, x) for r in every), 1e-9) / len(carried)
                seen = sum(weight[r] * carried[r].get(v, 0) * share(r, x) for r in every)
                seen -= sum(carried[r].get(v, 0) * inside(a, x) for r, inside in own.items())
                posterior[v] *= (max(seen, 0) + marginal) / (count + 1)
        for v, p in posterior.items():
            total[v] += p / sum(posterior.values())
    winners = [v for v in values if 0 < total[v] >= max(total.values()) * (1 - TIE)]
    return len(truths & set(winners)) / len(winners) if winners else 0.0
