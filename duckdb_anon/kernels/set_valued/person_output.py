"""Releases of persons with lists of nodes: columns of lists or of exploded rows.

Used by every method that publishes sets. Cost: linear in what is published.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.sort_count import ranges
from duckdb_anon.model.coded_table import CodeArray, CodedTable, IntArray
from duckdb_anon.model.function_specs import Params
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
    owner = np.repeat(np.arange(len(lists.offsets) - 1), np.diff(lists.offsets))
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
