"""Partitioning a table into groups that each satisfy a privacy requirement, top down.

Guarantee: every group of the result satisfies the requirement, re-checked on the finished partition.
Mondrian (LeFevre, DeWitt and Ramakrishnan 2006) with median cuts, or with the cuts that save the most
normalized certainty penalty (`cut='loss'`). Departure from the papers: all groups of a level are treated in
one pass of array operations; the result is the same as that of one group after the other.

Cost: O(n log n) per attribute and level of cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np

from duckdb_anon.kernels.groups.frame import Cut, Frame, Problem, Settled
from duckdb_anon.kernels.groups.loss_cut import LossCuts
from duckdb_anon.kernels.groups.median import MedianCuts, Width
from duckdb_anon.kernels.groups.requirements import BoolArray, Groups, Requirement
from duckdb_anon.kernels.groups.trees import Tree
from duckdb_anon.model import progress
from duckdb_anon.model.errors import ParameterError, RequirementError, listed, nearest
from duckdb_anon.model.table import Attribute, CodeArray, IntArray


class Cutter(Protocol):
    """Finds a cut for each group of a frame."""

    def choose(self, frame: Frame) -> Cut:
        """Return a cut, accepted or not, for each group."""


def partition(
    qi: tuple[Attribute, ...],
    sensitive: CodeArray | None,
    requirement: Requirement,
    *,
    cut: Literal["median", "loss"] = "median",
    width: Width = "range",
    mode: Literal["strict", "relaxed"] = "strict",
    tick: Callable[[], None] | None = None,
    function: str = "partition",
) -> IntArray:
    """Cut a table into groups that all satisfy a requirement.

    Args:
        qi: the quasi-identifiers, each with n codes.
        sensitive: sensitive code of each row, shape (n,), or None if the requirement does not ask for it.
        requirement: what every group must satisfy.
        cut: 'median', or 'loss' for the cuts that save the most NCP.
        width: how the median cut ranks attributes, see `MedianCuts`.
        mode: 'strict' never separates equal values; 'relaxed' (median only) deals median rows to both sides.
        tick: called once a level, to poll for interrupts.
        function: name used in messages.

    Returns:
        Group of each row, shape (n,), 0-based. Numbers follow the cuts, not the order of the rows.

    Raises:
        RequirementError: the whole table fails; the message says what it could meet.
        ParameterError: an option is unknown, or there is no quasi-identifier.

    >>> from duckdb_anon.kernels.groups.requirements import KAnonymity
    >>> ages = np.array([3, 0, 2, 1], dtype=np.int32)
    >>> place = np.arange(4.0)
    >>> age = Attribute('age', 'ordered', ages, place, 4, -1, np.argsort(ages))
    >>> partition((age,), None, KAnonymity(2)).tolist()
    [1, 0, 1, 0]
    """
    _check_options(function, cut, width, mode, qi)
    rows = len(qi[0].codes)
    counts = np.zeros(0, dtype=np.int64) if sensitive is None else np.bincount(sensitive)
    if requirement.needs_sensitive and sensitive is None:
        raise ParameterError(f"{function}: the requirement needs a sensitive column; give sensitive := 'column'")
    if rows == 0:
        return np.empty(0, dtype=np.int64)
    whole = Groups(np.zeros(rows, dtype=np.int64), sensitive, counts)
    if not requirement.holds(whole).all():
        raise RequirementError(f"{function}: the whole table fails the requirement: {requirement.attained(whole)}")
    problem = Problem(qi, requirement, counts)
    trees = tuple(None if a.hierarchy is None else Tree.of(a.hierarchy) for a in qi)
    cutter: Cutter = LossCuts(problem, trees) if cut == "loss" else MedianCuts(problem, trees, width, mode == "relaxed")
    result = _cut_all(cutter, Frame.of_table(qi, sensitive, rows), requirement, tick)
    if not requirement.holds(result.groups(sensitive, counts)).all():
        raise RequirementError(f"{function}: the finished groups fail the requirement; nothing is released")
    return result.group_of_row


class _Result:
    """The partition as far as it is settled.

    Attributes:
        group_of_row: final group of each settled row.
        parent_of_row: running number of the group each row's group was cut from, if anybody asks for it.
        finished: number of settled groups.
    """

    def __init__(self, rows: int, with_parents: bool) -> None:
        """Start with nothing settled."""
        self.group_of_row: IntArray = np.empty(rows, dtype=np.int64)
        self.parent_of_row: IntArray | None = np.zeros(rows, dtype=np.int64) if with_parents else None
        self.finished = 0
        self._parents = 0

    def settle(self, final: Settled) -> None:
        """Number groups that are final."""
        number = np.arange(self.finished, self.finished + len(final.sizes))
        self.group_of_row[final.rows] = np.repeat(number, final.sizes)
        self.finished += len(final.sizes)

    def remember(self, frame: Frame, accepted: BoolArray) -> None:
        """Note the groups that are about to be cut as parents of their parts."""
        if self.parent_of_row is not None:
            places, local = frame.rows_of(np.flatnonzero(accepted))
            self.parent_of_row[frame.rows[places]] = local + self._parents
            self._parents += int(accepted.sum())

    def groups(self, sensitive: CodeArray | None, counts: IntArray) -> Groups:
        """Return the finished groups, ready to be checked again."""
        if self.parent_of_row is None:
            return Groups(self.group_of_row, sensitive, counts)
        _, parent = np.unique(self.parent_of_row, return_inverse=True)
        parent_of_group = np.zeros(self.finished, dtype=np.int64)
        parent_of_group[self.group_of_row] = parent
        parents = Groups(parent, sensitive, counts)
        return Groups(self.group_of_row, sensitive, counts, parents=parents, parent_of_group=parent_of_group)


def _cut_all(cutter: Cutter, frame: Frame, requirement: Requirement, tick: Callable[[], None] | None) -> _Result:
    rows = len(frame.rows)
    result = _Result(rows, requirement.uses_parents)
    while len(frame):
        progress.say("groups", 1 - len(frame.rows) / rows)
        if tick is not None:
            tick()
        cut = cutter.choose(frame)
        if not cut.accepted.any():
            result.settle(frame.settled())
            break
        result.remember(frame, cut.accepted)
        final, frame = frame.cut(cut, requirement.min_size)
        for groups in final:
            result.settle(groups)
    return result


def _check_options(function: str, cut: str, width: str, mode: str, qi: tuple[Attribute, ...]) -> None:
    allowed = {
        "cut": (cut, ("loss", "median")),
        "width": (width, ("range", "distinct", "spread")),
        "mode": (mode, ("strict", "relaxed")),
    }
    for name, (value, known) in allowed.items():
        if value not in known:
            raise ParameterError(f"{function}: {name} = '{value}' is not one of {listed(known)}{nearest(value, known)}")
    if not qi:
        raise ParameterError(f"{function}: there is no quasi-identifier; name some with qi := [...]")
