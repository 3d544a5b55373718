"""fragment_risk: how well some known sensitive values of a person single it out in a release of lists of nodes.

An attacker knows that a person has certain m values (a fragment) and looks for the released persons whose list
covers them all: each value lies below one of the nodes. The risk is 1 over the number of such candidates
(Gong, Luo, Yang, Ni & Li 2017, section 3; their theorem 1 bounds it by 1/k). Asked about every fragment of m
values that the original persons have; a person with fewer values is known by all of them.
Cost: candidates of all pairs are one product of matrices; larger fragments are looked up one by one in chunks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.kernels.set_valued.apriori_km import MOST_SUBSETS, count_subsets, subsets, supports
from duckdb_anon.kernels.set_valued.person_sets import Lists
from duckdb_anon.measures.released_rows import OfRelease
from duckdb_anon.measures.utility.sa_ncp import read_lists
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import Answer, Parameter

_CHUNK = 1 << 22
_MOST_CELLS = 1 << 29
Flags = NDArray[np.float32]


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
