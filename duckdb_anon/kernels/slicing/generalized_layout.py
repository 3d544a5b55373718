"""Planned columns of a generalized release: a box per quasi-identifier, then sensitive values or their noisy counts."""

from __future__ import annotations

from collections.abc import Sequence

from duckdb_anon.model.errors import ColumnError, listed
from duckdb_anon.model.function_specs import ColumnInfo, ColumnPlan, Roles
from duckdb_anon.model.release_formats import COUNT
from duckdb_anon.model.released_columns import Cells, Coded, Interval, Node, Real, Source, ValueSet, Whole

_BOX: dict[str, type[Cells]] = {"ordered": Interval, "nominal": ValueSet, "hierarchy": Node}


def box_plans(function: str, infos: Sequence[ColumnInfo]) -> tuple[ColumnPlan, ...]:
    """Plan one box per quasi-identifier.

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


def record_layout(function: str, roles: Roles, constants: Sequence[str] = ()) -> tuple[ColumnPlan, ...]:
    """Plan a release of one row per record: boxes, sensitive columns, insensitive ones, constant columns."""
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
        ColumnPlan(COUNT.key, Whole),
    )
