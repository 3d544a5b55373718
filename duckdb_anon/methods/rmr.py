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

from functools import partial
from itertools import pairwise

import numpy as np

from duckdb_anon.kernels.partition.interval_rounding import with_edges
from duckdb_anon.kernels.partition.privacy_models import KAnonymity
from duckdb_anon.kernels.partition.sort_count import run_starts
from duckdb_anon.kernels.set_valued.apriori_km import publish_globally
from duckdb_anon.kernels.set_valued.clustering import clusters_of, merge_up_to
from duckdb_anon.kernels.set_valued.person_output import NodeLists, released
from duckdb_anon.kernels.set_valued.person_sets import (
    Persons,
    boxes_of_persons,
    fingerprints_of,
    lists_of,
    person_of_row,
    row_of_person,
)
from duckdb_anon.kernels.slicing.fake_records import of_records
from duckdb_anon.methods.generalized_layout import layout_of_persons
from duckdb_anon.methods.one_to_m_generalize import CHANGING, EXPLODE, OF_PERSONS
from duckdb_anon.methods.partition_params import EDGES
from duckdb_anon.model.coded_table import CodedTable, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import REQUIRED, Cutting, Method, Parameter, Params, Sweep
from duckdb_anon.model.released_columns import Cells

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
    group = merge_up_to(clusters, params["max_qid_ncp"], params["rejected"] == "skip", NAME)
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
    return Cutting("loss", KAnonymity(params["k"]), persons=True, most=10_000)


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
        Parameter(
            "rejected", "after a rejected merge: 'stop', or 'skip' the cluster", "text", "stop", ("stop", "skip")
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
