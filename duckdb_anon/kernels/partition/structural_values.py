"""Sensitive values that belong to the structure of a table, such as a wage of 0 of children.

Frequency l-diversity forbids every cut that would part such a value off, so that its records and many others stay in
one large group. Cost: linear in the rows, for each quasi-identifier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.model.coded_table import Attribute, IntArray

GROUPS, SHARE = 5, 0.01


def structural(alone: IntArray, counts: IntArray, least: int, bound: float) -> IntArray:
    """Codes of the values that l cannot bound without large groups: those that l must except.

    A value is one where a part of the table has it alone, of `GROUPS` groups and the share `SHARE` of the rows or more
    (a homogeneous part of fewer is what l is for), or where more than 1 / l of all rows have it, so that no group can.

    Args:
        alone: what `rows_alone` found for each code.
        counts: rows with each code.
        least: rows of a group, at least.
        bound: l.

    >>> structural(np.array([9, 0, 100, 0]), np.array([20, 80, 150, 600]), 16, 2.0).tolist()
    [2, 3]
    """
    rows = int(counts.sum())
    return np.flatnonzero((alone >= max(GROUPS * least, SHARE * rows)) | (counts * bound > rows))


def rows_alone(qi: Sequence[Attribute], sensitive: Attribute) -> IntArray:
    """For each sensitive code the most rows that one cut of one quasi-identifier parts off with that value alone.

    A cut takes the rows of one value, or, of an ordered attribute, those up to a value or from a value on.

    >>> age = Attribute("age", "ordered", np.array([0, 1, 2, 2, 3]), np.arange(4.0), 4, -1, np.array([0, 1, 2, 4]))
    >>> wage = Attribute("wage", "ordered", np.array([0, 0, 1, 2, 2]), np.arange(3.0), 3, -1, np.array([0, 2, 3]))
    >>> rows_alone([age], wage).tolist()
    [2, 0, 1]
    """
    most = np.zeros(sensitive.domain, dtype=np.int64)
    for attribute in qi:
        counts = np.bincount(attribute.codes, minlength=attribute.domain)
        first = np.zeros(attribute.domain, dtype=np.int64)
        first[attribute.codes] = sensitive.codes
        other = np.bincount(attribute.codes, sensitive.codes != first[attribute.codes], attribute.domain)
        used = np.flatnonzero(counts)
        value, rows = np.where(other[used] == 0, first[used], -1), counts[used]
        alone = value >= 0
        np.maximum.at(most, value[alone], rows[alone])
        if attribute.kind == "ordered":
            for one_way in (slice(None), slice(None, None, -1)):
                run = np.flatnonzero(value[one_way] != value[one_way][0])
                length = int(run[0]) if len(run) else len(value)
                if value[one_way][0] >= 0:
                    code = value[one_way][0]
                    most[code] = max(most[code], int(rows[one_way][:length].sum()))
    return most
