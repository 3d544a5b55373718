"""delta_probability: the delta that the random output tables of muco attain.

Measures, for each quasi-identifier, max over groups and used columns of max_i p_ij / sum_i p_ij (Li et al. 2020,
section 3, definition 3), on the tables `muco` would draw from under the same arguments. It is the guarantee
re-measured on the finished tables, from the records' multiplicities, not what the solver reports. Cost: that of the
tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from duckdb_anon.methods.muco import GROUPING, L_EXCEPT, conditions, covers, groups_of, refine
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.function_specs import Params, Report, fields


def attained(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row an attribute: largest share of one record in a column's mass, and expected change."""
    table = tables[0]
    groups = groups_of(table, params, "delta_probability")
    every = covers(table, params, groups)
    largest = np.array([c.max_ratio for c in every])
    delta = float(params["delta"])
    return {
        "attribute": [a.name for a in table.qi],
        "groups": np.full(len(every), int(groups.max()) + 1),
        "delta": np.full(len(every), delta),
        "attained": largest,
        "holds": largest <= delta + 1e-7,
        "expected_change": np.array([float(c.cost.sum()) / table.rows for c in every]),
    }


MEASURE = Report(
    name="delta_probability",
    summary="largest share of one record in a published value, per attribute, in the tables muco would draw from",
    paper="Li et al. (2020), arXiv 2008.10771, section 3, definition 3",
    example="FROM delta_probability('people', 0.2)",
    section="From papers, for comparison",
    smallest="delta := 0.5",
    instead=("linkage_risk",),
    parameters=(*GROUPING, L_EXCEPT),
    returns=fields(
        "attribute VARCHAR, groups BIGINT, delta DOUBLE, attained DOUBLE, holds BOOLEAN, expected_change DOUBLE"
    ),
    compute=attained,
    conditions=conditions,
    refine=partial(refine, function="delta_probability"),
)
