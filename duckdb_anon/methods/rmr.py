"""RMR: clusters of individuals, merged up to a loss, with set-valued data made k^m-anonymous inside each.

Each individual is released as a box on every quasi-identifier and a list of hierarchy nodes for the sensitive values.
Guarantee, (k, k^m)-anonymity, checked again on the finished result: every class of equal boxes has at least k
individuals, and every set of at most m published nodes that one of them has is that of at least k. It protects against
an attacker who knows quasi-identifiers and up to m sensitive values, not against one who knows all values of an
individual, and does not bound how varied a class is.

Source: Poulis, Loukides, Gkoulalas-Divanis and Skiadopoulos (2013), RMERGE_R; the baseline of Gong et al. (2017).
Departure: clusters whose boxes come out equal make one class, which keeps the guarantee because supports only add up.
Cost: quadratic, n^2/k, for up to `MOST_PERSONS` individuals.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from duckdb_anon.kernels.partition.generalize import range_width, set_width
from duckdb_anon.kernels.partition.interval_rounding import with_edges
from duckdb_anon.kernels.partition.privacy_models import KAnonymity
from duckdb_anon.kernels.partition.sort_count import run_starts
from duckdb_anon.kernels.set_valued.apriori_km import publish_globally
from duckdb_anon.kernels.set_valued.person_sets import (
    BoolArray,
    Persons,
    boxes_of_persons,
    fingerprints_of,
    lists_of,
    person_of_row,
    row_of_person,
)
from duckdb_anon.kernels.slicing.fake_records import of_records
from duckdb_anon.methods.generalized_layout import layout_of_persons
from duckdb_anon.methods.one_to_m_generalize import CHANGING, EXPLODE, OF_PERSONS, NodeLists, released
from duckdb_anon.methods.partition_params import EDGES
from duckdb_anon.model.coded_table import Attribute, CodedTable, FloatArray, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import REQUIRED, Cutting, Method, Parameter, Params, Sweep
from duckdb_anon.model.progress import tick
from duckdb_anon.model.released_columns import Cells


# Clusters of at least k persons that are close in their quasi-identifiers, merged up to a loss. Paper: Poulis,
# Loukides, Gkoulalas-Divanis & Skiadopoulos (2013), CLUSTER and RMERGE_R, as used by Gong, Luo, Yang, Ni & Li (2017),
# section 5. Guarantee: every person is in one cluster, every cluster has k or more. Nearness is the mean width of the
# joint box over attributes, the normalized certainty penalty (Xu et al. 2006). Cost: n^2/k for clusters and (n/k)^2 for
# merging, times the quasi-identifiers.
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


def merge_up_to(clusters: Clusters, most: float, function: str = "rmr") -> IntArray:
    """Merge clusters while the mean width over records stays within `most`; return the cluster of each record.

    The cluster that loses least is merged with the one with which it loses least (RMERGE_R), until that loses too much.

    Args:
        clusters: from `clusters_of`; used up.
        most: largest allowed mean width over records and attributes, in [0, 1].

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


NAME = "rmr"
MOST_PERSONS = 100_000


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Cluster, merge and generalize persons."""
    attribute, person = person_of_row(NAME, table)
    _check_size(attribute.domain, params["k"])
    row = row_of_person(NAME, table.qi, person, attribute.domain, params["changing"])
    persons = fingerprints_of(person, table.sensitive)
    qi = tuple(of_records(a, row) for a in table.qi)
    clusters = clusters_of(qi, params["k"], rng)
    group = merge_up_to(clusters, params["max_qid_ncp"], NAME)
    if np.bincount(group).min() < params["k"]:
        raise RequirementError(f"{NAME}: finished clusters fail k = {params['k']}; nothing is released")
    lists = publish_in_groups(persons, group, params["k"], params["m"])
    tight = {a.name: boxes_of_persons(a, person, group, params["changing"], row) for a in table.qi}
    boxes: dict[str, Cells] = {**with_edges(table, tight, params, attribute.codes)}
    return released(table, lists, boxes, row, params, rng)


def publish_in_groups(persons: Persons, group: IntArray, k: int, m: int) -> NodeLists:
    """Make each group of persons k^m-anonymous by itself; every person has a list of its own."""
    node = np.empty(len(persons.items), dtype=np.int32)
    owner = persons.person_of_entry
    order = np.argsort(group[owner], kind="stable")
    bounds = np.append(run_starts(group[owner][order]), len(order))
    for begin, end in pairwise(bounds):
        entries = order[begin:end]
        node[entries] = publish_globally(_part(persons, owner[entries], entries), k, m, NAME)
    lists = lists_of(node, owner, len(persons))
    return NodeLists(persons.forest, lists.offsets, lists.nodes, np.arange(len(persons)))


def _part(persons: Persons, owner: IntArray, entries: IntArray) -> Persons:
    """Return the persons who own `entries` (all of theirs, together)."""
    return Persons(persons.forest, np.append(run_starts(owner), len(owner)), persons.items[entries])


def _check_size(persons: int, k: int) -> None:
    if persons < k:
        raise RequirementError(f"{NAME}: k := {k}, but the table has {persons} persons; use k <= {persons}")
    if persons > MOST_PERSONS:
        raise RequirementError(
            f"{NAME}: {persons} persons; its time grows with their square, so {MOST_PERSONS} is the most. Use "
            "one_to_m_generalize, or a sample of the persons"
        )


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """Persons by their quasi-identifiers, in parts as small as a time that grows with their square allows."""
    return Cutting("cut", KAnonymity(params["k"]), persons=True, most=10_000)


METHOD = Method(
    name=NAME,
    summary="one row per individual: clusters with the same generalized quasi-identifiers and "
"k^m-anonymous lists of nodes",
    paper="Poulis, G., Loukides, G., Gkoulalas-Divanis, A., Skiadopoulos, S. (2013), RMERGE_R",
    example="CREATE TABLE clusters AS FROM rmr('visits', 2)",
    smallest="k := 2",
    trials=("k := 1, m := 1", "k := 3, m := 2", "k := 5, m := 1"),
    formats=("persons", "boxes"),
    parameters=(
        Parameter("k", "minimum number of individuals per class, and per set of m nodes in it", "integer",
                  REQUIRED, low=1),
        Parameter("m", "number of sensitive values that the attacker may know, 1 to 4", "integer", 2, low=1, high=4),
        Parameter(
            "max_qid_ncp", "maximum mean information loss of quasi-identifiers that merging clusters may reach, in [0, "
"1]", "number", 0.65, low=0, high=1
        ),
        EDGES,
        CHANGING,
        EXPLODE,
    ),
    layout=partial(layout_of_persons, NAME),
    release=release,
    needs=("qi", "sensitive", "person"),
    unit="person",
    sweeps=(Sweep("k := {n}", (2, 5, 10), OF_PERSONS),),
    parts=parts,
    finished=("classes",),
)  # fmt: skip
