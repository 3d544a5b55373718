"""population_uniqueness: how many of the people behind a sample nobody else in the population resembles.

Estimates, for a table that is a sample of a larger population, the number of persons in the population whose
quasi-identifiers are theirs alone, from the class sizes of the table. A sample unique who is no population unique has
doubles outside the table, so that whoever finds her row cannot be sure. Models: Pitman (Hoshino 2001), Zayatz (1991),
slide negative binomial (Chen and Keller-McNulty 1998), Poisson (Skinner and Shlomo 2008), and 'best', see
`kernels.population.uniqueness`. The sample must have been drawn at random. An estimate, never a bound: on samples of
1 to 20% of census and adult (3 to 8 columns) 'best' was .65 to 2.00 times the truth, off by a factor of 1.18 on
average; ARX's decision rule (Dankar et al. 2012) .39 to 2.34, by 1.39 (examples/studies/population.py). On a table by
which nothing was chosen, fair of statsmodels, 'best' was 1.12 to 2.29, by 1.36, the rule .86 to 1.81, by 1.19. Where
one person has several rows and no column says whose, every model is wrong: 18 to 114 times the truth on randhie.
Cost: one sort, then linear in the classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.kernels.population import uniqueness
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Report

MODELS = ("pitman", "zayatz", "snb", "poisson", "best")


def population_uniqueness(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row."""
    table, fraction, model = tables[0], params["sampling_fraction"], params["model"]
    columns = [attribute.codes for attribute in table.qi]
    class_of_row = keys_of(columns).of_row
    sizes = np.bincount(class_of_row).astype(np.int64)
    alone = int((sizes == 1).sum())
    asked = ("pitman", "poisson", "zayatz") if model == "best" else (model,)
    estimates = {
        name: uniqueness.poisson(columns, class_of_row, sizes, fraction)
        if name == "poisson"
        else getattr(uniqueness, name)(sizes, fraction)
        for name in asked
    }
    found, how = uniqueness.best(estimates) if model == "best" else (estimates[model], model)
    if not np.isfinite(found):
        raise RequirementError(
            f"population_uniqueness: model := '{model}' does not fit ({len(sizes)} classes, {alone} sample "
            "uniques); model := 'best' takes one that does"
        )
    population = table.rows / fraction
    found = min(found, alone / fraction)
    return {
        "model": [how],
        "rows": [table.rows],
        "population": [round(population)],
        "sample_uniques": [alone],
        "population_uniques": [found],
        "share_of_population": [found / population],
        "share_of_sample_uniques": [found * fraction / alone if alone else 0.0],
    }


MEASURE = Report(
    name="population_uniqueness",
    summary="population uniques, estimated from a sample",
    paper="Hoshino (2001); Zayatz (1991); Chen and Keller-McNulty (1998); Skinner and Shlomo (2008); see Dankar (2012)",
    example="FROM population_uniqueness('people', 0.05)",
    section="Risk",
    smallest="sampling_fraction := 0.1",
    instead=("reidentification_risk",),
    parameters=(
        Parameter(
            "sampling_fraction", "share of the population that is in the table", "number", REQUIRED, above=0, high=1
        ),
        Parameter("model", "statistical model of the population", "text", "best", MODELS),
    ),
    returns={
        "model": "VARCHAR",
        "rows": "BIGINT",
        "population": "BIGINT",
        "sample_uniques": "BIGINT",
        "population_uniques": "DOUBLE",
        "share_of_population": "DOUBLE",
        "share_of_sample_uniques": "DOUBLE",
    },
    compute=population_uniqueness,
)
