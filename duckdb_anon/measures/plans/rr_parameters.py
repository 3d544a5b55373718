"""The parameters rr_distort would use: one row per randomized column.

Measures nothing of a release: it shows, before anything is released, the probabilities p of least expected
error whose disclosure risk is at most 1/l, that risk, and the error to expect. Paper: Guo, Ying and Wu
(2011), Problem 1 and Result 2. Cost: see duckdb_anon/kernels/randomized_response/optimize_p.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from duckdb_anon.kernels.randomized_response import setup
from duckdb_anon.kernels.randomized_response.channel import expected_squared_error
from duckdb_anon.kernels.randomized_response.setup import LEVEL, PAPER, RISK_PARAMETERS, choose
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.function_specs import REQUIRED, Params, Report, fields

NAME = "rr_parameters"


def refine(params: dict[str, Any]) -> dict[str, Any]:
    """Check l and bins; p is what is asked for."""
    return setup.refine(NAME, {**params, "p": None})


def compute(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> dict[str, Any]:
    """Return attribute, domain size and p of each randomized column, and what holds for the whole release.

    `risk_bound` is the risk of the table at these p (largest, or mean with `target := 'mean'`), at most 1/l;
    `excluded` the share of records outside the bound; `expected_error` the root of the expected squared
    error of all estimated cell shares together, the table held fixed.
    """
    chosen = choose(tables[0], params, NAME)
    shown = [k for k, column in enumerate(chosen.columns) if column.randomized]
    risk, excluded = float("nan"), 0.0
    if chosen.problem is not None:
        risk, excluded = chosen.problem.bounded_risk(chosen.channels), chosen.problem.excluded_share()
    error = float(np.sqrt(expected_squared_error(chosen.channels, tables[0].rows)))
    return {
        "attribute": [chosen.columns[k].attribute.name for k in shown],
        "domain_size": np.array([chosen.columns[k].size for k in shown]),
        "p": np.array([chosen.channels[k].p for k in shown]),
        "risk_bound": np.full(len(shown), risk),
        "excluded": np.full(len(shown), excluded),
        "expected_error": np.full(len(shown), error),
    }


MEASURE = Report(
    name=NAME,
    summary="the probabilities rr_distort would use at this l, their risk and the error to expect",
    paper=f"{PAPER}, section IV.B, Result 2",
    example="FROM rr_parameters('people', 2, qi := ['gender', 'education'])",
    section="Preparing a call",
    smallest="l := 2",
    instead=("muco",),
    parameters=(replace(LEVEL, default=REQUIRED), *RISK_PARAMETERS),
    returns=fields(
        "attribute VARCHAR, domain_size BIGINT, p DOUBLE, risk_bound DOUBLE, excluded DOUBLE, expected_error DOUBLE"
    ),
    compute=compute,
    needs=("sensitive",),
    refine=refine,
)
