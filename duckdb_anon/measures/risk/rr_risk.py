"""rr_risk, rr_parameters: risk of a table under randomized response, and the parameters rr_distort would use.

rr_risk: the probability that an attacker who knows an individual's quasi-identifiers names the sensitive value, one row
per sensitive column: the paper's risk (in (0, 1], at most 1/l when parameters were chosen for l), and next to it what
it leaves out. An attacker who picks one of the records that posterior sampling assigns to the individual's cell, and
names the value sampled for it, is right with the value's share inside the true cell, whatever p is: `sampling_risk`.
rr_parameters shows, before anything is released, the probabilities p of least expected error whose risk is at most 1/l,
that risk, and the error to expect (the root of the expected squared error of all cell shares together), one row per
randomized column. `least_risk` is what p = 1/size in every randomized column would leave, `meets_l` the largest l that
the largest risk satisfies, `excluded` the share of records outside the bound. Paper: Guo, Ying and Wu (2011), Results 1
and 2, Property 1, Problem 1. Cost: one pass over the product of the domains, for rr_parameters many (`optimize_p`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, expected_squared_error
from duckdb_anon.methods import rr_params
from duckdb_anon.methods.rr_params import GIVEN, LEVEL, PAPER, RISK_PARAMETERS, choose
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import REQUIRED, Answer, Params, Report, fields


@Report(
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
    needs=("sensitive",),
    refine=partial(rr_params.refine, "rr_risk"),
)
def rr_risk(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> Answer:
    """Give the risks of each sensitive column over the records the bound covers."""
    chosen = choose(tables[0], params, "rr_risk")
    problem = chosen.problem
    if problem is None:
        raise ColumnError("there is no sensitive column; say sensitive := '...'")
    flat = [RetentionChannel(c.size, 1.0 / c.size if c.randomized else 1.0) for c in chosen.columns]
    found, least = problem.risks(chosen.channels), problem.risks(flat)
    rows = []
    for number, column in enumerate(chosen.sensitive):
        table, covered = problem.model.tables[number], problem.included()[number]
        weight, share = table.pair_count[covered], table.conditional[covered]
        risk, floor = found[number][covered], least[number][covered]
        worst = float(risk.max(initial=0.0))
        mean, mean_share = (float(f @ weight) / max(int(weight.sum()), 1) for f in (risk, share))
        least_worst, highest_share = float(floor.max(initial=0.0)), float(share.max(initial=0.0))
        meets_l = 1.0 / worst if worst else float("inf")
        figures = (worst, mean, least_worst, highest_share, mean_share, meets_l, problem.excluded_share())
        rows.append((column.attribute.name, *figures))
    return rows


@Report(
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
    needs=("sensitive",),
    refine=lambda params: rr_params.refine("rr_parameters", {**params, "p": None}),  # p is what is chosen
)
def rr_parameters(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> Answer:
    """Return attribute, domain size and p of each randomized column, and what holds for the whole release."""
    chosen = choose(tables[0], params, "rr_parameters")
    risk, excluded = float("nan"), 0.0
    if chosen.problem is not None:
        risk, excluded = chosen.problem.bounded_risk(chosen.channels), chosen.problem.excluded_share()
    error = float(np.sqrt(expected_squared_error(chosen.channels, tables[0].rows)))
    return [
        (column.attribute.name, column.size, channel.p, risk, excluded, error)
        for column, channel in zip(chosen.columns, chosen.channels, strict=True)
        if column.randomized
    ]  # fmt: skip
