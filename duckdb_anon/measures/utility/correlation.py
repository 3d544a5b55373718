"""correlation: how much each column of a table, or of what a release tells of, says about each other one.

Measures, for every ordered pair, the uncertainty coefficient U(response | given) = I / H(response) (Theil 1970), in
[0, 1]: the share of the response's entropy the other column removes; 0 where the response is constant. The joint
distribution of a release is read as in `measures.joint`, negative cells projected away; a box is spread over the values
that occur in the release, its ends among them. Guo, Ying and Wu (2011) judge releases by it; they print its range as
[-1, 1]. Cost: one joint distribution a pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import project
from duckdb_anon.measures.utility.contingency_table import joint_shares
from duckdb_anon.model.coded_table import FloatArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Parameter, Params, Report
from duckdb_anon.model.release_table import ReadTable

NAME = "correlation"


def uncertainty(joint: FloatArray) -> tuple[float, float]:
    """Uncertainty coefficients of a joint distribution, U(column | row) and U(row | column).

    >>> uncertainty(np.array([[0.5, 0.0], [0.0, 0.5]]))
    (1.0, 1.0)
    >>> uncertainty(np.array([[0.25, 0.25], [0.25, 0.25]]))
    (0.0, 0.0)
    """
    row, column = joint.sum(axis=1), joint.sum(axis=0)
    of_rows, of_columns = _entropy(row), _entropy(column)
    shared = max(0.0, of_rows + of_columns - _entropy(joint))
    return _share(shared, of_columns), _share(shared, of_rows)


def _share(shared: float, entropy: float) -> float:
    # what is left of a difference of entropies of independent columns is rounding
    return 0.0 if entropy <= 0 or shared < 1e-12 else min(1.0, shared / entropy)


def _entropy(shares: FloatArray) -> float:
    positive = shares[shares > 0]
    return float(-(positive * np.log(positive)).sum())


def compute(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row an ordered pair of columns."""
    table, roles = tables[0], params["roles"]
    names = list(params["columns"] or [info.name for info in roles.qi + roles.sensitive])
    if len(names) < 2:
        raise ColumnError(f"{NAME}: a pair of columns is needed; say columns := ['age', 'disease']")
    rows = []
    for first, second in combinations(names, 2):
        joint = joint_shares(NAME, table, [first, second])
        forward, backward = uncertainty(project(joint, params["projection"])) if table.rows else (0.0, 0.0)
        rows += [(first, second, forward), (second, first, backward)]
    given, response, found = zip(*rows, strict=True)
    return {"given": given, "response": response, "uncertainty_coefficient": np.array(found)}


MEASURE = Report(
    name=NAME,
    summary="uncertainty coefficient of every ordered pair of columns, in a table or estimated from a "
"release",
    paper="Theil (1970); Guo, Ying and Wu (2011), section V",
    example="FROM correlation('people')",
    section="Utility",
    parameters=(
        Parameter("columns", "columns to pair (default: the labelled ones)", "names"),
        Parameter("projection", "negative cells: 'clip' sets them to 0; 'euclidean' takes the nearest distribution",
                  "text", "clip", ("clip", "euclidean")),
    ),
    returns={"given": "VARCHAR", "response": "VARCHAR", "uncertainty_coefficient": "DOUBLE"},
    compute=compute,
    unit="any",
    tables=("tbl",),
    reads="tables",
    answers=("rows", "boxes", "buckets", "sliced", "randomized", "counts", "sampled", "suppressed", "retained"),
    needs=(),
)  # fmt: skip
