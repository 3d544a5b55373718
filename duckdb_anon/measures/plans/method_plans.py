"""delta_probability, structural_values, diffgen_plan: what `muco` or `diffgen` would do to a table.

delta_probability gives, for each quasi-identifier, the delta that the random output tables of muco attain: max over
groups and used columns of max_i p_ij / sum_i p_ij (Li et al. 2020, section 3, definition 3), measured again on the
finished tables from the records' multiplicities, not what the solver reports. structural_values lists sensitive values
that a part of the table has alone, or that more than half of the records have: l forbids every cut that separates such
a value, so that its records stay in large groups with others. One row a value: how many records have it, how many of
them one cut would separate alone, whether `muco` excepts it from l by default, and its mean share in the groups of its
holders, which is the chance that who finds their group infers it. diffgen_plan gives the steps in which `diffgen`
spends its budget, which add up to epsilon (Mohammed, Chen, Fung and Yu 2011, section 4); nothing is drawn, and of the
table the number of numeric quasi-identifiers alone counts. Cost: that of the tables; linear in the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from duckdb_anon.kernels.differential_privacy.diffgen_search import Budget
from duckdb_anon.kernels.partition.structural_values import rows_alone
from duckdb_anon.methods.diffgen import SPENDING
from duckdb_anon.methods.muco import (
    GROUPING,
    L_EXCEPT,
    METHOD,
    conditions,
    covers,
    excepted_codes,
    groups_of,
    refine,
    share_in_groups,
)
from duckdb_anon.methods.partition_params import least_size
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.function_specs import Answer, Params, Report, fields


@Report(
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
    conditions=conditions,
    refine=partial(refine, function="delta_probability"),
)
def delta_probability(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> Answer:
    """One row an attribute: largest share of one record in a column's mass, and expected change."""
    table = tables[0]
    groups = groups_of(table, params, "delta_probability")
    every = covers(table, params, groups)
    delta, number = float(params["delta"]), int(groups.max()) + 1
    return [
        (a.name, number, delta, c.max_ratio, c.max_ratio <= delta + 1e-7, float(c.cost.sum()) / table.rows)
        for a, c in zip(table.qi, every, strict=True)
    ]  # fmt: skip


@Report(
    summary="sensitive values that a part of the table has alone, which l keeps in large groups; muco excepts them",
    paper="Machanavajjhala et al. (2007), section 4.2 (don't-care sensitive values)",
    example="FROM structural_values('(SELECT age, gender, if(age < 25, 0, salary) AS pay FROM people)', 0.1, "
    "qi := ['age', 'gender'], sensitive := 'pay')",
    section="Preparing a call",
    smallest="delta := 0.5",
    instead=("muco",),
    parameters=(GROUPING[0],),
    returns={"attribute": "VARCHAR", "value": "CODE"}
    | fields("records BIGINT, alone BIGINT, excepted BOOLEAN, in_group DOUBLE"),
    needs=("qi", "sensitive"),
    unit="person",
)
def structural_values(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> Answer:
    """One row a value that muco excepts, or some cut would separate alone in as many records as a group has or more.

    Where individuals have several rows, muco excepts none, and there is no row.
    """
    table = tables[0]
    if table.repeated_person is not None:
        return []
    rows: list[tuple[Any, ...]] = []
    call = refine({**dict.fromkeys(parameter.name for parameter in METHOD.parameters), "tables": "uniform", **params})
    groups = groups_of(table, call, "structural_values")
    for attribute in table.sensitive:
        alone, excepted = rows_alone(table.qi, attribute), excepted_codes(table, attribute, call)
        for code in np.union1d(np.flatnonzero(alone >= least_size(call)), excepted).tolist():
            found = attribute.counts[code], alone[code], code in excepted, share_in_groups(attribute, groups, code)
            rows.append((attribute.name, code, *found))
    return rows


@Report(
    summary="how diffgen spends its budget, step by step",
    paper="Mohammed, Chen, Fung & Yu (2011), KDD, section 4",
    example="FROM diffgen_plan('people', 1.0)",
    section="Preparing a call",
    smallest="epsilon := 1.0",
    instead=("mondrian",),
    parameters=SPENDING,
    returns=fields("step VARCHAR, mechanism VARCHAR, times BIGINT, epsilon_each DOUBLE, epsilon_total DOUBLE"),
    needs=("qi",),
)
def diffgen_plan(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> Answer:
    """List the steps with their budget."""
    numeric = sum(attribute.kind == "ordered" for attribute in tables[0].qi)
    steps = Budget(params["epsilon"], numeric, params["specializations"]).steps()
    return steps
