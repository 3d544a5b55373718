"""Slow, obvious versions of the risk measures: plain Python over rows as tuples."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from tests.reference.mondrian import effective_entropy, effective_frequency, equal_emd, ordered_emd, tree_emd

Row = tuple[Hashable, ...]


def classes(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows by all their columns but the last."""
    found: defaultdict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[:-1]].append(row)
    return list(found.values())


def k(rows: Sequence[Row]) -> float:
    return min((len(group) for group in classes(rows)), default=math.inf)


def levels(rows: Sequence[Row], least: int = 2) -> dict[str, float]:
    """What l_diversity returns, the sensitive value being the last column."""
    groups = [[row[-1] for row in group] for group in classes(rows)]
    return {
        "distinct": min((len(set(g)) for g in groups), default=math.inf),
        "frequency": min((effective_frequency(g) for g in groups), default=math.inf),
        "entropy": min((effective_entropy(g) for g in groups), default=math.inf),
        "recursive": max((recursive_ratio(g, least) for g in groups), default=0.0),
    }


def recursive_ratio(values: Sequence[Hashable], least: int) -> float:
    counts = sorted(Counter(values).values(), reverse=True)
    return counts[0] / sum(counts[least - 1 :]) if len(counts) >= least else math.inf


def t(rows: Sequence[Row], distance: str, paths: Sequence[Sequence[str]] = ()) -> float:
    """Largest distance of a class; for 'ordered' the sensitive values must be numbers or None (largest)."""
    table = [row[-1] for row in rows]
    groups = [[row[-1] for row in group] for group in classes(rows)]
    if distance == "hierarchy":
        return max((tree_emd(g, table, paths) for g in groups), default=0.0)
    rank = {v: i for i, v in enumerate(sorted(set(table), key=lambda v: (v is None, v or 0)))}
    measure = equal_emd if distance == "equal" else ordered_emd
    return max((measure([rank[v] for v in g], [rank[v] for v in table]) for g in groups), default=0.0)
