"""Binning of ordered attributes before they are randomized: fewer values, less noise.

A bin is released as one of its values, the one nearest to the mean of its rows, so that the column keeps its type and
sums stay close. Bins without rows are left out of the domain. NULL, NaN and infinities are not binned.
Cost: O(n + domain).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray
from duckdb_anon.model.errors import ParameterError


def representatives(attribute: Attribute, bins: float | Sequence[float], function: str) -> CodeArray:
    """Return for each code the code of the value its bin is released as, shape (domain,)."""
    if attribute.kind != "ordered":
        raise ParameterError(f"{function}: bins names '{attribute.name}', which is not ordered; leave it out")
    finite = attribute.special_from
    positions = attribute.positions[:finite]
    result = np.arange(attribute.domain, dtype=np.int32)
    if finite == 0:
        return result
    bin_of_code = np.searchsorted(_cut_points(attribute, bins, function), positions, side="right")
    rows = attribute.counts[:finite].astype(np.float64)
    _, bin_of_code = np.unique(bin_of_code, return_inverse=True)
    mean = np.bincount(bin_of_code, rows * positions) / np.bincount(bin_of_code, rows)
    # the code nearest to the mean of each bin, the smaller of two equally near
    order = np.lexsort((positions, np.abs(positions - mean[bin_of_code]), bin_of_code))
    nearest = order[np.unique(bin_of_code[order], return_index=True)[1]]
    result[:finite] = nearest[bin_of_code]
    return result


def _cut_points(attribute: Attribute, bins: float | Sequence[float], function: str) -> FloatArray:
    """Return the inner cut points, ascending."""
    wrong = ParameterError(
        f"{function}: bins of '{attribute.name}' must be a whole number of at least 1, or a list of cut points"
    )
    if isinstance(bins, (bool, str)) or bins is None:
        raise wrong
    try:
        points = np.atleast_1d(np.asarray(bins, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise wrong from error
    if not np.isfinite(points).all():
        raise wrong
    if np.ndim(bins) > 0:
        return np.unique(points)
    count = int(points[0])
    if count != points[0] or count < 1:
        raise wrong
    return float(attribute.positions[0]) + attribute.span * np.arange(1, count) / count
