"""population_uniqueness: records of a sample that are unique in the population, estimated from a sample of it.

Estimates, for a random sample of a larger population, how many individuals of the population are unique on the
quasi-identifiers, from the class sizes of the sample. Models: Pitman (Hoshino 2001), Zayatz (1991), slide negative
binomial (Chen and Keller-McNulty 1998), Poisson (Skinner and Shlomo 2008), and 'best', see
`kernels.population.uniqueness`. An estimate, never a bound: examples/studies/population.py compares it with the truth.
Where a person has several rows and no column says whose they are, every model is wrong by far.
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
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Report, fields

MODELS = ("pitman", "zayatz", "snb", "poisson", "best")


def population_uniqueness(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row."""
    table, fraction, model = tables[0], params["sampling_fraction"], params["model"]
    columns = [attribute.codes for attribute in table.qi]
    class_of_row = keys_of(columns).of_row
    sizes = np.bincount(class_of_row).astype(np.int64)
    alone = int((sizes == 1).sum())
    models = ("pitman", "poisson", "zayatz") if model == "best" else (model,)
    estimates = {
        name: uniqueness.poisson(columns, class_of_row, sizes, fraction)
        if name == "poisson"
        else getattr(uniqueness, name)(sizes, fraction)
        for name in models
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
    returns=fields(
        "model VARCHAR, rows BIGINT, population BIGINT, sample_uniques BIGINT, population_uniques DOUBLE, "
        "share_of_population DOUBLE, share_of_sample_uniques DOUBLE"
    ),
    compute=population_uniqueness,
)
