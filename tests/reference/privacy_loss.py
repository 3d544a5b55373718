"""What two sets of runs on neighbouring tables prove of the privacy loss of a mechanism."""

from collections import Counter
from typing import Any

import numpy as np
from scipy import stats


def certain_loss(one: Counter[Any], other: Counter[Any], runs: int, delta: float = 0.0) -> float:
    """Lower bound on epsilon with 99.9% confidence over all events and both directions (Clopper and Pearson).

    `one`, `other`: how often each event was seen in `runs` runs on either table.
    """
    events = set(one) | set(other)
    risk = 0.001 / (4 * len(events))
    worst = 0.0
    for event in events:
        for a, b in ((one[event], other[event]), (other[event], one[event])):
            low = stats.beta.ppf(risk, a, runs - a + 1) - delta if a else 0.0
            high = stats.beta.ppf(1 - risk, b + 1, runs - b) if b < runs else 1.0
            worst = max(worst, float(np.log(low / high)) if low > 0 else 0.0)
    return worst
