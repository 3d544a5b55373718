"""Laplace noise on the counts of sensitive values in k-anonymous groups. Not differentially private.

Releases, for each Mondrian group and each sensitive value of the table, the group's box and a noisy count.
Guarantee: groups have at least k rows, and given the groups each count is epsilon-differentially private.
The groups and the list of values are made from the data without any protection, so the release as a whole is
not: this is the "epsilon-DP" curve of Hasan, Jiang, Chen and Wang (2018, section 5), offered to reproduce
it. `diffgen` is the private alternative. Noise in floating point is not a proof-grade mechanism.
Cost: O(d n log n).
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.cells import ROWS, Cells, Coded, Real, Source
from duckdb_anon.engine.interrupt import tick
from duckdb_anon.partition import KAnonymity, partition
from duckdb_anon.slices.boxed import boxed_cells, cell_layout
from duckdb_anon.slices.grouping import one_sensitive
from duckdb_anon.slices.layout import CUTS
from duckdb_anon.spec import REQUIRED, ColumnPlan, Method, Parameter, Params, Roles
from duckdb_anon.table import CodedTable


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Count and add noise.

    Args:
        table: quasi-identifiers and one sensitive attribute.
        params: see `METHOD`.
        rng: source of randomness.

    Raises:
        RequirementError: the table has fewer than k rows.
    """
    group = partition(
        table.qi,
        None,
        KAnonymity(params["k"]),
        cut=params["cut"],
        width=params["width"],
        tick=tick,
        function="laplace_on_groups",
    )
    sensitive = table.sensitive[0]
    groups, values = int(group.max()) + 1, sensitive.domain
    counts = np.bincount(group * values + sensitive.codes, minlength=groups * values)
    scale = (2.0 if params["neighbours"] == "replace" else 1.0) / params["epsilon"]
    noisy = counts + rng.laplace(0.0, scale, len(counts))
    cells = boxed_cells(table, group, np.repeat(np.arange(groups), values), np.arange(table.rows))
    return cells | {
        sensitive.name: Coded(sensitive.name, np.tile(np.arange(values, dtype=np.int32), groups)),
        "noisy_count": Real(noisy),
        ROWS: Source(np.full(len(counts), -1, dtype=np.int64)),
    }


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Boxes, the sensitive column, `noisy_count`."""
    one_sensitive("laplace_on_groups", roles)
    return cell_layout("laplace_on_groups", roles)


METHOD = Method(
    name="laplace_on_groups",
    summary="noisy counts in unprotected k-anonymous groups; NOT differentially private, see diffgen",
    paper="the epsilon-DP curve of Hasan, Jiang, Chen & Wang (2018), Applied Sciences 8(5):783, section 5",
    parameters=(
        Parameter("k", "least number of rows in a group", "integer", REQUIRED, low=1),
        Parameter("epsilon", "budget of the counts, given the groups", "number", REQUIRED, above=0),
        Parameter(
            "neighbours",
            "tables that differ by one row more, or by one row replaced (twice the noise)",
            "text",
            "add",
            ("add", "replace"),
        ),
        *CUTS,
    ),
    layout=layout,
    release=release,
    needs=("qi", "sensitive"),
)
