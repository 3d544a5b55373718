"""Groups cut top down where the squared error of all attributes falls most.

A group of n rows is cut by one attribute (up to a value, one value, or the frequent values, against the rest) where
n_l n_r / n |mean_l - mean_r|^2 of the scaled features (`features`) is largest among the cuts whose parts both
satisfy the requirement. That is the drop of the within-group squared error, the criterion of multivariate regression
trees and of microaggregation (Domingo-Ferrer and Mateo-Sanz 2002), taken top down. Groups of more than `SAMPLE` rows
choose by as many of their rows, evenly spaced; the requirement is always asked of all rows.
Guarantee: every group satisfies the requirement, checked once more on the finished groups. Cuts never separate rows
that are equal on the attribute cut. Cost: O(n log n) times attributes and features of a row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from duckdb_anon.kernels.array_ops import number_groups
from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.feature_encoding import Features, features_of
from duckdb_anon.kernels.partition.marginal import OfColumn
from duckdb_anon.kernels.partition.person_level import OfRows, PersonShare, whole_persons
from duckdb_anon.kernels.partition.privacy_models import All, FrequencyDiversity, KAnonymity, Requirement
from duckdb_anon.kernels.partition.sse_candidates import Room
from duckdb_anon.kernels.partition.sse_cuts import NO_ROOM, cut_piece
from duckdb_anon.kernels.thread_pool import in_blocks, work_off
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ParameterError, RequirementError

SAMPLE = 4000
# Larger groups are cut once, and their parts handed to whichever thread is free; smaller ones are worked off whole.
_WHOLE = 1 << 16
_DENOMINATOR = 10**6


@runtime_checkable
class Parted(Protocol):
    """A requirement on shares within parts of a group, such as slicing's diversity."""

    l: float  # noqa: E741 - the letter of the papers
    part_of_code: IntArray


@dataclass(frozen=True)
class Diversity:
    """No code has more than the share 1 / l among the rows of a group that have its part.

    Attributes:
        codes: code of each row, shape (n,).
        l: 1 or more.
        part_of_code: part of each code; None: all codes are of one part.
        person: person of each row, who counts once for each code and part; None: rows are counted.
    """

    codes: CodeArray
    l: float  # noqa: E741 - the letter of the papers
    part_of_code: IntArray | None = None
    person: CodeArray | None = None


def sse_partition(
    qi: Sequence[Attribute],
    sensitive: CodeArray | None,
    requirement: Requirement,
    *,
    person: CodeArray | None = None,
    tick: Callable[[], None] | None = None,
    function: str = "sse_partition",
) -> IntArray:
    """Cut a table into groups that all satisfy a requirement.

    Args:
        qi: the quasi-identifiers, each with n codes.
        sensitive: sensitive code of each row, shape (n,), or None if the requirement does not ask for it.
        requirement: least rows, shares of sensitive values, or several of these.
        person: person of each row, where persons have several rows: groups hold whole persons then, and the
            requirement counts persons.
        tick: polled several times a second; what it raises stops the work.
        function: name used in messages.

    Returns:
        Group of each row, shape (n,), 0-based. Numbers follow the cuts, not the order of the rows.

    Raises:
        RequirementError: the whole table fails; the message says what it could meet.
        ParameterError: there is no quasi-identifier, or these cuts cannot keep the requirement.

    >>> from duckdb_anon.kernels.partition.privacy_models import KAnonymity
    >>> age = Attribute("age", "ordered", np.array([0, 2, 0, 1, 2], np.int32), np.array([0, 3, 4]), 3, -1, np.arange(3))
    >>> sse_partition([age], None, KAnonymity(2)).tolist()
    [0, 1, 0, 1, 1]
    """
    if not qi:
        raise ParameterError(f"{function}: there is no quasi-identifier; name some with qi := [...]")
    rows = len(qi[0].codes)
    if rows == 0:
        return np.empty(0, dtype=np.int64)
    whole = Groups(np.zeros(rows, dtype=np.int64), sensitive, person=person)
    if not requirement.holds(whole).all():
        raise RequirementError(f"{function}: the whole table fails the requirement: {requirement.attained(whole)}")
    attributes = qi if person is None else whole_persons(qi, person)
    group = sse_groups(attributes, requirement.min_size, _diversities(function, requirement, sensitive, person), tick)
    if not requirement.holds(Groups(group, sensitive, whole.table_counts, person)).all():
        raise RequirementError(f"{function}: the finished groups fail the requirement; nothing is released")
    return group


def _diversities(
    function: str, requirement: Requirement, sensitive: CodeArray | None, person: CodeArray | None
) -> list[Diversity]:
    """What a requirement asks beside rows, as shares of codes; k persons are shares of 1 / k of them."""
    if isinstance(requirement, All):
        return [found for part in requirement.parts for found in _diversities(function, part, sensitive, person)]
    if person is not None and isinstance(requirement, KAnonymity):
        return [Diversity(person, requirement.k, person=person)]
    if person is not None and isinstance(requirement, PersonShare):
        return [Diversity(person, requirement.least)]
    if not requirement.needs_sensitive:
        return []
    if sensitive is not None and isinstance(requirement, OfColumn):
        return _diversities(function, requirement.part, requirement.code_of[sensitive], person)
    if isinstance(requirement, OfRows):
        return _diversities(function, requirement.part, sensitive, None)
    if sensitive is not None and isinstance(requirement, FrequencyDiversity):
        return [Diversity(sensitive, requirement.least, person=person)]
    if sensitive is not None and isinstance(requirement, Parted):
        return [Diversity(sensitive, requirement.l, requirement.part_of_code, person)]
    raise ParameterError(
        f"{function}: cut := 'sse' keeps groups of at least k rows and frequency l-diversity, not "
        f"{type(requirement).__name__}; say cut := 'loss'"
    )


def sse_groups(
    attributes: Sequence[Attribute],
    least: int,
    diversities: Sequence[Diversity] = (),
    tick: Callable[[], None] | None = None,
) -> IntArray:
    """Cut rows into groups.

    Args:
        attributes: what to cut by, at least one, n codes each.
        least: fewest rows of a group, 1 or more; n must be at least as much.
        diversities: what every group must satisfy; the rows as one group must satisfy it too.
        tick: polled several times a second; may raise to stop the work.

    Returns:
        Group of each row, numbered from 0, shape (n,).

    >>> age = Attribute("age", "ordered", np.array([0, 2, 0, 1, 2], np.int32), np.array([0, 3, 4]), 3, -1, np.arange(3))
    >>> sse_groups([age], 2).tolist()
    [0, 1, 0, 1, 1]
    """
    attributes = [left_to_right(attribute) for attribute in attributes]
    scaled = features_of(attributes)
    rows = len(attributes[0].codes)
    codes = np.empty((rows, len(attributes)), dtype=np.int32)

    def fill(low: int, high: int) -> None:
        for a, attribute in enumerate(attributes):
            codes[low:high, a] = attribute.codes[low:high] + scaled.first_code[a]

    in_blocks(fill, rows)
    nominal = np.array([attribute.kind == "nominal" for attribute in attributes])
    asked = _numbered(diversities, rows)
    row = np.arange(rows, dtype=np.int32)
    begins = np.zeros(rows, dtype=np.int8)
    spare = np.empty((rows, 1 + codes.shape[1] + asked.codes.shape[1] + asked.once.shape[1]), dtype=np.int32)
    local = threading.local()

    def work(piece: tuple[int, int], flag: IntArray) -> list[tuple[int, int]]:
        low, high = piece
        if not hasattr(local, "space"):
            local.room = Room.of(min(SAMPLE, rows), scaled.most, len(attributes))
            local.space = _Space.of(scaled, asked)
        starts, waiting = np.empty((high - low) // least + 2, np.int64), np.ones(1, np.int64)
        starts[0], starts[1] = high, low
        space, room, middle = local.space, local.room, NO_ROOM
        while middle == NO_ROOM:
            middle = cut_piece(
                row, starts, waiting, int(high - low > _WHOLE), begins, spare, codes, scaled.start,
                scaled.feature, scaled.value, nominal, asked.codes, asked.part, asked.l, asked.once, least, SAMPLE,
                room, space.sums, space.left_sums, space.left_code, space.counts, space.parts, space.seen,
                flag,
            )  # fmt: skip
            if middle == NO_ROOM:
                wanted = int(starts[waiting[0] - 1] - starts[waiting[0]])
                room = Room.of(wanted, scaled.most, len(attributes))
        return [] if middle < 0 else [(low, middle), (middle, high)]

    work_off([(0, rows)], work, tick)
    return number_groups(begins, row)


def left_to_right(attribute: Attribute) -> Attribute:
    """The attribute with codes that follow the leaves of its hierarchy from left to right."""
    if attribute.kind != "hierarchy" or attribute.leaf_of_code is None:
        return attribute
    order = np.argsort(attribute.leaf_of_code, kind="stable")
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return replace(
        attribute,
        codes=place[attribute.codes],
        leaf_of_code=attribute.leaf_of_code[order],
        whole_counts=None if attribute.whole_counts is None else attribute.whole_counts[order],
    )


@dataclass(frozen=True)
class _Numbered:
    """All diversities at once, their codes numbered through.

    Attributes:
        codes: shape (n, diversities).
        part: number of the part of each code, shape (codes,).
        l: numerator and denominator of the l of each code, shape (codes, 2).
        once: number of the person's code and of the person's part of each row, numbered through for each diversity,
            -1 where rows are counted; shape (n, 2 diversities), (n, 0) where all count rows.
    """

    codes: CodeArray
    part: IntArray
    l: IntArray  # noqa: E741 - the letter of the papers
    once: CodeArray


class _Space(NamedTuple):
    """Working space of one thread, see `sse_cuts.cut_piece`."""

    sums: FloatArray
    left_sums: FloatArray
    left_code: IntArray
    counts: IntArray
    parts: IntArray
    seen: IntArray

    @staticmethod
    def of(scaled: Features, asked: _Numbered) -> _Space:
        codes, met, whole = int(scaled.first_code[-1]), int(asked.once.max(initial=-1)) + 1, np.int64
        return _Space(
            np.zeros(scaled.count), np.zeros(scaled.count), np.zeros(codes, whole),
            np.zeros((2, len(asked.part)), whole), np.zeros((2, len(asked.part)), whole), np.zeros((2, met + 1), whole),
        )  # fmt: skip


def _numbered(diversities: Sequence[Diversity], rows: int) -> _Numbered:
    codes = np.empty((rows, len(diversities)), dtype=np.int32)
    parts, limits, offset = [np.zeros(0, dtype=np.int64)], [np.zeros((0, 2), dtype=np.int64)], 0
    counted = any(diversity.person is not None for diversity in diversities)
    once = np.full((rows, 2 * len(diversities) if counted else 0), -1, dtype=np.int32)
    for s, diversity in enumerate(diversities):
        domain = int(diversity.codes.max(initial=0)) + 1
        codes[:, s] = diversity.codes + offset
        own = np.zeros(domain, dtype=np.int64) if diversity.part_of_code is None else diversity.part_of_code[:domain]
        parts.append(own + offset)
        exact = Fraction(diversity.l).limit_denominator(_DENOMINATOR)
        limits.append(np.tile(np.array([[exact.numerator, exact.denominator]], dtype=np.int64), (domain, 1)))
        offset += domain
        if diversity.person is not None:
            once[:, 2 * s] = _pairs(diversity.person, diversity.codes)
            once[:, 2 * s + 1] = _pairs(diversity.person, own[diversity.codes]) + once[:, 2 * s].max(initial=-1) + 1
    return _Numbered(codes, np.concatenate(parts), np.concatenate(limits), once)


def _pairs(person: CodeArray, code: CodeArray | IntArray) -> CodeArray:
    """Number of each row's person and code together."""
    key = person.astype(np.int64) * (int(code.max(initial=0)) + 1) + code
    number: CodeArray = np.unique(key, return_inverse=True)[1].astype(np.int32)
    return number
