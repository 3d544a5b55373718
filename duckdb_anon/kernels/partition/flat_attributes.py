"""The attributes of a table as flat arrays, which is what compiled functions can read.

Codes are those of the rows: an ordered or nominal attribute's own, a hierarchy's leaf numbers. Widths are those of
`widths`: normalized certainty penalty (Xu et al. 2006). Cost: linear in the domains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duckdb_anon.kernels.jit import compiled_in_place
from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray

ORDERED, NOMINAL, TREE = 0, 1, 2
_KINDS = {"ordered": ORDERED, "nominal": NOMINAL, "hierarchy": TREE}


class Lines(NamedTuple):
    """What cuts need to know of each attribute.

    Attributes:
        kind: ORDERED, NOMINAL or TREE, shape (attributes,).
        offset: where the attribute's codes start in arrays with one entry a code of any attribute,
            shape (attributes + 1,).
        domain: values of the attribute, for the share a set of them has.
        special: codes from here on are NULL or not finite.
        span: range of the finite values.
        position: place of each code on its number line; the code itself for hierarchies.
        depths: depths of the tree, 0 where there is none.
        chain_at: where the tree's ancestors start in `chain`: chain[chain_at + depth * leaves + leaf] is a node.
        chain: node above each leaf at each depth.
        node_at: where the tree's nodes start in `ordinal` and `below`.
        ordinal: place of each node among its siblings.
        below: leaves at or below each node.
        children: largest number of children of a node, 2 where there is no tree.
    """

    kind: IntArray
    offset: IntArray
    domain: IntArray
    special: IntArray
    span: FloatArray
    position: FloatArray
    depths: IntArray
    chain_at: IntArray
    chain: IntArray
    node_at: IntArray
    ordinal: IntArray
    below: IntArray
    children: IntArray

    @staticmethod
    def of(qi: tuple[Attribute, ...]) -> Lines:
        """Flatten the attributes."""
        trees = [a.hierarchy for a in qi]
        codes = [a.domain if t is None else t.leaves for a, t in zip(qi, trees, strict=True)]
        chains = [np.empty(0, np.int64) if t is None else t.ancestors.ravel() for t in trees]
        ordinals = [np.empty(0, np.int64) if t is None else t.ordinal for t in trees]
        below = [np.empty(0, np.int64) if t is None else t.leaf_count.astype(np.int64) for t in trees]
        places = [a.positions if t is None else np.arange(float(c)) for a, t, c in zip(qi, trees, codes, strict=True)]
        return Lines(
            np.array([_KINDS[a.kind] for a in qi], dtype=np.int64),
            _starts(codes),
            np.array([max(1, a.domain) for a in qi], dtype=np.int64),
            np.array([a.special_from for a in qi], dtype=np.int64),
            np.array([a.span for a in qi], dtype=np.float64),
            np.concatenate(places).astype(np.float64),
            np.array([0 if t is None else len(t.ancestors) for t in trees], dtype=np.int64),
            _starts([len(chain) for chain in chains]),
            np.concatenate(chains),
            _starts([len(ordinal) for ordinal in ordinals]),
            np.concatenate(ordinals),
            np.concatenate(below),
            np.array([2 if t is None else t.most_children for t in trees], dtype=np.int64),
        )


def _starts(sizes: list[int]) -> IntArray:
    return np.concatenate(([0], np.cumsum(np.array(sizes, dtype=np.int64)))).astype(np.int64)


@compiled_in_place
def common_depth(lines: Lines, j: int, low: int, high: int) -> int:
    """Depth of the lowest common ancestor of two leaves.

    Args:
        lines: the attributes.
        j: which of them.
        low: first leaf.
        high: last leaf.
    """
    leaves = lines.offset[j + 1] - lines.offset[j]
    at = lines.chain_at[j]
    depth = 0
    while depth + 1 < lines.depths[j]:
        below = at + (depth + 1) * leaves
        if lines.chain[below + low] != lines.chain[below + high]:
            break
        depth += 1
    return depth


@compiled_in_place
def width_of(lines: Lines, j: int, low: int, high: int, values: int) -> float:
    """Width of a group on an attribute, 0 .. 1.

    Args:
        lines: the attributes.
        j: which of them.
        low: smallest code of the group.
        high: largest code of the group.
        values: number of different codes of a nominal attribute; 0 reads it as ordered.
    """
    if low == high:
        return 0.0
    if lines.kind[j] == TREE:
        depth = common_depth(lines, j, low, high)
        leaves = lines.offset[j + 1] - lines.offset[j]
        node = lines.chain[lines.chain_at[j] + depth * leaves + low]
        return lines.below[lines.node_at[j] + node] / lines.below[lines.node_at[j]]
    if lines.kind[j] == NOMINAL and values > 0:
        return values / lines.domain[j]
    if high >= lines.special[j]:
        return 1.0
    at = lines.offset[j]
    if lines.span[j] <= 0.0:
        return 0.0
    return (lines.position[at + high] - lines.position[at + low]) / lines.span[j]
