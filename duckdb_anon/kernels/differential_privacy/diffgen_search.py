"""DiffGen's search: generalize everything, then specialize privately chosen nodes.

Every predictor has a cut: taxonomy nodes or intervals that cover its domain. All groups are products of
cuts, so a specialization replaces one node by its children in one cut (Mohammed, Chen, Fung and Yu, KDD
2011, algorithm 1). Scores: `max` sums the largest class of each child (sensitivity 1); `infogain` is the
drop in class entropy (sensitivity log2 of the number of classes).

Half of epsilon goes to finding the groups, half to the counts. Every choice gets epsilon' = epsilon / (2 (a + 2 h)):
one split point for each of the a numeric predictors at the start, then in each of h rounds one choice of what to
specialize and one round of split points, whose nodes are disjoint and therefore cost one epsilon' together. The leaves
are disjoint too: epsilon / 2 pays for all of them. A run that stops early leaves budget unspent. Cost: a pass over the
records of the new nodes a round.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from duckdb_anon.kernels.differential_privacy.mechanisms import Ledger, Mechanisms
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.progress import tick

GRID = 1024
"""Parts of a numeric domain whose ends are the points it can be split at. They do not come from the data, so neither
does any bit of the split that is chosen."""
Utility = Literal["max", "infogain"]


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


def utility_of(counts: FloatArray, utility: Utility) -> float:
    """Score of a specialization from the class counts of its children, shape (children, classes).

    >>> utility_of(np.array([[30, 10], [5, 25]]), 'max')
    55.0
    >>> round(utility_of(np.array([[30, 10], [5, 25]]), 'infogain'), 5)
    0.25783
    """
    if utility == "max":
        return float(counts.max(axis=1).sum())
    total = counts.sum()
    if total == 0:
        return 0.0
    size = counts.sum(axis=1)
    return entropy(counts.sum(axis=0)) - float(sum(s / total * entropy(c) for s, c in zip(size, counts, strict=True)))


def entropy(counts: FloatArray) -> float:
    """Entropy in bits of a distribution given by counts, 0 for none."""
    share = counts[counts > 0] / max(counts.sum(), 1)
    return float(-(share * np.log2(share)).sum())


def sensitivity_of(utility: Utility, classes: int) -> float:
    """Largest change of a score by one record; at least a bit, so that one class is no special case."""
    return 1.0 if utility == "max" else max(1.0, float(np.log2(classes)))


@dataclass(frozen=True)
class CutNode:
    """A node of a cut."""

    low: float  # first leaf, or lower end of an interval
    high: float  # one past the last leaf, or upper end
    label: int = -1  # node number in the hierarchy; 0 is the root of a flat domain; -1 for intervals
    split: float = float("nan")  # where an interval would be cut, NaN if it is not to be cut


@dataclass
class Predictor:
    """One predictor: its records and its cut."""

    values: FloatArray  # leaf number of each record, or its value clipped to [low, high]
    low: float  # lower end of the domain
    high: float  # upper end; the number of leaves for categorical predictors
    tree: Hierarchy | None = None  # the taxonomy, None for numeric predictors and for flat domains
    numeric: bool = False  # whether it is cut into intervals
    integral: bool = False  # whether values are whole numbers, which are cut halfway between two of them
    cut: list[CutNode] = field(init=False)  # the nodes that now cover the domain
    node_of_record: IntArray = field(init=False)  # place of each record's node in `cut`

    def __post_init__(self) -> None:
        """Start with the root."""
        self.cut = [CutNode(self.low, self.high, -1 if self.numeric else 0)]
        self.node_of_record = np.zeros(len(self.values), dtype=np.int64)

    def points_in(self, node: CutNode) -> FloatArray:
        """Points of the grid inside an interval, where it can be split."""
        grid = self.low + (self.high - self.low) * (np.arange(1, GRID) / GRID)
        if self.integral:
            grid = np.floor(grid) + 0.5
        return np.unique(grid[(grid > node.low) & (grid < node.high)])

    def children(self, node: CutNode) -> list[CutNode]:
        """Children of a node; empty for leaves."""
        if self.numeric:
            if not node.low < node.split < node.high:
                return []
            return [CutNode(node.low, node.split), CutNode(node.split, node.high)]
        if self.tree is None:
            leaves = range(int(node.low), int(node.high))
            return [CutNode(leaf, leaf + 1, 1) for leaf in leaves] if node.label == 0 and len(leaves) > 1 else []
        below = np.flatnonzero(self.tree.parent == node.label)
        first, count = self.tree.first_leaf[below], self.tree.leaf_count[below]
        return [CutNode(int(f), int(f + c), int(v)) for v, f, c in zip(below, first, count, strict=True)]

    def child_of(self, node: CutNode, values: FloatArray) -> IntArray:
        """Place among the children of the node for values inside it."""
        starts = np.array([child.low for child in self.children(node)][1:])
        return np.searchsorted(starts, values, side="right").astype(np.int64)


@dataclass
class Search:
    """The state of one run."""

    predictors: list[Predictor]  # the predictors
    class_of_record: IntArray  # class of each record
    classes: int  # number of classes, also of those without records
    budget: Budget  # what may be spent
    utility: Utility  # score of a specialization
    mechanisms: Mechanisms  # what chooses
    ledger: Ledger  # what has been spent

    def run(self) -> int:
        """Choose first split points, then specialize; return the number of rounds that took place."""
        for predictor in self.predictors:
            if predictor.numeric:
                self._split(predictor, [0])
        scores = {(p, 0): self._score(p, 0) for p in range(len(self.predictors))}
        for done in range(self.budget.rounds):
            options = [index for index, score in sorted(scores.items()) if np.isfinite(score)]
            if not options:
                return done
            values = np.array([scores[index] for index in options])
            index, loss = self.mechanisms.choose(values, self.budget.choice, self._sensitivity)
            self.ledger.spend([loss])
            picked = options[index]
            for new in self._specialize(*picked):
                scores[new] = self._score(*new)
        return self.budget.rounds

    @property
    def _sensitivity(self) -> float:
        return sensitivity_of(self.utility, self.classes)

    def _records(self, p: int, index: int) -> tuple[FloatArray, IntArray]:
        members = np.flatnonzero(self.predictors[p].node_of_record == index)
        return self.predictors[p].values[members], self.class_of_record[members]

    def _score(self, p: int, index: int) -> float:
        """Score of specializing a node, -inf if it has no children."""
        tick()
        predictor = self.predictors[p]
        node = predictor.cut[index]
        children = len(predictor.children(node))
        if children == 0:
            return float("-inf")
        values, classes = self._records(p, index)
        cell = predictor.child_of(node, values) * self.classes + classes
        counts = np.bincount(cell, minlength=children * self.classes).reshape(children, self.classes).astype(np.float64)
        return utility_of(counts, self.utility)

    def _specialize(self, p: int, index: int) -> list[tuple[int, int]]:
        """Replace a node by its children; return where they are."""
        predictor = self.predictors[p]
        node = predictor.cut[index]
        children = predictor.children(node)
        members = np.flatnonzero(predictor.node_of_record == index)
        places = np.array([index, *range(len(predictor.cut), len(predictor.cut) + len(children) - 1)])
        predictor.node_of_record[members] = places[predictor.child_of(node, predictor.values[members])]
        predictor.cut[index] = children[0]
        predictor.cut += children[1:]
        if predictor.numeric:
            self._split(predictor, places.tolist())
        return [(p, int(child)) for child in places]

    def _split(self, predictor: Predictor, places: list[int]) -> None:
        """Choose where each of some disjoint intervals would be cut, by the exponential mechanism over a grid."""
        losses = []
        for index in places:
            node = predictor.cut[index]
            points = predictor.points_in(node)
            if len(points) == 0:
                continue
            members = predictor.node_of_record == index
            scores = split_scores(
                predictor.values[members], self.class_of_record[members], self.classes, points, self.utility
            )
            chosen, loss = self.mechanisms.choose(scores, self.budget.choice, self._sensitivity)
            losses.append(loss)
            predictor.cut[index] = CutNode(node.low, node.high, split=float(points[chosen]))
        self.ledger.spend(losses)


def split_scores(
    values: FloatArray, classes: IntArray, number: int, points: FloatArray, utility: Utility
) -> FloatArray:
    """Score of splitting an interval at each of some points; records below a split go left."""
    tick()
    side = np.searchsorted(points, values, side="right")
    counts = np.bincount(side * number + classes, minlength=(len(points) + 1) * number).reshape(-1, number)
    left = np.cumsum(counts, axis=0)[:-1].astype(np.float64)
    right = counts.sum(axis=0) - left
    if utility == "max":
        scores: FloatArray = left.max(axis=1) + right.max(axis=1)
        return scores
    integral = counts.sum(axis=0).astype(np.float64)
    return entropy(integral) - (_entropies(left) + _entropies(right)) / max(float(integral.sum()), 1.0)


def _entropies(counts: FloatArray) -> FloatArray:
    """Entropy in bits times the number of records, row by row."""
    size = counts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0, counts * np.log2(counts / size), 0.0)
    result: FloatArray = -terms.sum(axis=1)
    return result
