"""How wide a group is on an attribute: what cuts are ranked by and loss is counted in.

The normalized certainty penalty (Xu et al. 2006): 0 for a single value; share of the range for ordered
attributes, share of the leaves below the lowest common ancestor for hierarchies, share of the domain for
sets of nominal values. NULL (or NaN, infinity) mixed with values covers everything: 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.coded_table import Attribute, FloatArray


def range_width(attribute: Attribute, low: NDArray[Any], high: NDArray[Any]) -> FloatArray:
    """Return the share of the range covered by codes (leaves where there is a tree) low .. high."""
    if attribute.hierarchy is not None:
        return attribute.hierarchy.share(low, high)
    wide = attribute.positions[high] - attribute.positions[low]
    share = wide / attribute.span if attribute.span > 0 else np.zeros(len(low))
    mixed = attribute.mixed(low, high)
    result: FloatArray = np.where(mixed, 1.0, share)
    return result


def box_width(attribute: Attribute, low: NDArray[Any], high: NDArray[Any], values: NDArray[Any]) -> FloatArray:
    """Return the width of boxes that are intervals, nodes or sets, as the attribute is of one kind or another."""
    return set_width(attribute, values) if attribute.kind == "nominal" else range_width(attribute, low, high)


def set_width(attribute: Attribute, values: NDArray[Any]) -> FloatArray:
    """Return the share of the domain covered by sets of that many nominal values, 0 for one value.

    >>> import types
    >>> set_width(types.SimpleNamespace(domain=4), np.array([1, 2, 4])).tolist()
    [0.0, 0.5, 1.0]
    """
    share: FloatArray = np.where(values > 1, values / max(1, attribute.domain), 0.0)
    return share
