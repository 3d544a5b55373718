"""How `diffgen` would spend its budget on a table: one row a step.

The steps add up to epsilon (Mohammed, Chen, Fung and Yu 2011, section 4); see `noise.budget`. Nothing is
drawn and no row matters: only the number of numeric quasi-identifiers does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from duckdb_anon.kernels.differential_privacy.diffgen_search import Budget
from duckdb_anon.methods.diffgen import SPENDING
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.function_specs import Params, Report, fields


def compute(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> dict[str, Any]:
    """List the steps with their budget."""
    numeric = sum(attribute.kind == "ordered" for attribute in tables[0].qi)
    steps = Budget(params["epsilon"], numeric, params["specializations"]).steps()
    step, mechanism, times, each, total = zip(*steps, strict=True)
    return {
        "step": list(step),
        "mechanism": list(mechanism),
        "times": np.array(times),
        "epsilon_each": np.array(each),
        "epsilon_total": np.array(total),
    }


MEASURE = Report(
    name="diffgen_plan",
    summary="how diffgen spends its budget, step by step",
    paper="Mohammed, Chen, Fung & Yu (2011), KDD, section 4",
    example="FROM diffgen_plan('people', 1.0)",
    section="Preparing a call",
    smallest="epsilon := 1.0",
    instead=("mondrian",),
    parameters=SPENDING,
    returns=fields("step VARCHAR, mechanism VARCHAR, times BIGINT, epsilon_each DOUBLE, epsilon_total DOUBLE"),
    compute=compute,
    needs=("qi",),
)
