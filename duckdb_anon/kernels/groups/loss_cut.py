"""Cuts chosen by what they save: the attribute and the cut point after which the least NCP is to be expected.

Normalized certainty penalty (Xu et al. 2006): share of the range for ordered attributes, share of the domain
for a set of nominal values, share of the leaves for a hierarchy node. Ordered attributes may be cut between
any two values; nominal ones into their most frequent values and the rest, or one value and the rest;
hierarchies into the children of the lowest common ancestor, or one child and the rest. A cut must save
something on its own attribute; of those the one with the least expected loss (see `outlook`) is taken. In groups
of up to 512 times the fewest rows, the best cuts of the four most promising attributes are compared by the tight
boxes of their parts on all attributes; in larger groups the parts are as wide as the group there, and comparing
changed the loss of two tables by less than 0.5% either way. If the parts fail the requirement, the next cut is tried.

Cost: a count of the active rows per level and attribute, four comparisons of the rows of smaller groups, and a
check per cut that fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.groups.cut_points import (
    CHILDREN,
    ONLY,
    UP_TO,
    Candidates,
    Line,
    nominal_cuts,
    ordered_cuts,
    tree_cuts,
)
from duckdb_anon.kernels.groups.frame import Cut, Frame, Problem, Proposal, acceptable
from duckdb_anon.kernels.groups.outlook import Outlook
from duckdb_anon.kernels.groups.packed import order_by_part, run_starts
from duckdb_anon.kernels.groups.trees import Tree
from duckdb_anon.kernels.groups.widths import tight_width
from duckdb_anon.model.table import FloatArray, IntArray

_COMPARED = 4
_COMPARED_SIZE = 512


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
        parts = max([2, *(tree.most_children for tree in self.trees if tree is not None)])
        part = np.zeros(len(frame.rows), dtype=np.int8 if parts < 128 else np.int32)
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
        return Cut(part, parts, accepted)

    def _candidates(self, frame: Frame, widths: FloatArray, outlook: Outlook) -> tuple[Candidates, NDArray[Any]]:
        """List the cuts of all attributes, and the places of the rows they refer to."""
        whole = widths.sum(axis=0)
        found, places = [], frame.codes if self._places_are_codes else frame.codes.copy()
        for index, (attribute, tree) in enumerate(zip(self.problem.qi, self.trees, strict=True)):
            line = Line(frame, index, attribute, outlook, widths[index], whole - widths[index])
            if tree is not None:
                candidates, places[index] = tree_cuts(line, tree)
            elif attribute.kind == "nominal":
                candidates, places[index] = nominal_cuts(line)
            else:
                candidates = ordered_cuts(line)
            found.append(candidates)
        return Candidates.join(found), places

    @property
    def _places_are_codes(self) -> bool:
        """Whether every attribute is cut between its codes."""
        return all(a.kind == "ordered" for a in self.problem.qi)

    def _widths(self, codes: Any, starts: IntArray, sizes: IntArray) -> FloatArray:
        """Width of each group on each attribute, shape (attributes, groups)."""
        each = zip(self.problem.qi, self.trees, codes, strict=True)
        return np.array([tight_width(attribute, tree, c, starts, sizes) for attribute, tree, c in each])

    def _compared(self, frame: Frame, outlook: Outlook, places: NDArray[Any], candidates: Candidates) -> Candidates:
        """Take the best cut of each attribute; in smaller groups measure the most promising of these."""
        if len(candidates.group) == 0:
            return candidates
        left = candidates.take(_best_of_runs(candidates.group * len(places) + candidates.attribute, candidates.loss))
        small = frame.sizes[left.group] <= _COMPARED_SIZE * self.problem.requirement.min_size
        found, left = [left.take(~small)], left.take(small)
        for _ in range(_COMPARED):
            if len(left.group) == 0:
                break
            best = _best_of_each_group(left)
            trial = left.take(best)
            found.append(trial._replace(loss=self._measured(frame, outlook, self._proposal(frame, places, trial))))
            left.loss[best] = np.inf
            left = left.take(left.loss < np.inf)
        return Candidates.join(found)

    def _measured(self, frame: Frame, outlook: Outlook, proposal: Proposal) -> FloatArray:
        """Return the expected loss of each proposed cut by the tight boxes of its parts on all attributes."""
        groups, places, _, part, parts = proposal
        order, group, sizes = order_by_part(part, frame.sizes[groups], parts)
        rows = order if isinstance(places, slice) else places[order]
        codes = (np.take(codes, rows, mode="clip") for codes in frame.codes)
        width = self._widths(codes, np.cumsum(sizes) - sizes, sizes).sum(axis=0)
        measured = np.bincount(group, weights=outlook.loss(groups[group], sizes, width), minlength=len(groups))
        return measured.astype(np.float64)

    def _proposal(self, frame: Frame, places: NDArray[Any], trial: Candidates) -> Proposal:
        """Spell out one cut a group."""
        rows, local = frame.rows_of(trial.group)
        sizes = frame.sizes[trial.group]
        flat = np.repeat(trial.attribute * len(frame.rows), sizes)
        flat += np.arange(len(frame.rows)) if isinstance(rows, slice) else rows
        place, at, parts = np.take(places.ravel(), flat, mode="clip"), np.repeat(trial.at.astype(np.int32), sizes), 2
        part: NDArray[Any] = (place > at).view(np.int8)
        if (trial.kind != UP_TO).any():
            kind = np.repeat(trial.kind.astype(np.int8), sizes)
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
