"""Binning of ordered attributes before they are randomized: fewer values, less noise.

A bin is published as one of its own values, the one nearest to the mean of its rows, so that the column
keeps its type and sums stay close. Bins without rows have no value to stand for them and are left out of the
domain. NULL, NaN and infinities stay values of their own. Cost: O(n + domain).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray
from duckdb_anon.model.errors import ParameterError


def representatives(attribute: Attribute, bins: float | Sequence[float], function: str) -> CodeArray:
    """Return for each code the code of the value its bin is published as, shape (domain,).

    Args:
        attribute: an ordered attribute.
        bins: number of bins of equal width over the attribute's span, or inner cut points; a value equal to
            a cut point starts a bin.
        function: SQL function named in errors.

    Raises:
        ParameterError: the attribute is not ordered, or `bins` is neither.
    """
    if attribute.kind != "ordered":
        raise ParameterError(f"{function}: bins names '{attribute.name}', which is not ordered; leave it out")
    known = attribute.special_from
    places = attribute.positions[:known]
    result = np.arange(attribute.domain, dtype=np.int32)
    if known == 0:
        return result
    bin_of_code = np.searchsorted(_cuts(attribute, bins, function), places, side="right")
    rows = attribute.counts[:known].astype(np.float64)
    _, bin_of_code = np.unique(bin_of_code, return_inverse=True)
    mean = np.bincount(bin_of_code, rows * places) / np.bincount(bin_of_code, rows)
    result[:known] = _nearest(places, bin_of_code, mean)[bin_of_code]
    return result


def _nearest(places: FloatArray, bin_of_code: np.ndarray, mean: FloatArray) -> CodeArray:
    """Return for each bin the code nearest to the bin's mean, the smaller of two equally near."""
    order = np.lexsort((places, np.abs(places - mean[bin_of_code]), bin_of_code))
    first = np.unique(bin_of_code[order], return_index=True)[1]
    return order[first].astype(np.int32)


def _cuts(attribute: Attribute, bins: float | Sequence[float], function: str) -> FloatArray:
    """Return the inner cut points, rising."""
    wrong = ParameterError(
        f"{function}: bins of '{attribute.name}' must be a whole number of at least 1, or a list of cut points"
    )
    if isinstance(bins, (bool, str)) or bins is None:
        raise wrong
    try:
        given = np.atleast_1d(np.asarray(bins, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise wrong from error
    if not np.isfinite(given).all():
        raise wrong
    if np.ndim(bins) > 0:
        return np.unique(given)
    count = int(given[0])
    if count != given[0] or count < 1:
        raise wrong
    low = float(attribute.positions[0])
    return low + attribute.span * np.arange(1, count) / count
