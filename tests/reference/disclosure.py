"""Disclosure by its definition, one target and one published row at a time."""

from collections.abc import Callable, Sequence
from itertools import product

Row = Sequence[object]


def disclosure(
    original: Sequence[Row],
    release: Sequence[Row],
    source: Sequence[int],
    p: float,
    matches: Callable[[object, object], bool] = lambda cell, value: cell == value,
    secrets: int = 1,
) -> tuple[float, float]:
    """Expected identity and attribute disclosure; the last `secrets` columns of every row are the sensitive ones.

    A published sensitive value may be a dict of counts. Of several the most exposed one counts.
    """
    qi = len(original[0]) - secrets
    identity = attribute = 0.0
    for target, row in enumerate(original):
        for known in product((False, True), repeat=qi):
            if not any(known):
                continue
            weight = p ** sum(known) * (1 - p) ** (qi - sum(known)) / (1 - (1 - p) ** qi)
            found = [
                r
                for r, published in enumerate(release)
                if all(matches(published[a], row[a]) for a in range(qi) if known[a])
            ]
            if found:
                identity += weight * any(source[r] == target for r in found) / len(found)
                exposed = max(sum(carried(release[r][s], row[s]) for r in found) for s in range(qi, qi + secrets))
                attribute += weight * exposed / len(found)
    return identity / len(original), attribute / len(original)


def carried(published: object, value: object) -> float:
    """Share to which a published sensitive value is `value`."""
    if isinstance(published, dict):
        return published.get(value, 0) / sum(published.values())
    return float(published == value)
