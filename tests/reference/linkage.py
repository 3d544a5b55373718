"""Attacks by their definitions, one target, one published row and one column at a time, on values."""

from __future__ import annotations

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


def channel(p: Sequence[float], domains: Sequence[Sequence[object]], release: Sequence[Row]) -> Score:
    """Randomized response that keeps a value with probability p."""

    def score(a: int, value: object, cell: object) -> float:
        given = p[a] if cell == value else (1 - p[a]) / (len(domains[a]) - 1)
        return log(given / (sum(row[a] == cell for row in release) / len(release)))

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
    group: Callable[[int], bool] = lambda row: True,
) -> list[float]:
    """Score of every published row; rows outside `group`, or with too many equal columns, are out."""
    found = []
    for r, row in enumerate(release):
        equal = sum(covers(row[a], target[a]) for a in known)
        out = not group(r) or (most_equal is not None and equal > most_equal)
        found.append(-inf if out else sum(score(a, target[a], row[a]) for a in known))
    return found


def identity(found: Sequence[float], own: int | None) -> float:
    """Chance that a row picked evenly among the best is the target's."""
    best = max(found)
    among = [r for r, s in enumerate(found) if s >= best - TIE]
    return (own in among) / len(among)


def attribute(found: Sequence[float], carried: Sequence[dict[object, float]], truth: object, soft: bool) -> float:
    """Chance that the value with most votes is true; row r carries values with weights `carried[r]`."""
    best, votes = max(found), dict[object, float]()
    for s, values in zip(found, carried, strict=True):
        if s == best or s >= best - (20 if soft else TIE):
            for value, weight in values.items():
                votes[value] = votes.get(value, 0) + weight * (exp(s - best) if soft and s > -inf else 1)
    most = max(votes.values())
    winners = [value for value, number in votes.items() if number >= most * (1 - TIE)]
    return (truth in winners) / len(winners)


def buckets(
    target: Row,
    release: Sequence[Row],
    bucket: Sequence[object],
    slices: Sequence[Sequence[int]],
    score: Score,
    how: str,
) -> list[float]:
    """Score of every row of a sliced release: that of its bucket, whose columns are matched one by one."""
    found = []
    for mine in bucket:
        total = 0.0
        for columns in slices:
            each = [sum(score(a, target[a], release[r][a]) for a in columns) for r, b in enumerate(bucket) if b == mine]
            best = max(each)
            total += best + (log(sum(exp(s - best) for s in each) / len(each)) if how == "share" and best > -inf else 0)
        found.append(total)
    return found
