"""Attributes as features on one scale, so that squared distances between rows can be added up.

Every attribute is a block of features whose variances add up to 1 over the table. Ordered: the mean of the midrank
and of the place in the range, both in [0, 1] (NULL one range beyond the largest value), and where there are few
values also an indicator for each, weighted. Nominal: an indicator for each value. Hierarchy: an indicator for
each node below the root on the way to the value, each level of the tree weighing alike.
A row has few features that are not 0, so that they are kept by code. Cost: linear in rows and codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray

FEW_VALUES = 20
INDICATOR_WEIGHT = 0.7


@dataclass(frozen=True)
class Features:
    """Features of every code of every attribute; the codes of all attributes are numbered through."""

    first_code: IntArray  # number of the first code of each attribute, and of all at the end, shape (attributes + 1,)
    start: IntArray  # code c has the entries start[c]:start[c + 1], shape (codes + 1,)
    feature: CodeArray  # feature of each entry
    value: FloatArray  # value of each entry
    count: int  # number of features
    most: int  # most entries a row can have


@dataclass(frozen=True)
class _Entries:
    """Entries of one attribute: code, feature (from 0 on) and value of each."""

    code: IntArray
    feature: IntArray
    value: FloatArray

    def scaled(self, share: FloatArray, total: float) -> _Entries:
        """Make the variances of all features add up to `total`; a feature that does not vary goes to 0."""
        features = int(self.feature.max(initial=-1)) + 1
        mean = np.bincount(self.feature, self.value * share[self.code], features)
        square = np.bincount(self.feature, self.value**2 * share[self.code], features)
        variance = float(np.maximum(square - mean**2, 0.0).sum())
        scale = np.sqrt(total / variance) if variance > 1e-12 else 0.0
        return _Entries(self.code, self.feature, self.value * scale)

    def appended(self, other: _Entries) -> _Entries:
        """Both blocks, the features of the second numbered after those of the first."""
        shift = int(self.feature.max(initial=-1)) + 1
        return _Entries(
            np.concatenate([self.code, other.code]),
            np.concatenate([self.feature, other.feature + shift]),
            np.concatenate([self.value, other.value]),
        )


def features_of(attributes: Sequence[Attribute]) -> Features:
    """Scale attributes.

    >>> sex = Attribute("sex", "nominal", np.array([0, 1, 1, 0], np.int32), np.arange(2.0), 2, -1, np.array([0, 1]))
    >>> features_of([sex]).value.round(3).tolist()
    [1.414, 1.414]
    """
    blocks = [_block(attribute) for attribute in attributes]
    domains = [max(1, attribute.domain) for attribute in attributes]
    first_code = np.concatenate([[0], np.cumsum(domains)]).astype(np.int64)
    shift = np.concatenate([[0], np.cumsum([int(b.feature.max(initial=-1)) + 1 for b in blocks])]).astype(np.int64)
    code = np.concatenate([b.code + c for b, c in zip(blocks, first_code, strict=False)])
    feature = np.concatenate([b.feature + s for b, s in zip(blocks, shift, strict=False)])
    value = np.concatenate([b.value for b in blocks])
    order = np.argsort(code, kind="stable")
    order = order[value[order] != 0.0]
    start = np.searchsorted(code[order], np.arange(first_code[-1] + 1)).astype(np.int64)
    entries = np.diff(start)
    most = sum(int(entries[a:b].max()) for a, b in pairwise(first_code))
    return Features(first_code, start, feature[order].astype(np.int32), value[order], int(shift[-1]), most)


def _block(attribute: Attribute) -> _Entries:
    counts = attribute.counts.astype(np.float64) if attribute.domain else np.zeros(1)
    share = counts / max(1.0, counts.sum())
    if attribute.kind == "hierarchy":
        return _nodes(attribute).scaled(share, 1.0)
    codes = np.arange(len(counts))
    indicators = _Entries(codes, codes, np.ones(len(counts)))
    if attribute.kind != "ordered":
        return indicators.scaled(share, 1.0)
    midrank = np.cumsum(share) - share / 2
    distance = attribute.positions - attribute.positions[0]
    share_of_range = distance / (attribute.span if attribute.span > 0 else max(1.0, float(distance.max(initial=0.0))))
    line = _Entries(codes, np.zeros(len(codes), dtype=np.int64), (midrank + share_of_range) / 2).scaled(share, 1.0)
    if len(counts) > FEW_VALUES:
        return line
    return line.appended(indicators.scaled(share, INDICATOR_WEIGHT**2)).scaled(share, 1.0)


def _nodes(attribute: Attribute) -> _Entries:
    """An entry a code and node on its way to the root, the root left out."""
    tree, leaf_of_code = attribute.tree()
    node = tree.node_of_leaf[leaf_of_code].astype(np.int64)
    code = np.arange(len(node))
    codes, nodes = [], []
    while len(node):
        below = tree.parent[node] >= 0
        node, code = node[below], code[below]
        codes.append(code)
        nodes.append(node)
        node = tree.parent[node].astype(np.int64)
    every = np.concatenate(nodes)
    _, feature = np.unique(every, return_inverse=True)
    return _Entries(np.concatenate(codes), feature.astype(np.int64), np.ones(len(every)))
