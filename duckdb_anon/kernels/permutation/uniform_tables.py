"""The random output tables that permuted columns are draws from: every record equally likely to show every value.

Record i of a group of m shows a value with probability (rows that have it) / m, so that its share of the value's
mass is 1 / m: delta-probability (Li et al. 2020, section 3) holds with delta = 1 / m, for every value of the
group. Cost: the sum over groups of the squared number of different values.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np

from duckdb_anon.kernels.random_output_tables import Delta, MutualCover
from duckdb_anon.kernels.random_output_tables.lp_grouping import find_classes
from duckdb_anon.model.coded_table import Attribute, IntArray


def uniform_cover(attribute: Attribute, group_of_row: IntArray, delta: Fraction | Decimal | float) -> MutualCover:
    """Build and verify the uniform tables of one attribute.

    Args:
        attribute: codes of the column, n rows.
        group_of_row: group of each row, numbers from 0, shape (n,).
        delta: largest share of one record in the mass of a column, in (0, 1].

    Raises:
        RequirementError: a group has fewer than ceil(1/delta) rows.

    >>> codes = np.array([0, 0, 1], dtype=np.int32)
    >>> age = Attribute("age", "ordered", codes, np.array([28.0, 29.0]), 2, -1, np.array([0, 2]))
    >>> uniform_cover(age, np.zeros(3, dtype=np.int64), 0.4).max_ratio.__round__(6)
    0.333333
    """
    required = Delta.of(delta)
    classes = find_classes(attribute, group_of_row)
    sizes = np.bincount(group_of_row, minlength=classes.groups).astype(np.int64)
    required.require(sizes)
    many = np.diff(classes.first)[classes.group]
    offsets = np.concatenate([[0], np.cumsum(many)]).astype(np.int64)
    owner = np.repeat(np.arange(len(many)), many)
    column = classes.first[classes.group[owner]] + np.arange(len(owner)) - offsets[owner]
    tables = MutualCover(attribute, classes, offsets, column, classes.count[column] / sizes[classes.group[owner]])
    tables.verify(required)
    return tables
