"""Composition: a sample, generalized so that a value shared by two releases need not be the victim's.

A generalized record is released for each sampled one, with the constant column `sampling_rate`. Guarantee, for an
independent publisher with the same distribution, method and rate: when both releases offer a victim the same value, the
belief that it comes from the victim's own records is at most alpha; groups have at least k records.

Source: a reading of (rho, alpha)-anonymization (Baig, Li, Liu, Ding and Wang, DASFAA 2012), of which only the abstract
was available; Hasan et al. (2018, section 2.2) add "sampling and generalization". It is not the original algorithm; the
definition is that of `CommonValue`. Cost: O(d n log n).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import All, KAnonymity
from duckdb_anon.kernels.slicing.chance import CommonValue, Population, chance_of_occurrence, largest_rate
from duckdb_anon.methods.generalized_layout import boxed_groups, layout_of, parameters, record_layout, sampled_rows
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import Cutting, Method, Parameter, Params
from duckdb_anon.model.quoting import literal
from duckdb_anon.model.release_formats import RATE
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Real, Source

NAME = "composition"


def automatic_rate(table: CodedTable, alpha: float) -> float:
    """Largest rate at which a sample, taken as one group, almost surely meets alpha, by bisection."""
    counts = table.sensitive[0].counts
    rows = int(counts.sum())
    share = np.array([counts.min() / rows])
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        spread = 4 * np.sqrt(middle * (1 - middle) * rows)  # the sample may come out smaller
        chance = chance_of_occurrence(share, np.array([max(middle * rows - spread, 1.0)]))
        low, high = (middle, high) if middle <= largest_rate(alpha, float(chance[0])) else (low, middle)
    return low


def rate_of(table: CodedTable, params: Params) -> float:
    """The rate of the sample."""
    return automatic_rate(table, params["alpha"]) if params["rho"] == "auto" else float(params["rho"])


def required(table: CodedTable, params: Params, rate: float) -> All:
    """What every group must satisfy."""
    population = Population.of(table.sensitive[0])
    return All((KAnonymity(params["k"]), CommonValue(rate, params["alpha"], population)))


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Sample and generalize."""
    rate = rate_of(table, params)
    rows = sampled_rows(NAME, table.rows, rate, rng)
    sensitive = table.sensitive[0]
    _, cells = boxed_groups(NAME, table, rows, required(table, params, rate), params)
    return {
        **cells,
        sensitive.name: Coded(sensitive.name, sensitive.codes[rows]),
        RATE.key: Real(np.full(len(rows), rate)),
        ROWS: Source(rows),
    }


def refine(params: dict[str, Any]) -> dict[str, Any]:
    """Check the rate: a number in (0, 1] or 'auto'."""
    rate = params["rho"]
    number = isinstance(rate, (int, float)) and not isinstance(rate, bool) and 0 < rate <= 1
    if rate != "auto" and not number:
        raise ParameterError(f"composition: rho := {literal(rate)} is neither a number in (0, 1] nor 'auto'")
    return params


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """As groups are cut, of all rows in place of the sample; the rate is the whole table's."""
    rate = rate_of(table, params)
    requirement = required(table, params, rate)
    return replace(Cutting("cut", requirement, table.sensitive[0].codes), settled={"rho": rate}, share=rate)


METHOD = Method(
    name=NAME,
    section="From papers, for comparison",
    summary="a generalized sample against the composition attack (a reading of the abstract, not the original)",
    paper="after Baig, Li, Liu, Ding & Wang (2012), DASFAA: (rho, alpha)-anonymization",
    example="CREATE TABLE sampled AS FROM composition('people', 5)",
    smallest="k := 2",
    trials=("k := 1, rho := 1.0", "k := 3, rho := 1.0", "k := 5, rho := 0.5"),
    formats=("boxes", "sampled"),
    instead=("merging",),
    parameters=parameters(
        Parameter(
            "rho", "share of the records that is released, in (0, 1], or 'auto': the largest possible", "any", 0.5
        ),
        Parameter(
            "alpha", "maximum belief that a shared value is the individual's own", "number", 0.5, above=0, high=1
        ),
    ),
    layout=layout_of(NAME, partial(record_layout, constants=(RATE.key,))),
    release=release,
    needs=("qi", "sensitive"),
    refine=refine,
    parts=parts,
    finished=("classes",),
)
