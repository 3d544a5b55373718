"""Probabilistic (dLink): groups in which several values survive an intersection by chance.

Releases every record, generalized; values are truthful. Guarantee, under the assumption of an independent
publisher with the same distribution and method: with probability alpha at least d of a group's sensitive
values also occur in an independent group of its size, so that an intersection does not single one out;
groups have at least k rows.

A reading of (d, alpha)-linkability (Sattar, Li, Liu, Heatherly and Malin, Knowledge-Based Systems 67, 2014),
of which only the abstract was available. The definition is in `slices.chance`; joint occurrence is taken as
independent. It is not the original algorithm. Cost: O(d n log n).
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.partition import All, KAnonymity
from duckdb_anon.kernels.slicing.chance import ESTIMATE, LinkableValues, Population
from duckdb_anon.methods.generalized_baselines import boxed_groups, layout_of, parameters
from duckdb_anon.methods.partition_params import cutting
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.function_specs import Cutting, Method, Parameter, Params
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Source

NAME = "probabilistic"


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Generalize.

    Args:
        table: quasi-identifiers and one sensitive attribute.
        params: see `METHOD`.
        rng: not used; the result is determined by the table.

    Raises:
        RequirementError: the whole table as one group fails; the message says what it reaches.
    """
    sensitive = table.sensitive[0]
    population = Population.of(sensitive, params["est"], params["beta"])
    requirement = All((KAnonymity(params["k"]), LinkableValues(params["d"], params["alpha"], population)))
    rows = np.arange(table.rows, dtype=np.int64)
    _, cells = boxed_groups(NAME, table, rows, requirement, params)
    return {**cells, sensitive.name: Coded(sensitive.name, sensitive.codes), ROWS: Source(rows)}


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """As groups are cut."""
    population = Population.of(table.sensitive[0], params["est"], params["beta"])
    requirement = All((KAnonymity(params["k"]), LinkableValues(params["d"], params["alpha"], population)))
    return cutting(params, requirement, table.sensitive[0].codes)


METHOD = Method(
    name=NAME,
    summary="generalization in which d values survive an intersection by chance (a reading of the abstract)",
    paper="after Sattar, Li, Liu, Heatherly & Malin (2014), Knowledge-Based Systems 67: (d, alpha)-linkable",
    example="CREATE TABLE second AS FROM probabilistic('people', 5)",
    smallest="k := 2",
    trials=("k := 1, d := 1", "k := 3, d := 2", "k := 5, d := 1"),
    formats=("boxes",),
    instead=("merging",),
    parameters=parameters(
        Parameter("d", "values that must survive an intersection", "integer", 2, low=1, high=1000),
        Parameter("alpha", "probability with which they do", "number", 0.9, low=0, high=1),
        *ESTIMATE,
    ),
    layout=layout_of(NAME),
    release=release,
    needs=("qi", "sensitive"),
    parts=parts,
    finished=("rows", "classes"),
)
