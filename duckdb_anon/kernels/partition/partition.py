"""Partitioning a table into groups that each satisfy a privacy model, top down.

Guarantee: every group of the result satisfies the model, re-checked on the finished partition. The score of cuts is
plugged in: 'median' is Mondrian (LeFevre, DeWitt and Ramakrishnan 2006), 'loss' takes the cuts that save the most
normalized certainty penalty, 'sse' those that lower the squared error most; see `split_candidates` and `sse_split`.
If the parts of a cut fail, the next best cut is tried. How a group is cut depends on its rows alone, so large ones are
worked on several threads and the result is the same.

Cost: O(n) per attribute and level of cuts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from duckdb_anon.kernels.array_ops import number_groups
from duckdb_anon.kernels.jit import compiled, instead
from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.feature_encoding import features_of
from duckdb_anon.kernels.partition.partition_state import Columns, Rows, Workspace, carry_out, lay_out, push
from duckdb_anon.kernels.partition.privacy_checks_jit import Checks, CheckSpace, for_size_alone, satisfied
from duckdb_anon.kernels.partition.privacy_models import PrivacyModel, require_table
from duckdb_anon.kernels.partition.sort_count import most_frequent
from duckdb_anon.kernels.partition.split_candidates import (
    DISTINCT,
    NO_MORE,
    NO_ROOM,
    RANGE,
    SPREAD,
    Candidates,
    LossScore,
    MedianScore,
    loss_cuts,
    median_cuts,
    next_cut,
    set_cut,
)
from duckdb_anon.kernels.partition.sse_split import SAMPLE, ErrorScore, error_cuts, left_to_right, without_tree
from duckdb_anon.kernels.thread_pool import run_queue
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray
from duckdb_anon.model.errors import ParameterError, RequirementError, listed, nearest

Width = Literal["range", "distinct", "spread"]
WIDTHS = {"range": RANGE, "distinct": DISTINCT, "spread": SPREAD}
# Larger groups are cut once, and their parts handed to whichever thread is free; smaller ones are cut to the end.
_LARGE = 1 << 16


def partition(
    qi: Sequence[Attribute],
    sensitive: CodeArray | None,
    requirement: PrivacyModel,
    *,
    person: CodeArray | None = None,
    guides: Sequence[Attribute] = (),
    cut: Literal["median", "loss", "sse"] = "median",
    width: Width = "range",
    mode: Literal["strict", "relaxed"] = "strict",
    tick: Callable[[], None] | None = None,
    function: str = "partition",
) -> IntArray:
    """Cut a table into groups that all satisfy a privacy model.

    Args:
        guides: attributes whose squared error counts too, with cut := 'sse'; none is cut.
        cut: 'median', 'loss' for the cuts that save the most NCP, 'sse' for the least squared error.
        width: how the median cut ranks attributes, see `MedianScore`.
        mode: 'strict' never separates equal values; 'relaxed' (median only) deals median rows to both sides.

    Returns:
        Group of each row, shape (n,), 0-based. Numbers follow the cuts, not the order of the rows.

    Raises:
        RequirementError: the whole table fails; the message says what it could meet.
        ParameterError: an option is unknown, or there is no quasi-identifier.

    >>> from duckdb_anon.kernels.partition.privacy_models import KAnonymity
    >>> ages = np.array([3, 0, 2, 1], dtype=np.int32)
    >>> age = Attribute('age', 'ordered', ages, np.arange(4.0), 4, -1, np.argsort(ages))
    >>> partition((age,), None, KAnonymity(2)).tolist()
    [1, 0, 1, 0]
    """
    _check_options(function, cut, width, mode, qi)
    rows = len(qi[0].codes)
    if requirement.needs_sensitive and sensitive is None:
        raise ParameterError(f"{function}: the requirement needs a sensitive column; give sensitive := 'column'")
    if rows == 0:
        return np.empty(0, dtype=np.int64)
    table = Groups(np.zeros(rows, dtype=np.int8), sensitive, person=person)
    require_table(function, requirement, table)
    score = _Score.of(qi, guides, cut, width, mode, person)
    checks = Checks.of(requirement.checks(table.table_counts), sensitive, person)
    group = _cut_all(score, sensitive, checks, max(1, requirement.min_size), tick)
    finished = Groups(group, sensitive, table_counts=table.table_counts, person=person)
    if not requirement.holds(finished).all():
        raise RequirementError(f"{function}: the finished groups fail the requirement; nothing is released")
    return group


class _Score(NamedTuple):
    """What cuts are listed by: the compiled function, what it reads for so many rows, and the attributes it cuts."""

    list_cuts: Any
    space: Callable[[int], Any]
    attributes: tuple[Attribute, ...]
    sample: int

    @staticmethod
    def of(
        qi: Sequence[Attribute], guides: Sequence[Attribute], cut: str, width: Width, mode: str,
        person: CodeArray | None,
    ) -> _Score:  # fmt: skip
        if cut == "loss":
            return _Score(loss_cuts, lambda rows: LossScore(), tuple(qi), 0)
        if cut == "median":
            return _Score(median_cuts, lambda rows: MedianScore(WIDTHS[width], int(mode == "relaxed")), tuple(qi), 0)
        every = (*(qi if person is None else person_level(qi, person)), *guides)
        ordered = [left_to_right(attribute) for attribute in every]
        features, flat = features_of(ordered), tuple(without_tree(attribute) for attribute in ordered)
        return _Score(error_cuts, lambda rows: ErrorScore.of(features, len(qi), rows), flat, SAMPLE)


def _cut_all(
    score: _Score, sensitive: CodeArray | None, checks: Checks, min_size: int, tick: Callable[[], None] | None
) -> IntArray:
    columns = Columns.of(score.attributes)
    rows = Rows.of(score.attributes, columns, sensitive)
    count, local = len(rows.row), threading.local()
    finished = np.zeros(1, dtype=np.int64)
    kernel = instead(cut_groups, {list_cuts: score.list_cuts, **for_size_alone(checks)})

    def work(piece: tuple[int, int], flag: IntArray) -> list[tuple[int, int]]:
        start, stop = piece
        if getattr(local, "rows", -1) < stop - start:
            local.rows = stop - start
            local.space, local.checking = Workspace.of(columns, stop - start), CheckSpace.of(checks)
            room = min(score.sample or stop - start, count)
            local.found, local.score = Candidates.of(columns, room), score.space(room)
        space, found, plugged, once = local.space, local.found, local.score, stop - start > _LARGE
        space.stack[0], space.stack[1], space.waiting[0] = start, stop, 1
        while True:
            parts = kernel(
                columns, rows, checks, space, local.checking, found, plugged, min_size, int(once), flag, finished
            )
            if parts != NO_ROOM:
                break
            low, high = space.stack[2 * space.waiting[0] - 2 : 2 * space.waiting[0]].tolist()
            found, plugged = Candidates.of(columns, high - low), score.space(high - low)
        return list(pairwise(space.part_start[: parts + 1].tolist())) if once and parts > 1 else []

    def poll() -> None:
        progress.say("groups", float(finished[0]) / count)
        if tick is not None:
            tick()

    run_queue([(0, count)], work, poll)
    return number_groups(rows.first, rows.row)


@compiled
def list_cuts(
    columns: Columns, rows: Rows, space: Workspace, found: Candidates, score: Any, min_size: int, start: int, stop: int,
    attempt: int,
) -> int:  # fmt: skip
    """Stands for the score's function: lists cuts, returns how many there are, NO_MORE or NO_ROOM."""
    return NO_MORE


@compiled
def cut_groups(
    columns: Columns, rows: Rows, checks: Checks, space: Workspace, checking: CheckSpace, found: Candidates, score: Any,
    min_size: int, once: int, flag: IntArray, finished: IntArray,
) -> int:  # fmt: skip
    """Cut the groups that wait on the stack, and their parts unless `once`.

    Args:
        rows: the table; `rows.first` is set where a finished group starts.
        score: what `list_cuts` reads.
        once: 1 to make one cut only.
        finished: rows in finished groups, for display: threads may overwrite one another's sum.

    Returns:
        Number of parts of the last group; NO_ROOM where the group on top of the stack needs more working space.
    """
    parts = 1
    while space.waiting[0] > 0 and flag[0] == 0:
        top = space.waiting[0] - 1
        start, stop = space.stack[2 * top], space.stack[2 * top + 1]
        parts, attempt = 1, 0
        while parts == 1 and stop - start >= 2 * min_size and flag[0] == 0:
            cuts = list_cuts(columns, rows, space, found, score, min_size, start, stop, attempt)
            if cuts == NO_ROOM:
                return NO_ROOM
            if cuts == NO_MORE:
                break
            attempt += 1
            parts = _first_allowed(columns, rows, checks, space, checking, found, min_size, start, stop, flag)
        space.waiting[0] = top
        if parts == 1:
            rows.first[start] = 1
            finished[0] += stop - start
        elif once == 1:
            return parts
        else:
            push(space, parts)
    return parts


@compiled
def _first_allowed(
    columns: Columns, rows: Rows, checks: Checks, space: Workspace, checking: CheckSpace, found: Candidates,
    min_size: int, start: int, stop: int, flag: IntArray,
) -> int:  # fmt: skip
    """Make the first cut whose parts all satisfy the checks; return their number, 1 if there is none."""
    while flag[0] == 0:
        chosen = next_cut(found)
        if chosen < 0:
            return 1
        if set_cut(columns, rows, space, found, chosen, start, stop):
            parts = lay_out(columns, rows, space, start, stop)
            if parts > 1 and _parts_hold(rows, checks, space, checking, min_size, parts):
                carry_out(rows, space, start, stop)
                return parts
    return 1


@compiled
def _parts_hold(rows: Rows, checks: Checks, space: Workspace, checking: CheckSpace, min_size: int, parts: int) -> bool:
    """Say whether every part that is laid out satisfies the checks."""
    for p in range(parts):
        if space.part_start[p + 1] - space.part_start[p] < min_size:
            return False
    for p in range(parts):
        low, high = space.part_start[p], space.part_start[p + 1]
        if not satisfied(checks, checking, rows.sensitive, rows.row, rows.order, low, high):
            return False
    return True


def _check_options(function: str, cut: str, width: str, mode: str, qi: Sequence[Attribute]) -> None:
    allowed = {
        "cut": (cut, ("loss", "median", "sse")),
        "width": (width, tuple(WIDTHS)),
        "mode": (mode, ("strict", "relaxed")),
    }
    for name, (value, known) in allowed.items():
        if value not in known:
            raise ParameterError(f"{function}: {name} = '{value}' is not one of {listed(known)}{nearest(value, known)}")
    if not qi:
        raise ParameterError(f"{function}: there is no quasi-identifier; name some with qi := [...]")


def person_level(qi: Sequence[Attribute], person: CodeArray) -> tuple[Attribute, ...]:
    """Attributes in which all rows of a person are alike.

    What is constant over a person's rows stays; of values that change, ordered ones become the person's lower median
    and others her most frequent one.

    `qi`: attributes with a code a row, shape (n,).

    >>> age = Attribute("age", "ordered", np.array([2, 0, 1, 1], np.int32), np.arange(3.0), 3, -1, np.array([1, 2, 0]))
    >>> person_level([age], np.array([0, 0, 0, 1], np.int32))[0].codes.tolist()
    [1, 1, 1, 1]
    """
    return tuple(replace(a, codes=_of_persons(a, person)) for a in qi)


def _of_persons(attribute: Attribute, person: CodeArray) -> CodeArray:
    """One code for all rows of a person."""
    if attribute.kind == "ordered":
        key = np.sort(person.astype(np.int64) * attribute.domain + attribute.codes)
        rows = np.bincount(person)
        middle = np.cumsum(rows) - rows + (rows - 1) // 2
        chosen = (key[middle] % attribute.domain).astype(np.int32)
    else:
        chosen = most_frequent(person, attribute.codes, attribute.domain)
    result: CodeArray = chosen[person]
    return result
