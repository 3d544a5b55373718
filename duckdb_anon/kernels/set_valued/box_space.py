"""Boxes that grow by joining: what clustering needs to know about the quasi-identifiers.

A box is the smallest and largest code of an ordered attribute, those of the leaves of a hierarchy, or the set
of values of a nominal one; its width is the normalized certainty penalty (Xu et al. 2006). Boxes have
numbers; at first box i is record i alone. Cost: linear in the boxes asked about, times the domain for nominal
attributes.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from duckdb_anon.kernels.partition.ncp import range_width, set_width
from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray


class _Boxes(Protocol):
    """The boxes on one attribute."""

    def joined(self, box: IntArray, others: IntArray) -> FloatArray:
        """Return the width of each box joined with each of `others`; one box goes with all of them."""

    def gather(self, box: int, members: IntArray) -> None:
        """Make `box` the box around all of `members`."""


class _Ranges:
    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        codes = attribute.codes
        self.low = (codes if attribute.leaf_of_code is None else attribute.leaf_of_code[codes]).astype(np.int64)
        self.high = self.low.copy()

    def joined(self, box: IntArray, others: IntArray) -> FloatArray:
        low = np.minimum(self.low[others], self.low[box])
        return range_width(self.attribute, low, np.maximum(self.high[others], self.high[box]))

    def gather(self, box: int, members: IntArray) -> None:
        self.low[box], self.high[box] = self.low[members].min(), self.high[members].max()


class _Sets:
    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        self.flags = np.zeros((len(attribute.codes), attribute.domain), dtype=bool)
        self.flags[np.arange(len(attribute.codes)), attribute.codes] = True

    def joined(self, box: IntArray, others: IntArray) -> FloatArray:
        return set_width(self.attribute, (self.flags[others] | self.flags[box]).sum(axis=1))

    def gather(self, box: int, members: IntArray) -> None:
        self.flags[box] = self.flags[members].any(axis=0)


class BoxSpace:
    """Boxes on all quasi-identifiers."""

    def __init__(self, qi: tuple[Attribute, ...]) -> None:
        self.columns: list[_Boxes] = [
            _Sets(a) if a.kind == "nominal" and a.hierarchy is None else _Ranges(a) for a in qi
        ]

    def joined(self, box: int, others: IntArray) -> FloatArray:
        """Return the mean width over attributes of one box joined with each of `others`, in [0, 1]."""
        one = np.array([box])
        mean: FloatArray = np.mean([column.joined(one, others) for column in self.columns], axis=0)
        return mean

    def widths(self, boxes: IntArray) -> FloatArray:
        """Return the mean width over attributes of each box, in [0, 1]."""
        mean: FloatArray = np.mean([column.joined(boxes, boxes) for column in self.columns], axis=0)
        return mean

    def gather(self, box: int, members: IntArray) -> None:
        """Make `box` the box around all of `members`."""
        for column in self.columns:
            column.gather(box, members)
