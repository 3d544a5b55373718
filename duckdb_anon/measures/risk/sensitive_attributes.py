"""One sensitive column of a release, as attackers count it: which values each row, or each unit of equal rows, carries.

A row shows one value; or the counts of its bucket, and carries each value to its share; or a list of nodes for all
values of one person, each node one value, any leaf below it equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, RequirementError
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_table import ReadColumn

MOST_ENTRIES = 200_000_000


@dataclass(frozen=True)
class Secret:
    """One sensitive column: voter j carries codes code[offsets[j]:offsets[j + 1]], each `weight` rows strong.

    Voters are units; where the column of a sliced release holds quasi-identifiers too, its rows bucket by bucket.

    Attributes:
        name: the column.
        part: number of the part it stands in; -1 where no quasi-identifier stands beside it in a sliced release.
        domain: number of codes.
        items: what each released row shows, shape (rows, items): codes, or the nodes of its list.
        leaves: chance of each code where a row shows a node, shape (nodes, codes); None where rows show codes.
        mixed: whether rows show the counts of their bucket and not their own values.
    """

    name: str
    part: int
    domain: int
    offsets: IntArray
    code: CodeArray
    weight: FloatArray
    items: sparse.csr_matrix
    leaves: sparse.csr_matrix | None
    mixed: bool

    @property
    def listed(self) -> bool:
        """Whether rows show lists, all values of a person."""
        return self.leaves is not None

    def of_rows(self, rows: IntArray) -> sparse.csr_matrix:
        """How much of each code released rows carry, shape (rows, codes)."""
        return self.items[rows] if self.leaves is None else self.items[rows] @ self.leaves


def read_secret(name: str, column: ReadColumn, part: int, voter: IntArray, weight: FloatArray, voters: int) -> Secret:
    """Read a released sensitive column.

    Args:
        name: the column.
        column: its cells.
        part: number of its part.
        voter: voter of each row, shape (rows,).
        weight: how much each row counts, shape (rows,).
        voters: how many there are.

    Raises:
        ColumnError: cells are neither values, nor counts of them, nor lists of nodes.
        RequirementError: the lists stand for too many values.
    """
    rows, leaves = len(voter), None
    if column.shape == "value":
        offsets, item, strength = np.arange(rows + 1), column.value_codes(), np.ones(rows)
        width = column.domain.size
    elif column.shape == "counts" and column.codes is not None and column.offsets is not None:
        counts = np.asarray(column.counts, dtype=np.float64)
        row = np.repeat(np.arange(rows), np.diff(column.offsets))
        tick()
        offsets, item, width = column.offsets, column.codes, column.domain.size
        strength = counts / np.bincount(row, weights=counts, minlength=rows)[row]
    elif column.lists_nodes and column.node is not None and column.offsets is not None:
        nodes, place = np.unique(column.node.astype(np.int64), return_inverse=True)
        item = place.astype(np.int32)
        offsets, strength, width = column.offsets, np.ones(len(item)), len(nodes)
        leaves = _leaves_below(column.domain, nodes)
        entries = int(np.diff(leaves.indptr)[item].sum())
        if entries > MOST_ENTRIES:
            raise RequirementError(
                f"the lists of '{name}' stand for {entries:,} values, too many to vote on; attack a sample of the "
                "release"
            )
    else:
        raise ColumnError(
            f"the release's sensitive column '{name}' is {column.shape}; an attacker here reads plain values, counts "
            "of them, and lists of nodes with a row a person (made without explode)"
        )
    tick()
    items = sparse.csr_matrix((strength, item.astype(np.int64), offsets), (rows, width))
    items.sum_duplicates()
    tick()
    carried = sparse.csr_matrix((weight, (voter, np.arange(rows))), (voters, rows)) @ items
    if leaves is not None:
        tick()
        carried = carried @ leaves
    tick()
    carried.sort_indices()
    return Secret(
        name, part, column.domain.size, carried.indptr.astype(np.int64), carried.indices.astype(np.int32),
        carried.data.astype(np.float64), items, leaves, column.shape == "counts",
    )  # fmt: skip


def _leaves_below(domain: Attribute, nodes: IntArray) -> sparse.csr_matrix:
    """Chance of each code at or below each node, all of them equally likely, shape (nodes, codes)."""
    tree, leaf = domain.tree()
    order = np.argsort(leaf, kind="stable")
    first = np.searchsorted(leaf[order], tree.first_leaf[nodes])
    end = np.searchsorted(leaf[order], tree.first_leaf[nodes] + tree.leaf_count[nodes])
    size = end - first
    offsets = np.concatenate([[0], np.cumsum(size)])
    place = np.repeat(first - offsets[:-1], size) + np.arange(offsets[-1])
    return sparse.csr_matrix(
        (np.repeat(1 / np.maximum(size, 1), size), order[place], offsets), (len(nodes), domain.size)
    )
