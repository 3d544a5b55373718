"""How much two confidence intervals of one figure overlap: shared by the comparisons of analyses."""

from __future__ import annotations

import numpy as np

from duckdb_anon.model.coded_table import FloatArray


def interval_overlap(first: tuple[FloatArray, FloatArray], second: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Mean share that the common part has of each interval (Karr et al. 2006, section 3.2); 1 for equal ones.

    Below 0 where they lie apart: minus the gap in units of their lengths. Intervals without length overlap by 1 where
    they are equal; NaN where an end is unknown.

    Args:
        first: lower and upper ends.
        second: lower and upper ends.

    >>> ends = lambda low, high: (np.array([low]), np.array([high]))
    >>> interval_overlap(ends(0.0, 4.0), ends(2.0, 4.0)).tolist()
    [0.75]
    >>> interval_overlap(ends(0.0, 1.0), ends(2.0, 3.0)).tolist()
    [-1.0]
    """
    common = np.minimum(first[1], second[1]) - np.maximum(first[0], second[0])
    lengths = [high - low for low, high in (first, second)]
    equal = (first[0] == second[0]) & (first[1] == second[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (common / lengths[0] + common / lengths[1]) / 2
    overlap: FloatArray = np.where(equal, 1.0, share)
    return overlap
