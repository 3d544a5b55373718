"""Disclosure risk of a table under randomized response, one row per sensitive column.

Measures the chance that an attacker who knows a person's QI values names the sensitive value: the paper's
risk (in (0, 1], at most 1/l when parameters were chosen for l), and next to it what it leaves out. An attacker
who picks one of the records that posterior sampling assigns to the person's QI cell, and names the value
sampled for it, is right with the value's share inside the true cell, whatever p is: `sampling_risk`.

Paper: Guo, Ying and Wu (2011), Result 1 and Property 1. Cost: one pass over the product of the QI domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from duckdb_anon.kernels.randomized_response import setup
from duckdb_anon.kernels.randomized_response.channel import RetentionChannel
from duckdb_anon.kernels.randomized_response.setup import GIVEN, LEVEL, PAPER, RISK_PARAMETERS, choose
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Params, Report, fields

NAME = "rr_risk"


def refine(params: dict[str, Any]) -> dict[str, Any]:
    """Check l, p and bins before the table is read."""
    return setup.refine(NAME, params)


def compute(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> dict[str, Any]:
    """Return the risks of each sensitive column over the records the bound covers.

    `least_risk` is what p = 1/size in every randomized column would leave (Property 1), `meets_l` the
    largest l the largest risk satisfies. Without covered records all risks are 0 and `meets_l` is infinite.
    """
    chosen = choose(tables[0], params, NAME)
    problem = chosen.problem
    if problem is None:
        raise ColumnError(f"{NAME}: there is no sensitive column; say sensitive := '...'")
    count = len(chosen.qi)
    flat = [RetentionChannel(c.size, 1.0 / c.size if c.randomized else 1.0) for c in chosen.columns]
    found = problem.model.risks(chosen.channels[:count], chosen.channels[count:])
    least = problem.model.risks(flat[:count], flat[count:])
    rows = []
    for number, column in enumerate(chosen.sensitive):
        table, covered = problem.model.tables[number], problem.included()[number]
        weight, share = table.pair_count[covered], table.conditional[covered]
        risk, floor = found[number][covered], least[number][covered]
        worst = float(risk.max(initial=0.0))
        mean, mean_share = (float(f @ weight) / max(int(weight.sum()), 1) for f in (risk, share))
        rows.append(
            (
                column.attribute.name,
                worst,
                mean,
                float(floor.max(initial=0.0)),
                float(share.max(initial=0.0)),
                mean_share,
                1.0 / worst if worst else float("inf"),
                problem.excluded_share(),
            )
        )
    return MEASURE.columns(rows)


MEASURE = Report(
    name=NAME,
    summary="disclosure risk under randomized response, for given p or the p found for l",
    paper=f"{PAPER}, section IV.A, Result 1",
    example="FROM rr_risk('people', p := 0.8)",
    section="Risk",
    smallest="p := 0.8",
    instead=("linkage_risk",),
    parameters=(LEVEL, GIVEN, *RISK_PARAMETERS),
    returns=fields(
        "attribute VARCHAR, max_risk DOUBLE, mean_risk DOUBLE, least_risk DOUBLE, sampling_risk DOUBLE, "
        "mean_sampling_risk DOUBLE, meets_l DOUBLE, excluded DOUBLE"
    ),
    compute=compute,
    needs=("sensitive",),
    refine=refine,
)
