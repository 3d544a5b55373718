"""Probabilistic (dLink): groups in which several values survive an intersection by chance.

Every record is released, generalized; values are truthful. Guarantee, for an independent publisher with the same
distribution and method: with probability alpha at least d of a group's sensitive values also occur in an independent
group of its size, so that an intersection does not single one out; groups have at least k records.

Source: a reading of (d, alpha)-linkability (Sattar, Li, Liu, Heatherly and Malin, Knowledge-Based Systems 67, 2014), of
which only the abstract was available; joint occurrence is taken as independent. It is not the original algorithm; the
definition is that of `LinkableValues`. Cost: O(d n log n).
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import All, KAnonymity
from duckdb_anon.kernels.slicing.chance import LinkableValues, Population
from duckdb_anon.methods.generalized_layout import boxed_groups, layout_of, parameters
from duckdb_anon.methods.partition_params import unchanged
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.function_specs import Cutting, Method, Parameter, Params
from duckdb_anon.model.released_columns import Cells

NAME = "probabilistic"


def required(table: CodedTable, params: Params) -> All:
    """What every group must satisfy."""
    population = Population.of(table.sensitive[0])
    return All((KAnonymity(params["k"]), LinkableValues(params["d"], params["alpha"], population)))


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Generalize."""
    _, cells = boxed_groups(NAME, table, np.arange(table.rows), required(table, params), params)
    return cells | unchanged(table)


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """As groups are cut."""
    return Cutting("cut", required(table, params), table.sensitive[0].codes)


METHOD = Method(
    name=NAME,
    section="From papers, for comparison",
    summary="generalization in which d values survive the intersection of two releases (a reading of the abstract)",
    paper="after Sattar, Li, Liu, Heatherly & Malin (2014), Knowledge-Based Systems 67: (d, alpha)-linkable",
    example="CREATE TABLE second AS FROM probabilistic('people', 5)",
    smallest="k := 2",
    trials=("k := 1, d := 1", "k := 3, d := 2", "k := 5, d := 1"),
    formats=("boxes",),
    instead=("merging",),
    parameters=parameters(
        Parameter("d", "number of values that must survive an intersection", "integer", 2, low=1, high=1000),
        Parameter("alpha", "probability that they survive", "number", 0.9, low=0, high=1),
    ),
    layout=layout_of(NAME),
    release=release,
    needs=("qi", "sensitive"),
    parts=parts,
    finished=("rows", "classes"),
)
