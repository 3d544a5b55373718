"""Cuts chosen by what they save: the attribute and the cut point after which the least NCP is to be expected.

Normalized certainty penalty (Xu et al. 2006): share of the range for ordered attributes, share of the domain
for a set of nominal values, share of the leaves for a hierarchy node. Ordered attributes may be cut between
any two values; nominal ones into their most frequent values and the rest, or one value and the rest;
hierarchies into the children of the lowest common ancestor, or one child and the rest. A cut must save
something on its own attribute; of those the one with the least expected loss (see `outlook`) is taken,
the best of the three most promising attributes being compared by the tight boxes of their parts on all
attributes. If the parts fail the requirement, the next one is tried.

Cost: a count of the active rows per level and attribute, three comparisons, and a check per cut that fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.partition.cut_points import (
    CHILDREN,
    ONLY,
    Candidates,
    Line,
    nominal_cuts,
    ordered_cuts,
    tree_cuts,
)
from duckdb_anon.partition.frame import Cut, Frame, Problem, Proposal, acceptable
from duckdb_anon.partition.outlook import Outlook
from duckdb_anon.partition.packed import run_starts, stable_order
from duckdb_anon.partition.trees import Tree
from duckdb_anon.partition.widths import tight_width
from duckdb_anon.table import FloatArray, IntArray

_COMPARED = 3


@dataclass(frozen=True)
class LossCuts:
    """Chooses the cut of least expected loss for each group.

    Attributes:
        problem: attributes and requirement.
        trees: the tree of each attribute, None where it has none.
    """

    problem: Problem
    trees: tuple[Tree | None, ...]

    def choose(self, frame: Frame) -> Cut:
        """Return for every group of the frame its best allowed cut."""
        widths = self._widths(frame.codes, frame.starts, frame.sizes)
        outlook = Outlook.of(widths, self.problem.requirement.min_size)
        candidates, places = self._candidates(frame, widths, outlook)
        part = np.zeros(len(frame.rows), dtype=np.int64)
        accepted = np.zeros(len(frame), dtype=bool)
        for round_ in (self._compared(frame, outlook, places, candidates), candidates):
            left = round_.take(~accepted[round_.group])
            while len(left.group):
                best = _best_of_each_group(left)
                proposal = self._proposal(frame, places, left.take(best))
                part[proposal.places] = proposal.part
                accepted[proposal.groups] = acceptable(self.problem, frame, proposal)
                left.loss[best] = np.inf
                left = left.take(~accepted[left.group] & (left.loss < np.inf))
        parts = max([2, *(tree.most_children for tree in self.trees if tree is not None)])
        return Cut(part, parts, accepted)

    def _candidates(self, frame: Frame, widths: FloatArray, outlook: Outlook) -> tuple[Candidates, NDArray[Any]]:
        """List the cuts of all attributes, and the places of the rows they refer to."""
        whole = widths.sum(axis=0)
        found, places = [], np.empty_like(frame.codes)
        for index, (attribute, tree) in enumerate(zip(self.problem.qi, self.trees, strict=True)):
            line = Line(frame, index, attribute, outlook, widths[index], whole - widths[index])
            if tree is not None:
                candidates, places[index] = tree_cuts(line, tree)
            elif attribute.kind == "nominal":
                candidates, places[index] = nominal_cuts(line)
            else:
                candidates, places[index] = ordered_cuts(line)
            found.append(candidates)
        return Candidates.join(found), places

    def _widths(self, codes: Any, starts: IntArray, sizes: IntArray) -> FloatArray:
        """Width of each group on each attribute, shape (attributes, groups)."""
        each = zip(self.problem.qi, self.trees, codes, strict=True)
        return np.array([tight_width(attribute, tree, c, starts, sizes) for attribute, tree, c in each])

    def _compared(self, frame: Frame, outlook: Outlook, places: NDArray[Any], candidates: Candidates) -> Candidates:
        """Take the best cut of each attribute, the most promising ones of each group, and measure these."""
        if len(candidates.group) == 0:
            return candidates
        left = candidates.take(_best_of_runs(candidates.group * len(places) + candidates.attribute, candidates.loss))
        measured = []
        for _ in range(min(_COMPARED, len(places))):
            best = _best_of_each_group(left)
            trial = left.take(best)
            measured.append(trial._replace(loss=self._measured(frame, outlook, self._proposal(frame, places, trial))))
            left.loss[best] = np.inf
            left = left.take(left.loss < np.inf)
            if len(left.group) == 0:
                break
        return Candidates.join(measured)

    def _measured(self, frame: Frame, outlook: Outlook, proposal: Proposal) -> FloatArray:
        """Return the expected loss of each proposed cut by the tight boxes of its parts on all attributes."""
        groups, places, local, part, parts = proposal
        order, sizes = stable_order(local, part, len(groups), parts)
        starts = np.cumsum(sizes) - sizes
        rows = order if isinstance(places, slice) else places[order]
        width = self._widths((codes[rows] for codes in frame.codes), starts, sizes).sum(axis=0)
        parent = local[order[starts]]
        loss = outlook.loss(groups[parent], sizes, width)
        measured = np.bincount(parent, weights=loss, minlength=len(groups))
        return measured.astype(np.float64)

    def _proposal(self, frame: Frame, places: NDArray[Any], trial: Candidates) -> Proposal:
        """Spell out one cut a group."""
        rows, local = frame.rows_of(trial.group)
        row_numbers = np.arange(len(frame.rows)) if isinstance(rows, slice) else rows
        place = places[trial.attribute[local], row_numbers]
        at, kind, parts = trial.at[local], trial.kind[local], 2
        part = (place > at).astype(np.int64)
        if (trial.kind == ONLY).any():
            part = np.where(kind == ONLY, place != at, part)
        if (trial.kind == CHILDREN).any():
            part = np.where(kind == CHILDREN, place, part)
            parts = int(part.max()) + 1
        return Proposal(trial.group, rows, local, part, parts)


def _best_of_each_group(candidates: Candidates) -> IntArray:
    """Return the candidate of least loss of each group, the first where several have it."""
    return _best_of_runs(candidates.group, candidates.loss)


def _best_of_runs(key: IntArray, loss: FloatArray) -> IntArray:
    """Return where the first smallest loss of each run of equal keys is."""
    starts = run_starts(key)
    best = np.minimum.reduceat(loss, starts)
    run = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(key)))
    hits = np.flatnonzero(loss == best[run])
    first: IntArray = hits[run_starts(run[hits])]
    return first
