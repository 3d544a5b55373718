"""sa_ncp, fragment_risk: information loss of published lists of nodes, and what known values find in them.

NCP of a node is 0 for a leaf, else the leaves it covers over all leaves (Xu et al. 2006). Variants of its mean, all in
[0, 1] (Gong, Luo, Yang, Ni & Li 2017, section 5.1): per_item: over the original items of every person, of the node
published in their place, which needs a release made with row_id := true; published: over the published nodes, each once
a list (their equation 4 read literally); paper_example: sum over the published nodes, divided by the number of original
items; so is the figure printed with their example computed. Every original item of a released person must lie below
exactly one of its nodes; this is checked.
fragment_risk: an attacker knows that a person has certain m values (a fragment) and looks for the released persons
whose list covers them all: each value lies below one of the nodes. The risk is 1 over the number of such candidates
(section 3; their theorem 1 bounds it by 1/k), for every fragment of m values that the original persons have; a person
with fewer values is known by all of them.
Cost: one sort of items and nodes, times the depth of the hierarchy; candidates of all pairs are one product of
matrices, larger fragments are looked up one by one.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from duckdb_anon.kernels.cells.cells import Ranges
from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.kernels.set_valued.apriori_km import MOST_SUBSETS, count_subsets, subsets, supports
from duckdb_anon.kernels.set_valued.person_sets import Lists
from duckdb_anon.measures.released_rows import OfRelease, require_columns, source_rows
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError
from duckdb_anon.model.function_specs import Answer, Parameter
from duckdb_anon.model.quoting import literal

ALL = "(all)"
_CHUNK = 1 << 22
_MOST_CELLS = 1 << 29
Flags = NDArray[np.float32]


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


def candidates(covers: Flags, count: FloatArray, fragments: IntArray) -> IntArray:
    """Released individuals whose list covers each fragment; `count`: rows of each list."""
    if fragments.shape[1] == 2:
        together = covers.T @ (covers * count[:, None].astype(np.float32))
        return np.asarray(np.rint(together[fragments[:, 0], fragments[:, 1]]), dtype=np.int64)
    found = np.empty(len(fragments), dtype=np.int64)
    step = max(1, _CHUNK // max(1, len(count)))
    for begin in range(0, len(fragments), step):
        all_covered = np.prod([covers[:, values] for values in fragments[begin : begin + step].T], axis=0)
        found[begin : begin + step] = np.rint(count @ all_covered).astype(np.int64)
    return found


@OfRelease(
    summary="re-identification risk by 1 to m known sensitive values in a release of lists, one row per "
    "number of values",
    paper="Gong, Luo, Yang, Ni and Li (2017), section 3, theorem 1",
    example="FROM fragment_risk('visits', 'persons', m := 2)",
    section="Risk",
    smallest="m := 1",
    parameters=(
        Parameter("m", "maximum number of values that the attacker knows, 1 to 4", "integer", 2, low=1, high=4),
    ),
    returns={"size": "BIGINT", "fragments": "BIGINT", "max_risk": "DOUBLE", "mean_risk": "DOUBLE"},
    answers=("persons", "boxes", "suppressed", "sampled"),
    needs=("sensitive", "person"),
    unit="person",
)
def fragment_risk(call: MeasureCall) -> Answer:
    """One row a size of fragments, 1 to m."""
    person, item, released = read_lists(call, call.roles.one_sensitive("fragment_risk").name)
    if released.number * released.domain.size > _MOST_CELLS:
        raise ParameterError(
            f"{released.number} distinct lists and {released.domain.size} values need too large a table; look at a "
            "sample of the release"
        )
    covers = np.asarray((released.shares > 0).toarray(), dtype=np.float32)  # which values each distinct list covers
    width = np.bincount(person)
    lists = Lists(np.r_[0, np.cumsum(width)].astype(np.int64), item.astype(np.int32))
    rows = []
    for size in range(1, call.params["m"] + 1):
        if count_subsets(lists, size) > MOST_SUBSETS:
            raise ParameterError(f"persons have more than {MOST_SUBSETS} fragments of {size}; lower m")
        fragments, times = supports(subsets(lists, size))
        risk = 1 / np.maximum(candidates(covers, released.weights, fragments), 1)
        average = float((risk * times).sum() / times.sum()) if len(times) else 0.0
        rows.append((size, len(times), float(risk.max(initial=0)), average))
    return rows
