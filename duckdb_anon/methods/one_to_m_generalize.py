"""1:M-generalization: a table with several records of an individual, as one generalized row an individual.

Each individual is released as a box on every quasi-identifier and a list of hierarchy nodes for the sensitive values.
Guarantee, (k,l)-diversity: at least k individuals have each list, and in every class of equal boxes no list has a share
above 1/l (or there are l different ones, or their entropy is at least ln l). An attacker who knows quasi-identifiers
finds l individuals or more, one who knows some sensitive values k or more; nothing is claimed against one who knows
both, nor of what can be inferred from other classes. The number of records of an individual is not released: a total of
a class would reveal it where only one list has a node of several leaves.

Source: Gong, Luo, Yang, Ni and Li (2017), Knowledge-Based Systems 115, algorithm 1. Departures: frequency diversity as
the text defines it (the printed experiments count distinct fingerprints: `diversity := 'distinct'`); loss-guided cuts;
several sensitive attributes make one fingerprint; quasi-identifiers that change over an individual's records
(`changing`). Cost: O(r log r) for r records, times the depth of the hierarchy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.interval_rounding import with_edges
from duckdb_anon.kernels.partition.privacy_models import (
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    KAnonymity,
    PrivacyModel,
)
from duckdb_anon.kernels.partition.sort_count import owners, ranges
from duckdb_anon.kernels.set_valued.partition_top_down import publish_top_down
from duckdb_anon.kernels.set_valued.person_sets import boxes_of_persons, fingerprints_of, person_of_row, row_of_person
from duckdb_anon.kernels.slicing.fake_records import of_records
from duckdb_anon.kernels.verify_release import classes_of
from duckdb_anon.methods.generalized_layout import layout_of_persons
from duckdb_anon.methods.partition_params import CUTS, EDGES, cut_groups
from duckdb_anon.model.coded_table import CodeArray, CodedTable, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import REQUIRED, Cutting, Method, Parameter, Params, Sweep
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.released_columns import ROWS, Cells, Interval, Node, NodeSet, Source, ValueSet, Whole


@dataclass(frozen=True)
class NodeLists:
    """Published lists: person i has nodes[offsets[f]:offsets[f + 1]] with f = list_of_person[i]."""

    forest: Hierarchy
    offsets: IntArray
    nodes: CodeArray
    list_of_person: IntArray


def cells_of_lists(table: CodedTable, lists: NodeLists) -> dict[str, Cells]:
    """Return one NodeSet per sensitive attribute, one row per person."""
    trees = lists.forest.tree_of_node[lists.nodes]
    owner = owners(lists.offsets)
    cells: dict[str, Cells] = {}
    for number, attribute in enumerate(table.sensitive):
        of_tree = trees == number
        width = np.bincount(owner[of_tree], minlength=len(lists.offsets) - 1)
        offsets = np.r_[0, np.cumsum(width)].astype(np.int64)
        cells[attribute.name] = NodeSet(lists.forest.labels, offsets, lists.nodes[of_tree], lists.list_of_person)
    return cells


def exploded(
    table: CodedTable, lists: NodeLists, cells: dict[str, Cells], rng: np.random.Generator
) -> dict[str, Cells]:
    """Return one row a (person, node), persons under fresh random numbers from 1.

    The column of a sensitive attribute is NULL in the rows of another attribute's nodes.
    """
    width = np.diff(lists.offsets)[lists.list_of_person]
    person = np.repeat(np.arange(len(width)), width)
    entry = ranges(lists.offsets[:-1][lists.list_of_person], width)
    result: dict[str, Cells] = {}
    for name, cell in cells.items():
        if isinstance(cell, Source):
            result[name] = Source(cell.rows[person])
        elif isinstance(cell, (Interval, ValueSet, Node)):
            result[name] = type(cell)(**{**vars(cell), "index": cell.index[person]})
    trees = lists.forest.tree_of_node[lists.nodes]
    for number, attribute in enumerate(table.sensitive):
        node = np.where(trees == number, lists.nodes, -1).astype(np.int32)
        result[attribute.name] = Node(lists.forest.labels, node, entry)
    if table.person is not None:
        result[table.person.name] = Whole(rng.permutation(len(width))[person] + 1)
    return result


def released(
    table: CodedTable,
    lists: NodeLists,
    boxes: dict[str, Cells],
    row: IntArray,
    params: Params,
    rng: np.random.Generator,
) -> dict[str, Cells]:
    """Combine boxes and lists, exploded where the call says so; `row` is a source row of each person."""
    cells = {**boxes, ROWS: Source(row)}
    if params["explode"]:
        return exploded(table, lists, cells, rng)
    return {**cells, **cells_of_lists(table, lists)}


NAME = "one_to_m_generalize"
OF_PERSONS = "queries count persons by quasi-identifiers; fragment_risk tells who is found by some values"
CHANGING = Parameter(
    "changing",
    "individuals with different quasi-identifiers in their records: 'error', 'set' (a generalized "
    "value that covers all of them), 'first' or 'last' (the smallest or largest combination, "
    "attributes compared in the order of qi)",
    "text",
    "error",
    ("error", "first", "last", "set"),
)
EXPLODE = Parameter(
    "explode", "true gives one row per individual and node, with a new number for the individual", "boolean", False
)
_REQUIREMENT: dict[str, type[FrequencyDiversity] | type[DistinctDiversity] | type[EntropyDiversity]] = {
    "frequency": FrequencyDiversity,
    "distinct": DistinctDiversity,
    "entropy": EntropyDiversity,
}


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Generalize persons."""
    attribute, person = person_of_row(NAME, table)
    row = row_of_person(NAME, table.qi, person, attribute.domain, params["changing"])
    persons = fingerprints_of(person, table.sensitive)
    prints = publish_top_down(persons, params["k"], NAME)
    codes = prints.fingerprint_of_person.astype(np.int32)
    requirement: PrivacyModel = _REQUIREMENT[params["diversity"]](params["l"])
    _check_table(codes, requirement, params["k"])
    group = cut_groups(NAME, tuple(of_records(a, row) for a in table.qi), codes, requirement, params)
    tight = {a.name: boxes_of_persons(a, person, group, params["changing"], row) for a in table.qi}
    boxes: dict[str, Cells] = {**with_edges(table, tight, params, attribute.codes)}
    if not requirement.holds(Groups(classes_of(list(boxes.values())), codes, np.bincount(codes))).all():
        raise RequirementError(f"{NAME}: finished classes fail l = {params['l']:g}; nothing is released")
    lists = NodeLists(persons.forest, prints.offsets, prints.nodes, prints.fingerprint_of_person)
    return released(table, lists, boxes, row, params, rng)


def _check_table(codes: CodeArray, requirement: PrivacyModel, k: int) -> None:
    """Refuse early where lists are too alike for l, saying why: a large k leaves few of them apart."""
    counts = np.bincount(codes)
    table = Groups(np.zeros(len(codes), dtype=np.int64), codes, counts)
    if not requirement.holds(table).all():
        raise RequirementError(
            f"{NAME}: {requirement.best_achievable(table)}. With k := {k}, {len(codes)} persons have {len(counts)} "
            f"different lists, the most frequent one is that of {counts.max()}; use a smaller l, or a smaller k"
        )


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """Persons by their quasi-identifiers; each part finds lists of k persons of its own."""
    least = KAnonymity(max(params["k"], math.ceil(params["l"])))
    return replace(Cutting("cut", least), persons=True)


METHOD = Method(
    name=NAME,
    summary="one row per individual: generalized quasi-identifiers and a list of hierarchy nodes for the "
    "sensitive values",
    paper="Gong, Q., Luo, J., Yang, M., Ni, W., Li, X.-B. (2017), Knowledge-Based Systems 115, algorithm 1",
    example="CREATE TABLE persons AS FROM one_to_m_generalize('visits', 2, 2, row_id := true)",
    smallest="k := 2, l := 2",
    trials=("k := 1, l := 1", "k := 3, l := 1", "k := 5, l := 2"),
    formats=("persons", "boxes"),
    parameters=(
        Parameter("k", "minimum number of individuals with each list of nodes; 1 or more", "integer", REQUIRED, low=1),
        Parameter("l", "diversity of lists in each equivalence class, 1 or more", "number", REQUIRED, low=1),
        Parameter(
            "diversity",
            "'frequency': no list has a share above 1/l; 'distinct': l different lists; 'entropy': at least ln l",
            "text",
            "frequency",
            ("frequency", "distinct", "entropy"),
        ),
        *CUTS,
        EDGES,
        CHANGING,
        EXPLODE,
    ),
    layout=partial(layout_of_persons, NAME),
    release=release,
    needs=("qi", "sensitive", "person"),
    unit="person",
    sweeps=(Sweep("k := {n}, l := {l}", (2, 5, 10), OF_PERSONS),),
    parts=parts,
    finished=("lists",),
)
