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

from duckdb_anon.cells import ROWS, Cells, Coded, Source
from duckdb_anon.engine.interrupt import tick
from duckdb_anon.methods.composition import ESTIMATE
from duckdb_anon.partition import All, KAnonymity, partition
from duckdb_anon.slices.boxed import boxed_cells, record_layout
from duckdb_anon.slices.chance import LinkableValues, Population
from duckdb_anon.slices.grouping import one_sensitive
from duckdb_anon.slices.layout import CUTS
from duckdb_anon.spec import REQUIRED, ColumnPlan, Method, Parameter, Params, Roles
from duckdb_anon.table import CodedTable


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Generalize.

    Args:
        table: quasi-identifiers and one sensitive attribute.
        params: see `METHOD`.
        rng: not used; the result is determined by the table.

    Raises:
        RequirementError: the whole table as one group fails; the message says what it reaches.
    """
    population = Population.of(table.sensitive[0], params["est"], params["beta"])
    group = partition(
        table.qi,
        table.sensitive[0].codes,
        All((KAnonymity(params["k"]), LinkableValues(params["d"], params["alpha"], population))),
        cut=params["cut"],
        width=params["width"],
        tick=tick,
        function="probabilistic",
    )
    rows = np.arange(table.rows, dtype=np.int64)
    cells = boxed_cells(table, group, group, rows)
    cells |= {a.name: Coded(a.name, a.codes) for a in table.sensitive}
    return cells | {ROWS: Source(rows)}


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Boxes, the sensitive column, insensitive ones."""
    one_sensitive("probabilistic", roles)
    return record_layout("probabilistic", roles, ())


METHOD = Method(
    name="probabilistic",
    summary="generalization in which d values survive an intersection by chance (a reading of the abstract)",
    paper="after Sattar, Li, Liu, Heatherly & Malin (2014), Knowledge-Based Systems 67: (d, alpha)-linkable",
    parameters=(
        Parameter("k", "least number of rows in a group", "integer", REQUIRED, low=1),
        Parameter("d", "values that must survive an intersection", "integer", 2, low=1),
        Parameter("alpha", "probability with which they do", "number", 0.9, low=0, high=1),
        *ESTIMATE,
        *CUTS,
    ),
    layout=layout,
    release=release,
    needs=("qi", "sensitive"),
)
