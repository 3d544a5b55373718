"""Generalized releases of the methods that merging is compared with: a box a group, sensitive values beside.

The groups come from `partition`; here is what they have in common: which columns they release, and taking a
random sample. Cost: linear in the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.cells import Cells, Coded, Interval, Node, Real, Source, ValueSet
from duckdb_anon.errors import ColumnError, RequirementError, listed
from duckdb_anon.partition import boxes
from duckdb_anon.slices.fakes import taken
from duckdb_anon.spec import ColumnInfo, ColumnPlan, Roles
from duckdb_anon.table import CodedTable, IntArray

_BOX: dict[str, type[Cells]] = {"ordered": Interval, "nominal": ValueSet, "hierarchy": Node}


def box_plans(function: str, infos: Sequence[ColumnInfo]) -> tuple[ColumnPlan, ...]:
    """Plan one box a quasi-identifier.

    Raises:
        ColumnError: the kind of a column is not visible to the planner.
    """
    unseen = [info.name for info in infos if info.kind not in _BOX]
    if unseen:
        raise ColumnError(
            f"{function}: the types of {listed(unseen)} are not visible while the call is planned, so their boxes "
            "cannot be typed; use a committed table, or say categorical := [...] or hierarchies := ..."
        )
    return tuple(ColumnPlan(info.name, _BOX[info.kind]) for info in infos)


def record_layout(function: str, roles: Roles, constants: Sequence[str]) -> tuple[ColumnPlan, ...]:
    """Plan a release of one row a record: boxes, sensitive columns, insensitive ones, constants."""
    return (
        *box_plans(function, roles.qi),
        *(ColumnPlan(info.name, Coded) for info in roles.sensitive),
        *(ColumnPlan(info.name, Source) for info in roles.keep),
        *(ColumnPlan(name, Real) for name in constants),
    )


def cell_layout(function: str, roles: Roles) -> tuple[ColumnPlan, ...]:
    """Plan a release of noisy counts: boxes, one sensitive column, `noisy_count`.

    Raises:
        ColumnError: insensitive columns belong to rows, and no rows are released.
    """
    if roles.keep:
        raise ColumnError(
            f"{function}: {listed(info.name for info in roles.keep)} belong to rows, but counts are released; say "
            "keep := [] to leave them out"
        )
    return (
        *box_plans(function, roles.qi),
        *(ColumnPlan(info.name, Coded) for info in roles.sensitive),
        ColumnPlan("noisy_count", Real),
    )


def sampled_rows(function: str, rows: int, rate: float, rng: np.random.Generator) -> IntArray:
    """Draw each row with probability `rate`.

    Raises:
        RequirementError: no row was drawn.
    """
    drawn = np.flatnonzero(rng.random(rows) < rate).astype(np.int64)
    if len(drawn) == 0:
        raise RequirementError(f"{function}: a sample at rate {rate:g} of {rows} rows came out empty; raise the rate")
    return drawn


def boxed_cells(table: CodedTable, group_of_record: IntArray, index: IntArray, rows: IntArray) -> dict[str, Cells]:
    """Tight boxes of the groups on every quasi-identifier.

    Args:
        table: the source table.
        group_of_record: group of each record, shape (records,).
        index: group of each released row.
        rows: source row of each record.
    """
    return {**boxes((taken(a, rows) for a in table.qi), group_of_record, index)}
