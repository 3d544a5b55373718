"""Rows that belong to persons: groups of whole persons, and shares that rows have where requirements count persons.

A requirement put before `Groups` with persons counts persons. Two shares are of rows all the same. No person may have
more than the share 1 / l (1 / k) of a group's rows, for else a row taken at random is hers more often than that,
however many others are there; and no sensitive value may, for else a single row shows it more often. A method that must
keep all rows of a person in one group cuts by `whole_persons`: her rows are alike there, and cuts never separate equal
values.
Cost: a sort of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.privacy_checks_jit import PERSON_ROWS, TOLERANCE, Check
from duckdb_anon.kernels.partition.privacy_models import All, BoolArray, FrequencyDiversity, Requirement
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray

_DENOMINATOR = 10**6


@dataclass(frozen=True)
class PersonShare(Requirement):
    """No person has more than the share 1 / `least` of a group's rows; so it has that many persons or more."""

    least: float  # 1 or more

    @property
    def min_size(self) -> int:
        """Rows a group needs."""
        return max(1, math.ceil(self.least - TOLERANCE))

    @property
    def needs_sensitive(self) -> bool:
        """It is about persons alone."""
        return False

    def rules(self, table_counts: IntArray) -> list[Check]:
        exact = Fraction(self.least).limit_denominator(_DENOMINATOR)
        return [Check(PERSON_ROWS, (exact.numerator, exact.denominator))]

    def holds(self, groups: Groups) -> BoolArray:
        return FrequencyDiversity(self.least).holds(groups.of_rows("person"))

    def attained(self, whole: Groups) -> str:
        rows = whole.of_rows("person")
        most = math.floor(float((rows.sizes / rows.largest).min()) * 1000 + 1e-6) / 1000
        return f"at most 1/{self.least:g} of a group's rows may be of one person, in the whole table 1/{most:g} are"


@dataclass(frozen=True)
class OfRows(Requirement):
    """A requirement on sensitive values that counts rows even where persons are counted."""

    part: Requirement  # what the rows must satisfy

    @property
    def min_size(self) -> int:
        """Rows a group needs."""
        return self.part.min_size

    def rules(self, table_counts: IntArray) -> list[Check]:
        return [rule._replace(rows=True) for rule in self.part.rules(table_counts)]

    def holds(self, groups: Groups) -> BoolArray:
        return self.part.holds(groups.of_rows("value"))

    def attained(self, whole: Groups) -> str:
        return f"of rows, {self.part.attained(whole.of_rows('value'))}"


def of_persons_and_rows(diversity: Requirement, least: float) -> Requirement:
    """The sensitive values are diverse whether persons or rows are counted, and no person has most of the rows."""
    return All((diversity, OfRows(diversity), PersonShare(least)))


def diverse_persons(least: float) -> Requirement:
    """No value is had by more than 1 / `least` of the persons; no value, no person has more than that of the rows."""
    return of_persons_and_rows(FrequencyDiversity(least), least)


def whole_persons(qi: Sequence[Attribute], person: CodeArray) -> tuple[Attribute, ...]:
    """Attributes in which all rows of a person are alike.

    What is constant over a person's rows stays; of values that change, ordered ones become the person's lower median
    and others her most frequent one.

    Args:
        qi: attributes with a code a row, shape (n,).

    >>> age = Attribute("age", "ordered", np.array([2, 0, 1, 1], np.int32), np.arange(3.0), 3, -1, np.array([1, 2, 0]))
    >>> whole_persons([age], np.array([0, 0, 0, 1], np.int32))[0].codes.tolist()
    [1, 1, 1, 1]
    """
    return tuple(replace(a, codes=_of_persons(a, person)) for a in qi)


def _of_persons(attribute: Attribute, person: CodeArray) -> CodeArray:
    """One code for all rows of a person."""
    key = person.astype(np.int64) * attribute.domain + attribute.codes
    if attribute.kind == "ordered":
        key.sort()
        rows = np.bincount(person)
        middle = np.cumsum(rows) - rows + (rows - 1) // 2
        chosen = key[middle] % attribute.domain
    else:
        pair, count = np.unique(key, return_counts=True)
        owner = pair // attribute.domain
        best = np.lexsort((pair, -count, owner))
        chosen = pair[best[np.searchsorted(owner, np.arange(int(person.max(initial=-1)) + 1))]] % attribute.domain
    result: CodeArray = chosen.astype(np.int32)[person]
    return result
