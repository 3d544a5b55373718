"""Hybrid: sampling, generalization and perturbation together.

Releases a generalized row a sampled record; with probability 1 - q its sensitive value is replaced by a draw
from the sample's own distribution. The constant columns `sampling_rate` and `retention` say rho and q.
Guarantee: groups have at least k rows. A person in both of two such releases is in both unchanged with
probability (rho q)^2; no privacy budget is implied.

A reading of Li, Baig, Sattar, Ding, Liu and Vincent (Information Sciences 367-368, 2016), of which only the
abstract was available: its three ingredients in the order given. It is not the original algorithm.
Cost: O(d n log n).
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.cells import ROWS, Cells, Coded, Real, Source
from duckdb_anon.engine.interrupt import tick
from duckdb_anon.partition import KAnonymity, partition
from duckdb_anon.slices.boxed import boxed_cells, record_layout, sampled_rows
from duckdb_anon.slices.fakes import taken
from duckdb_anon.slices.grouping import one_sensitive
from duckdb_anon.slices.layout import CUTS
from duckdb_anon.spec import REQUIRED, ColumnPlan, Method, Parameter, Params, Roles
from duckdb_anon.table import CodeArray, CodedTable


def perturbed(codes: CodeArray, retention: float, rng: np.random.Generator) -> CodeArray:
    """Replace each code with probability 1 - retention by a draw from all of them."""
    drawn = codes[rng.integers(0, len(codes), len(codes))]
    return np.where(rng.random(len(codes)) < retention, codes, drawn)


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Sample, generalize, perturb.

    Args:
        table: quasi-identifiers and one sensitive attribute.
        params: see `METHOD`.
        rng: source of randomness.

    Raises:
        RequirementError: the sample has fewer than k rows.
    """
    rows = sampled_rows("hybrid", table.rows, params["rho"], rng)
    group = partition(
        tuple(taken(a, rows) for a in table.qi),
        None,
        KAnonymity(params["k"]),
        cut=params["cut"],
        width=params["width"],
        tick=tick,
        function="hybrid",
    )
    sensitive = table.sensitive[0]
    return boxed_cells(table, group, group, rows) | {
        sensitive.name: Coded(sensitive.name, perturbed(sensitive.codes[rows], params["q"], rng)),
        "sampling_rate": Real(np.full(len(rows), params["rho"])),
        "retention": Real(np.full(len(rows), params["q"])),
        ROWS: Source(rows),
    }


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Boxes, the sensitive column, insensitive ones, `sampling_rate`, `retention`."""
    one_sensitive("hybrid", roles)
    return record_layout("hybrid", roles, ("sampling_rate", "retention"))


METHOD = Method(
    name="hybrid",
    summary="sampling, generalization and perturbed sensitive values (a reading of the abstract)",
    paper="after Li, Baig, Sattar, Ding, Liu & Vincent (2016), Information Sciences 367-368",
    parameters=(
        Parameter("k", "least number of rows in a group", "integer", REQUIRED, low=1),
        Parameter("rho", "share of the rows that is released", "number", 0.8, above=0, high=1),
        Parameter("q", "probability with which a sensitive value is kept", "number", 0.8, low=0, high=1),
        *CUTS,
    ),
    layout=layout,
    release=release,
    needs=("qi", "sensitive"),
)
