"""Cuts chosen by what they save: the attribute and the cut point with the largest decrease of NCP.

For a group G and a cut into parts, gain = |G| w(G) - sum |part| w(part), with w the normalized certainty
penalty of Xu et al. (2006) on the attribute that is cut: share of the range for ordered attributes, share
of the domain for a set of nominal values, share of the leaves for a hierarchy node. Ordered attributes may
be cut between any two values; nominal ones into their most frequent values and the rest, or one value and
the rest; hierarchies into the children of the lowest common ancestor. The best cut whose parts satisfy the
requirement is taken.

Cost: one count of the active rows per level and attribute, plus one check per cut that fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.partition.cut_points import CHILDREN, ONLY, Candidates, cut_points
from duckdb_anon.partition.frame import Cut, Frame, Problem, Proposal, acceptable
from duckdb_anon.partition.packed import run_starts
from duckdb_anon.partition.trees import Tree
from duckdb_anon.table import IntArray


@dataclass(frozen=True)
class LossCuts:
    """Chooses the cut of largest gain for each group.

    Attributes:
        problem: attributes and requirement.
        trees: the tree of each attribute, None where it has none.
    """

    problem: Problem
    trees: tuple[Tree | None, ...]

    def choose(self, frame: Frame) -> Cut:
        """Return for every group of the frame its best allowed cut."""
        min_size = self.problem.requirement.min_size
        found, places = [], np.empty_like(frame.codes)
        for index, (attribute, tree) in enumerate(zip(self.problem.qi, self.trees, strict=True)):
            candidates, places[index] = cut_points(frame, index, attribute, tree, min_size)
            found.append(candidates)
        candidates = Candidates.join(found)
        part = np.zeros(len(frame.rows), dtype=np.int64)
        accepted = np.zeros(len(frame), dtype=bool)
        while len(candidates.group):
            best = _best_of_each_group(candidates)
            trial = candidates.take(best)
            accepted[trial.group] = self._attempt(frame, places, trial, part)
            candidates.gain[best] = -np.inf
            candidates = candidates.take(~accepted[candidates.group] & (candidates.gain > 0))
        parts = max([2, *(tree.most_children for tree in self.trees if tree is not None)])
        return Cut(part, parts, accepted)

    def _attempt(
        self, frame: Frame, places: NDArray[Any], trial: Candidates, part: IntArray
    ) -> NDArray[np.bool_]:
        """Try one cut a group; fills `part` and returns which cuts are allowed."""
        rows, local = frame.rows_of(trial.group)
        row_numbers = np.arange(len(frame.rows)) if isinstance(rows, slice) else rows
        place = places[trial.attribute[local], row_numbers]
        at, kind, parts = trial.at[local], trial.kind[local], 2
        proposal = (place > at).astype(np.int64)
        if (trial.kind == ONLY).any():
            proposal = np.where(kind == ONLY, place != at, proposal)
        if (trial.kind == CHILDREN).any():
            proposal = np.where(kind == CHILDREN, place, proposal)
            parts = int(proposal.max()) + 1
        part[rows] = proposal
        return acceptable(self.problem, frame, Proposal(trial.group, rows, local, proposal, parts))


def _best_of_each_group(candidates: Candidates) -> IntArray:
    """Return the candidate of largest gain of each group, the first where several have it."""
    starts = run_starts(candidates.group)
    best = np.maximum.reduceat(candidates.gain, starts)
    run = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(candidates.group)))
    hits = np.flatnonzero(candidates.gain == best[run])
    first: IntArray = hits[run_starts(run[hits])]
    return first
