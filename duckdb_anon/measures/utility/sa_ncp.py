"""sa_ncp: how much published lists of nodes lose of the sensitive values of persons.

NCP of a node is 0 for a leaf, else the leaves it covers over all leaves (Xu et al. 2006). Variants of its mean,
all in [0, 1] (Gong, Luo, Yang, Ni & Li 2017, section 5.1):

* per_item: over the original items of every person, of the node published in their place. Needs to know whose
  row is whose: a release made with row_id := true.
* published: over the published nodes, each once a list (their equation 4 read literally).
* paper_example: sum over the published nodes, divided by the number of original items; so is the figure printed
  with their example computed.

Every original item of a released person must lie below exactly one of its nodes; this is checked.
Cost: one sort of items and nodes, times the depth of the hierarchy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from duckdb_anon.measures.released_rows import source_rows
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Parameter, Params, Report
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.release_table import ReadTable

ALL = "(all)"


@dataclass(frozen=True)
class PublishedItems:
    """One sensitive attribute, original and released, on one tree.

    Attributes:
        forest: the tree.
        person: person of each original item; (person, item) pairs are distinct and ascending.
        item: leaf number of each of them.
        row: released row of each published node.
        node: node of `forest`.
        rows: number of released rows.
    """

    forest: Hierarchy
    person: IntArray
    item: IntArray
    row: IntArray
    node: CodeArray
    rows: int


def read_published(function: str, original: ReadTable, release: ReadTable, name: str, person: str) -> PublishedItems:
    """Put the items of an original column and the node lists of a release side by side.

    Args:
        function: SQL function, for messages.
        original: the original.
        release: its release.
        name: the sensitive column.
        person: the column that says whose row it is.

    Raises:
        ColumnError: the column has no hierarchy, is missing in the release, or holds no lists there.
    """
    released = release.columns.get(name)
    if released is None:
        raise ColumnError(f"{function}: the release has no column '{name}'; name those it has in sensitive := [...]")
    domain = original.columns[name].domain
    if domain.hierarchy is None or domain.leaf_of_code is None:
        raise ColumnError(f"{function}: '{name}' has no hierarchy; say hierarchies := {{'{name}': 'its_table'}}")
    if released.offsets is None or released.node is None:
        raise ColumnError(
            f"{function}: '{name}' of the release holds no lists of nodes; give a release with a row a person, made "
            "without explode"
        )
    forest = domain.hierarchy.squeezed
    leaf = domain.leaf_of_code[original.columns[name].value_codes()]
    owner = original.columns[person].value_codes().astype(np.int64)
    pairs = np.unique(owner * forest.leaves + leaf)
    row = np.repeat(np.arange(release.rows), np.diff(released.offsets))
    # a node of a chain and the lowest of the chain cover the same leaves
    first = domain.hierarchy.first_leaf[released.node]
    count = domain.hierarchy.leaf_count[released.node]
    above = forest.ancestors[:, first]
    node = above[(forest.leaf_count[above] == count).argmax(axis=0), np.arange(len(first))]
    return PublishedItems(
        forest, pairs // forest.leaves, pairs % forest.leaves, row, node.astype(np.int32), release.rows
    )


def replaced_by(function: str, published: PublishedItems, person_of_row: IntArray) -> FloatArray:
    """Return the NCP of the node in place of each original item; NaN for persons who are not released.

    Args:
        function: SQL function, for messages.
        published: original and released values on one tree.
        person_of_row: person of each released row.

    Raises:
        ColumnError: an item of a released person lies below none of its nodes, or below several.
    """
    forest, nodes = published.forest, len(published.forest.labels)
    known = np.sort(person_of_row[published.row] * nodes + published.node)
    covering = np.zeros(len(published.item), dtype=np.int64)
    loss = np.zeros(len(published.item))
    for depth in range(len(forest.ancestors)):
        node = forest.ancestors[depth][published.item]
        wanted = published.person * nodes + node
        place = np.minimum(np.searchsorted(known, wanted), max(0, len(known) - 1))
        found = (known[place] == wanted) & (forest.depth[node] == depth) if len(known) else np.zeros(len(node), bool)
        covering += found
        loss[found] = forest.ncp[node[found]]
    released = np.isin(published.person, person_of_row)
    wrong = int((covering[released] != 1).sum())
    if wrong:
        raise ColumnError(
            f"{function}: {wrong} original items lie below none or several of their person's published nodes; is this "
            "the release of that table, with that hierarchy?"
        )
    return np.where(released, loss, np.nan)


def person_of_rows(function: str, original: ReadTable, release: ReadTable, person: str) -> IntArray:
    """Return the person of each released row, through its row_id.

    Args:
        function: SQL function, for messages.
        original: the original.
        release: its release.
        person: the column that says whose row it is.

    Raises:
        ColumnError: the release has no row_id, or one that points outside the original.
    """
    row = source_rows(function, original, release)
    if (row < 0).any():
        raise ColumnError(f"{function}: {int((row < 0).sum())} released rows are nobody's")
    return original.columns[person].value_codes()[row].astype(np.int64)


def sa_ncp(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row a sensitive attribute, and one over all when there are several."""
    original, release = tables
    person = params["roles"].person.name
    names = [info.name for info in params["roles"].sensitive]
    owner = person_of_rows("sa_ncp", original, release, person) if params["variant"] == "per_item" else None
    sums: list[tuple[float, ...]] = []
    for name in names:
        published = read_published("sa_ncp", original, release, name, person)
        lost = published.forest.ncp[published.node]
        if owner is not None:
            per_item = replaced_by("sa_ncp", published, owner)
            per_item = per_item[~np.isnan(per_item)]
            sums.append((len(per_item), len(lost), per_item.sum(), len(per_item)))
        else:
            whole = len(lost) if params["variant"] == "published" else len(published.item)
            sums.append((len(published.item), len(lost), lost.sum(), whole))
    if len(names) > 1:
        names = [*names, ALL]
        sums.append(tuple(np.sum(sums, axis=0)))
    items, nodes, total, below = (np.array(column) for column in zip(*sums, strict=True))
    return {"attribute": names, "items": items, "nodes": nodes, "sa_ncp": total / np.maximum(below, 1)}


MEASURE = Report(
    name="sa_ncp",
    summary="information loss of sensitive values published as lists of nodes, in [0, 1]",
    paper="Gong, Luo, Yang, Ni and Li (2017), equation 4; NCP: Xu et al. (2006)",
    example="FROM sa_ncp('visits', 'persons')",
    section="From papers, for comparison",
    parameters=(
        Parameter(
            "variant",
            "'per_item': mean over original items; 'published': over published nodes; 'paper_example': their sum over "
            "original items",
            "text",
            "per_item",
            ("per_item", "published", "paper_example"),
        ),
    ),
    returns={"attribute": "VARCHAR", "items": "BIGINT", "nodes": "BIGINT", "sa_ncp": "DOUBLE"},
    compute=sa_ncp,
    tables=("original", "release"),
    reads="tables",
    answers=("persons", "boxes", "suppressed", "sampled"),
    needs=("sensitive", "person"),
    unit="person",
)
