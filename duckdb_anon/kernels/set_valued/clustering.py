"""Clusters of at least k persons that are close in their quasi-identifiers, merged up to a loss.

Paper: Poulis, Loukides, Gkoulalas-Divanis & Skiadopoulos (2013), CLUSTER and RMERGE_R, as used by Gong, Luo,
Yang, Ni & Li (2017), section 5. Guarantee: every person is in one cluster, every cluster has k or more.
Cost: n^2/k for clusters and (n/k)^2 for merging, times the quasi-identifiers.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.set_valued.box_space import BoxSpace
from duckdb_anon.kernels.set_valued.hashing import BoolArray
from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray
from duckdb_anon.model.errors import RequirementError


@dataclass
class Clusters:
    """Clusters under way; the box of a cluster is kept at the number of one of its records, its seed.

    Attributes:
        space: boxes on the quasi-identifiers.
        seed: number of the box of each cluster.
        size: records of each cluster.
        cluster_of_record: shape (records,).
    """

    space: BoxSpace
    seed: IntArray
    size: IntArray
    cluster_of_record: IntArray


def clusters_of(
    qi: tuple[Attribute, ...], k: int, rng: np.random.Generator, tick: Callable[[], None] | None = None
) -> Clusters:
    """Put a random record and the k - 1 nearest to it into a cluster, again and again.

    Records left over go to the cluster that loses least by it. Nearness is the mean NCP of the joint box.

    Args:
        qi: quasi-identifiers, one code a record.
        k: least size of a cluster; at most the number of records.
        rng: picks the random records.
        tick: called once a cluster.
    """
    space = BoxSpace(qi)
    left = np.arange(len(qi[0].codes))
    cluster = np.full(len(left), -1, dtype=np.int64)
    seeds: list[int] = []
    while len(left) >= k:
        if tick is not None:
            tick()
        place = int(rng.integers(len(left)))
        width = space.joined(int(left[place]), left)
        width[place] = -1.0
        near = np.argpartition(width, k - 1)[:k]
        cluster[left[near]] = len(seeds)
        seeds.append(int(left[place]))
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


def merge_up_to(
    clusters: Clusters, most: float, skip: bool, function: str = "rmr", tick: Callable[[], None] | None = None
) -> IntArray:
    """Merge clusters while the mean width over records stays within `most`; return the cluster of each record.

    The cluster that loses least is merged with the one with which it loses least (RMERGE_R).

    Args:
        clusters: from `clusters_of`; used up.
        most: largest allowed mean width over records and attributes, in [0, 1].
        skip: true leaves out a cluster whose merge is rejected and goes on; false stops there.
        function: name used in messages.
        tick: called once a merge.

    Raises:
        RequirementError: the clusters lose more than `most` before any merge.
    """
    size = clusters.size
    loss = size * clusters.space.widths(clusters.seed)
    budget = _budget(loss, size, most, function)
    alive = np.ones(len(size), dtype=bool)
    merged_into = np.arange(len(size))
    queue = [(float(one), c) for c, one in enumerate(loss)]
    heapq.heapify(queue)
    while queue and alive.sum() > 1:
        if tick is not None:
            tick()
        known, one = heapq.heappop(queue)
        if not alive[one] or known != loss[one]:
            continue
        other, joint = _partner(clusters, alive, one)
        if loss.sum() - loss[one] - loss[other] + joint > budget:
            if skip:
                continue
            break
        clusters.space.gather(int(clusters.seed[other]), clusters.seed[[one, other]])
        size[other] += size[one]
        loss[other], loss[one] = joint, 0.0
        alive[one], merged_into[one] = False, other
        heapq.heappush(queue, (float(loss[other]), other))
    while (merged_into != merged_into[merged_into]).any():
        merged_into = merged_into[merged_into]
    return np.unique(merged_into[clusters.cluster_of_record], return_inverse=True)[1]


def _partner(clusters: Clusters, alive: BoolArray, one: int) -> tuple[int, float]:
    """Return the cluster with which `one` loses least, and how much the two lose together."""
    others = np.flatnonzero(alive)
    others = others[others != one]
    width = clusters.space.joined(int(clusters.seed[one]), clusters.seed[others])
    joint = (clusters.size[one] + clusters.size[others]) * width
    best = int(np.argmin(joint))
    return int(others[best]), float(joint[best])


def _budget(loss: FloatArray, size: IntArray, most: float, function: str) -> float:
    """Return the total loss allowed; raise where the clusters lose more before any merge."""
    budget = float(most * size.sum() + 1e-9)
    if loss.sum() > budget:
        raise RequirementError(
            f"{function}: clusters of the asked size already have a QID-NCP of {loss.sum() / size.sum():.3f}; take "
            "max_qid_ncp above that, or a smaller k"
        )
    return budget
