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

import numpy as np
import scipy

from duckdb_anon.kernels.cells.cells import Ranges
from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.measures.released_rows import OfRelease, require_columns, source_rows
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Answer, Parameter
from duckdb_anon.model.quoting import literal

ALL = "(all)"


def read_lists(call: MeasureCall, name: str) -> tuple[IntArray, IntArray, Ranges]:
    """Person and value of each original item, distinct and ascending, and the released lists of nodes."""
    require_columns(call.release, [name])
    released, items = call.release.columns[name], call.original.columns[name]
    domain = items.domain
    if domain.hierarchy is None:
        raise ColumnError(f"'{name}' has no hierarchy; say hierarchies := {{{literal(name)}: 'its_table'}}")
    if not released.lists_nodes:
        raise ColumnError(
            f"'{name}' of the release holds no lists of nodes. Give a release with one row per individual, "
            "made without explode"
        )
    pairs = np.unique(_owners(call) * domain.size + items.value_codes())
    return pairs // domain.size, pairs % domain.size, released.different


def _owners(call: MeasureCall) -> IntArray:
    """Individual of each row of the original."""
    return call.original.columns[call.person or ""].value_codes().astype(np.int64)


def replaced_by(person: IntArray, item: IntArray, lists: Ranges, person_of_row: IntArray) -> FloatArray:
    """Return the NCP of the node in place of each item of a released person."""
    released = np.isin(person, person_of_row)
    person, item = person[released], item[released]
    last = max(int(person.max(initial=-1)), int(person_of_row.max(initial=-1)))
    shape = (last + 1, lists.number)
    of_person = scipy.sparse.csr_matrix((np.ones(len(person_of_row)), (person_of_row, lists.of_row)), shape)
    wrong = int((np.asarray((of_person @ lists.times)[person, item]).ravel() != 1).sum())
    if wrong:
        raise ColumnError(
            f"{wrong} values of the original lie below none or several of the nodes published for their individual. "
            "Give the release of this table, and the hierarchy it was made with"
        )
    return _ncp(1 / np.asarray((of_person @ lists.shares)[person, item]).ravel(), lists)


def _ncp(leaves: FloatArray, lists: Ranges) -> FloatArray:
    """NCP of nodes with so many leaves."""
    return np.where(leaves > 1.5, leaves / lists.domain.tree()[0].leaves, 0.0)


@OfRelease(
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
    answers=("persons", "boxes", "suppressed", "sampled"),
    needs=("sensitive", "person"),
    unit="person",
)
def sa_ncp(call: MeasureCall) -> Answer:
    """One row a sensitive attribute, and one over all when there are several."""
    names, variant, owner = call.sensitive, call.params["variant"], None
    if variant == "per_item":  # needs the person of each released row
        row = source_rows(call.original, call.release)
        if (row < 0).any():
            raise ColumnError(f"{int((row < 0).sum())} released rows belong to no record of the original")
        owner = _owners(call)[row]
    sums: list[tuple[float, ...]] = []
    for name in names:
        who, item, lists = read_lists(call, name)
        rows_of_node = np.repeat(lists.weights, np.diff(lists.offsets))
        lost = float(_ncp(lists.widths.astype(np.float64), lists) @ rows_of_node)
        nodes = float(rows_of_node.sum())
        if owner is not None:
            per_item = replaced_by(who, item, lists, owner)
            sums.append((len(per_item), nodes, float(per_item.sum()), len(per_item)))
        else:
            sums.append((len(item), nodes, lost, nodes if variant == "published" else len(item)))
    if len(names) > 1:
        names = [*names, ALL]
        sums.append(tuple(np.sum(sums, axis=0)))
    items, nodes_of, total, below = (np.array(column) for column in zip(*sums, strict=True))
    return {"attribute": names, "items": items, "nodes": nodes_of, "sa_ncp": total / np.maximum(below, 1)}
