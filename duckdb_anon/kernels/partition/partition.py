"""Partitioning a table into groups that each satisfy a privacy requirement, top down.

Guarantee: every group of the result satisfies the requirement, re-checked on the finished partition.
Mondrian (LeFevre, DeWitt and Ramakrishnan 2006) with median cuts, or with the cuts that save the most
normalized certainty penalty (`cut='loss'`). One group after the other from a stack; how a group is cut depends on
its rows alone, so large ones are worked on several threads and the result is the same.

Cost: O(n) per attribute and level of cuts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from duckdb_anon.kernels.array_ops import number_groups
from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.flat_attributes import Lines
from duckdb_anon.kernels.partition.loss_cut import groups_by_loss
from duckdb_anon.kernels.partition.median import WIDTHS, Width, groups_at_median
from duckdb_anon.kernels.partition.partition_state import Rows, Space
from duckdb_anon.kernels.partition.privacy_checks_jit import checking
from duckdb_anon.kernels.partition.privacy_models import Requirement
from duckdb_anon.kernels.partition.rules import Rules, Tally
from duckdb_anon.kernels.partition.split_candidates import Candidates
from duckdb_anon.kernels.thread_pool import work_off
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray
from duckdb_anon.model.errors import ParameterError, RequirementError, listed, nearest

BY_LOSS, AT_MEDIAN, RELAXED = range(3)
# Larger groups are cut once, and their parts handed to whichever thread is free; smaller ones are worked off whole.
_WHOLE = 1 << 16


def partition(
    qi: tuple[Attribute, ...],
    sensitive: CodeArray | None,
    requirement: Requirement,
    *,
    person: CodeArray | None = None,
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
        person: person of each row, shape (n,), where persons have several rows: the requirement then counts persons.
        cut: 'median', or 'loss' for the cuts that save the most NCP.
        width: how the median cut ranks attributes, see `groups_at_median`.
        mode: 'strict' never separates equal values; 'relaxed' (median only) deals median rows to both sides.
        tick: polled several times a second; what it raises stops the work.
        function: name used in messages.

    Returns:
        Group of each row, shape (n,), 0-based. Numbers follow the cuts, not the order of the rows.

    Raises:
        RequirementError: the whole table fails; the message says what it could meet.
        ParameterError: an option is unknown, or there is no quasi-identifier.

    >>> from duckdb_anon.kernels.partition.privacy_models import KAnonymity
    >>> ages = np.array([3, 0, 2, 1], dtype=np.int32)
    >>> place = np.arange(4.0)
    >>> age = Attribute('age', 'ordered', ages, place, 4, -1, np.argsort(ages))
    >>> partition((age,), None, KAnonymity(2)).tolist()
    [1, 0, 1, 0]
    """
    _check_options(function, cut, width, mode, qi)
    rows = len(qi[0].codes)
    if requirement.needs_sensitive and sensitive is None:
        raise ParameterError(f"{function}: the requirement needs a sensitive column; give sensitive := 'column'")
    if rows == 0:
        return np.empty(0, dtype=np.int64)
    whole = Groups(np.zeros(rows, dtype=np.int64), sensitive, person=person)
    if not requirement.holds(whole).all():
        raise RequirementError(f"{function}: the whole table fails the requirement: {requirement.attained(whole)}")
    how = BY_LOSS if cut == "loss" else RELAXED if mode == "relaxed" else AT_MEDIAN
    rules = Rules.of(requirement.rules(whole.table_counts), sensitive, person)
    group = _cut_all(qi, sensitive, rules, _How(how, WIDTHS[width], max(1, requirement.min_size)), tick)
    finished = Groups(group, sensitive, table_counts=whole.table_counts, person=person)
    if not requirement.holds(finished).all():
        raise RequirementError(f"{function}: the finished groups fail the requirement; nothing is released")
    return group


class _How(NamedTuple):
    """Which cuts are made: BY_LOSS, AT_MEDIAN or RELAXED; width of median cuts; fewest rows of a group."""

    cut: int
    width: int
    min_size: int


def _cut_all(
    qi: tuple[Attribute, ...],
    sensitive: CodeArray | None,
    rules: Rules,
    how: _How,
    tick: Callable[[], None] | None,
) -> IntArray:
    lines = Lines.of(qi)
    rows = Rows.of(qi, lines, sensitive)
    count, local = len(rows.row), threading.local()
    settled = np.zeros(1, dtype=np.int64)
    by_loss, at_median = checking(groups_by_loss, rules), checking(groups_at_median, rules)

    def work(piece: tuple[int, int], flag: IntArray) -> list[tuple[int, int]]:
        start, stop = piece
        once = stop - start > _WHOLE
        if getattr(local, "rows", -1) < stop - start:
            local.rows = stop - start
            local.space = Space.of(lines, stop - start)
            local.found = Candidates.of(lines, stop - start)
            local.tally = Tally.of(rules)
        space = local.space
        whole = int(once)
        if how.cut == BY_LOSS:
            parts = by_loss(
                lines, rows, rules, space, local.tally, local.found, how.min_size, whole, start, stop, flag, settled
            )
        else:
            relaxed = int(how.cut == RELAXED)
            parts = at_median(
                lines,
                rows,
                rules,
                space,
                local.tally,
                how.min_size,
                how.width,
                relaxed,
                whole,
                start,
                stop,
                flag,
                settled,
            )
        bounds = space.part_start[: parts + 1].tolist() if once and parts > 1 else []
        return list(pairwise(bounds))

    def poll() -> None:
        progress.say("groups", float(settled[0]) / count)
        if tick is not None:
            tick()

    work_off([(0, count)], work, poll)
    return number_groups(rows.first, rows.row)


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
