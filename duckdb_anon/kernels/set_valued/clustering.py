"""Clusters of at least k persons that are close in their quasi-identifiers, merged up to a loss.

Paper: Poulis, Loukides, Gkoulalas-Divanis & Skiadopoulos (2013), CLUSTER and RMERGE_R, as used by Gong, Luo,
Yang, Ni & Li (2017), section 5. Guarantee: every person is in one cluster, every cluster has k or more.
Nearness is the mean width of the joint box over attributes, the normalized certainty penalty (Xu et al. 2006).
Cost: n^2/k for clusters and (n/k)^2 for merging, times the quasi-identifiers.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.generalize import range_width, set_width
from duckdb_anon.kernels.set_valued.person_sets import BoolArray
from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.progress import tick


class _Ranges:
    """Boxes on one attribute, at first each record alone: smallest and largest code, or leaf of a hierarchy."""

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        self.low = attribute.place_of_code[attribute.codes].astype(np.int64)
        self.high = self.low.copy()

    def joined(self, box: IntArray, others: IntArray) -> FloatArray:
        """Width of each box joined with each of `others`; a single box is joined with all of them."""
        low = np.minimum(self.low[others], self.low[box])
        return range_width(self.attribute, low, np.maximum(self.high[others], self.high[box]))

    def gather(self, box: int, members: IntArray) -> None:
        self.low[box], self.high[box] = self.low[members].min(), self.high[members].max()


class _Sets:
    """The same for the sets of values of a nominal attribute."""

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
        self.columns = [_Sets(a) if a.kind == "nominal" and a.hierarchy is None else _Ranges(a) for a in qi]

    def joined(self, box: int, others: IntArray) -> FloatArray:
        """Return the mean width over attributes of a box joined with each of `others`, in [0, 1]."""
        mean: FloatArray = np.mean([column.joined(np.array([box]), others) for column in self.columns], axis=0)
        return mean

    def widths(self, boxes: IntArray) -> FloatArray:
        """Return the mean width over attributes of each box, in [0, 1]."""
        mean: FloatArray = np.mean([column.joined(boxes, boxes) for column in self.columns], axis=0)
        return mean

    def gather(self, box: int, members: IntArray) -> None:
        """Make `box` the box around all of `members`."""
        for column in self.columns:
            column.gather(box, members)


@dataclass
class Clusters:
    """Clusters under way; the box of a cluster has the number of one of its records, its seed."""

    space: BoxSpace  # boxes on the quasi-identifiers
    seed: IntArray  # number of the box of each cluster
    size: IntArray  # records of each cluster
    cluster_of_record: IntArray  # shape (records,)


def clusters_of(qi: tuple[Attribute, ...], k: int, rng: np.random.Generator) -> Clusters:
    """Put a random record and the k - 1 nearest to it into a cluster, until fewer than k are left.

    Those left over go to the cluster that loses least by it.

    `k`: least size of a cluster; at most the number of records.
    """
    space = BoxSpace(qi)
    left = np.arange(len(qi[0].codes))
    cluster = np.full(len(left), -1, dtype=np.int64)
    seeds: list[int] = []
    while len(left) >= k:
        tick()
        index = int(rng.integers(len(left)))
        width = space.joined(int(left[index]), left)
        width[index] = -1.0
        near = np.argpartition(width, k - 1)[:k]
        cluster[left[near]] = len(seeds)
        seeds.append(int(left[index]))
        space.gather(seeds[-1], left[near])
        left = np.delete(left, near)
    size = np.bincount(cluster[cluster >= 0], minlength=len(seeds))
    seed = np.array(seeds, dtype=np.int64)
    for record in left:
        joint = space.joined(int(record), seed)
        best = int(np.argmin(size * (joint - space.widths(seed)) + joint))
        space.gather(seeds[best], np.array([seeds[best], record]))
        cluster[record] = best
        size[best] += 1
    return Clusters(space, seed, size, cluster)


def merge_up_to(clusters: Clusters, most: float, skip: bool, function: str = "rmr") -> IntArray:
    """Merge clusters while the mean width over records stays within `most`; return the cluster of each record.

    The cluster that loses least is merged with the one with which it loses least (RMERGE_R).

    Args:
        clusters: from `clusters_of`; used up.
        most: largest allowed mean width over records and attributes, in [0, 1].
        skip: true leaves out a cluster whose merge is rejected and goes on; false stops there.

    Raises:
        RequirementError: the clusters lose more than `most` before any merge.
    """
    size = clusters.size
    loss = size * clusters.space.widths(clusters.seed)
    budget = _budget(loss, size, most, function)
    alive = np.ones(len(size), dtype=bool)
    merged_into = np.arange(len(size))
    queue = [(float(value), number) for number, value in enumerate(loss)]
    heapq.heapify(queue)
    while queue and alive.sum() > 1:
        tick()
        queued_loss, cluster = heapq.heappop(queue)
        if not alive[cluster] or queued_loss != loss[cluster]:
            continue
        other, joint = _partner(clusters, alive, cluster)
        if loss.sum() - loss[cluster] - loss[other] + joint > budget:
            if skip:
                continue
            break
        clusters.space.gather(int(clusters.seed[other]), clusters.seed[[cluster, other]])
        size[other] += size[cluster]
        loss[other], loss[cluster] = joint, 0.0
        alive[cluster], merged_into[cluster] = False, other
        heapq.heappush(queue, (float(loss[other]), other))
    while (merged_into != merged_into[merged_into]).any():
        merged_into = merged_into[merged_into]
    return np.unique(merged_into[clusters.cluster_of_record], return_inverse=True)[1]


def _partner(clusters: Clusters, alive: BoolArray, cluster: int) -> tuple[int, float]:
    """Return the cluster with which `cluster` loses least, and how much the two lose together."""
    others = np.flatnonzero(alive)
    others = others[others != cluster]
    width = clusters.space.joined(int(clusters.seed[cluster]), clusters.seed[others])
    joint = (clusters.size[cluster] + clusters.size[others]) * width
    best = int(np.argmin(joint))
    return int(others[best]), float(joint[best])


def _budget(loss: FloatArray, size: IntArray, most: float, function: str) -> float:
    """Return the total loss allowed; raise where the clusters lose more before any merge."""
    budget = float(most * size.sum() + 1e-9)
    if loss.sum() > budget:
        raise RequirementError(
            f"{function}: clusters of the required size already have a QID-NCP of {loss.sum() / size.sum():.3f}; take "
            "max_qid_ncp above that, or a smaller k"
        )
    return budget
