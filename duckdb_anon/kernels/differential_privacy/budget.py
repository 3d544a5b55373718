"""How DiffGen spends its privacy budget.

Half of epsilon goes to finding the groups, half to the counts (Mohammed, Chen, Fung and Yu 2011, section 4).
Every choice gets epsilon' = epsilon / (2 (a + 2 h)): one split point for each of the a numeric predictors at
the start, then in each of h rounds one choice of what to specialize and one round of split points, whose
nodes are disjoint and therefore cost one epsilon' together. The leaves are disjoint too: epsilon / 2 pays for
all of them. A run that stops early leaves budget unspent. Cost: none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Budget:
    """The split of one run's budget.

    >>> round(Budget(0.3, 1, 2).choice, 6)
    0.03
    """

    epsilon: float  # total
    numeric: int  # number of numeric predictors, a
    rounds: int  # number of specializations, h

    @property
    def choice(self) -> float:
        """Budget of one choice, epsilon', rounded down; all of epsilon / 2 if there is nothing to choose."""
        return float(np.nextafter(self.epsilon / (2 * max(self.numeric + 2 * self.rounds, 1)), 0.0))

    @property
    def counts(self) -> float:
        """Budget of the leaf counts."""
        return self.epsilon / 2

    def steps(self) -> list[tuple[str, str, int, float, float]]:
        """Step, mechanism, how often, budget of each, budget of all."""
        each = self.choice
        return [
            ("first split points", "noisy max", self.numeric, each, self.numeric * each),
            ("choices of what to specialize", "noisy max", self.rounds, each, self.rounds * each),
            ("split points of new nodes", "noisy max, in parallel", self.rounds, each, self.rounds * each),
            ("counts of leaves", "discrete laplace, in parallel", 1, self.counts, self.counts),
        ]
