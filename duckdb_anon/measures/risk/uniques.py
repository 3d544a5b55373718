"""special_uniques, population_uniqueness: people who are alone in a table, and how many are alone in the population.

special_uniques (SUDA2): for each row that is alone on some set of quasi-identifiers, its minimal sample uniques (the
sets on which it is alone and on no part of them), and two scores. `score` (Elliot, Manning and Ford 2002): the sum over
them of the product of (columns - i) for i from their size to `max_size`. `dis` (Elliot 2000; as sdcMicro and mu-Argus
compute it) spreads over the rows the chance that a unique match between the table and a sample of the population is
right, U p / (U p + D (1 - p)), U being the uniques, D the rows in pairs and p `sampling_fraction`. NULL is a value like
any other. `columns` is the smallest of the sets, the first in table order. Cost: a sort for each set of columns.
population_uniqueness estimates from the class sizes of a random sample how many of the population are unique: Pitman
(Hoshino 2001), Zayatz (1991), slide negative binomial (Chen and Keller-McNulty 1998), Poisson (Skinner and Shlomo
2008), and 'best', see `kernels.uniqueness`. An estimate, never a bound: examples/studies/population.py
compares it with the truth. Where a person has several rows and no column says so, every model is wrong by far.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, prod

import numpy as np

from duckdb_anon.kernels import uniqueness
from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.kernels.uniqueness import minimal_uniques
from duckdb_anon.model.coded_table import CodeArray, CodedTable, FloatArray
from duckdb_anon.model.errors import ParameterError, RequirementError
from duckdb_anon.model.function_specs import REQUIRED, Answer, Parameter, Params, Report, fields

MODELS = ("pitman", "zayatz", "snb", "poisson", "best")
_MOST_SORTED = 4_000_000_000


@Report(
    summary="records that are unique on few attributes (SUDA2), with SUDA and DIS scores",
    paper="Elliot, Manning and Ford (2002); Manning, Haglin and Keane (2008); DIS: Elliot (2000)",
    example="FROM special_uniques('people', max_size := 3) LIMIT 10",
    section="Risk",
    instead=("reidentification_risk",),
    parameters=(
        Parameter("max_size", "maximum number of attributes in a set (default: all)", "integer", low=1),
        Parameter(
            "sampling_fraction", "share of the population in the table, for dis", "number", 0.01, above=0, high=1
        ),
    ),
    returns=fields("row_id BIGINT, sets BIGINT, smallest BIGINT, columns VARCHAR, score DOUBLE, dis DOUBLE"),
    labelled="tbl",  # an original: with a hierarchy its texts are values, no nodes
    reads="tables",
)
def special_uniques(call: MeasureCall) -> Answer:
    """One row a special unique, the highest score first."""
    table, names, params = call.read["tbl"], call.qi, call.params
    if not table.rows:
        raise RequirementError("the table is empty, so it has no uniques")
    columns = [table.columns[name].value_codes() for name in names]
    largest = _largest(len(names), table.rows, params["max_size"])
    # a set of all columns scores as one of all but one: nothing is left that could be added
    last = min(largest, len(names) - 1)
    score = np.zeros(table.rows)
    sets = np.zeros(table.rows, dtype=np.int64)
    smallest = np.zeros(table.rows, dtype=np.int64)
    first: list[str] = [""] * table.rows
    for chosen, rows in minimal_uniques(columns, largest):
        score[rows] += prod(len(names) - i for i in range(len(chosen), last + 1))
        sets[rows] += 1
        for row in rows[smallest[rows] == 0].tolist():
            first[row] = ", ".join(names[column] for column in chosen)
        smallest[rows] = np.where(smallest[rows] == 0, len(chosen), smallest[rows])
    found = np.flatnonzero(sets)
    found = found[np.lexsort((found, -score[found]))]
    return {
        "row_id": found, "sets": sets[found], "smallest": smallest[found],
        "columns": [first[row] for row in found.tolist()], "score": score[found],
        "dis": dis_scores(score[found], columns, params["sampling_fraction"]),
    }  # fmt: skip


def _largest(columns: int, rows: int, given: int | None) -> int:
    """Columns of the largest set that is tried; refused where all sets up to that size take too long."""
    largest = min(columns, given if given is not None else columns)
    sets = np.cumsum([comb(columns, size) for size in range(1, largest + 1)], dtype=np.float64)
    possible = int((sets * rows <= _MOST_SORTED).sum())
    if possible < largest:
        smaller = f"say max_size := {possible}, or " if possible else ""
        raise ParameterError(
            f"sets of up to {largest} of {columns} columns are too many for {rows} rows; {smaller}"
            "name fewer columns in qi := [...]"
        )
    return largest


def dis_scores(score: FloatArray, columns: Sequence[CodeArray], fraction: float) -> FloatArray:
    """DIS of rows, each in [0, 1]."""
    size = np.bincount(keys_of(columns).of_row)
    uniques, in_pairs = int((size == 1).sum()), 2 * int((size == 2).sum())
    if not len(score):
        return score
    if not uniques:
        return np.zeros(len(score))
    overall = uniques * fraction / (uniques * fraction + in_pairs * (1 - fraction))
    weighed = score ** (1 + (8 - len(columns)) / 20)
    return np.asarray(1 / (1 + (uniques / overall - uniques) / (weighed * (1 / weighed).sum())))


@Report(
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
)
def population_uniqueness(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> Answer:
    """One row."""
    table, fraction, model = tables[0], params["sampling_fraction"], params["model"]
    columns = [attribute.codes for attribute in table.qi]
    class_of_row = keys_of(columns).of_row
    sizes = np.bincount(class_of_row).astype(np.int64)
    alone = int((sizes == 1).sum())
    models = ("pitman", "poisson", "zayatz") if model == "best" else (model,)
    estimates = {name: getattr(uniqueness, name)(sizes, fraction) for name in models if name != "poisson"}
    if "poisson" in models:
        estimates["poisson"] = uniqueness.poisson(columns, class_of_row, sizes, fraction)
    found, how = uniqueness.best(estimates) if model == "best" else (estimates[model], model)
    if not np.isfinite(found):
        raise RequirementError(
            f"model := '{model}' does not fit ({len(sizes)} classes, {alone} sample "
            "uniques); model := 'best' takes one that does"
        )
    population = table.rows / fraction
    found = min(found, alone / fraction)
    of_sample = found * fraction / alone if alone else 0.0
    return [(how, table.rows, round(population), alone, found, found / population, of_sample)]
