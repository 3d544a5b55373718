"""Quasi-identifiers that are alike in all rows of an individual, so that cuts keep the rows of each together.

Cuts never separate equal values. Cost: a sort of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from duckdb_anon.kernels.partition.sort_count import most_frequent
from duckdb_anon.model.coded_table import Attribute, CodeArray


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
