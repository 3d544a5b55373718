"""Planned columns of a generalized release: a box per quasi-identifier, then sensitive values, counts or lists."""

from __future__ import annotations

from collections.abc import Sequence

from duckdb_anon.model.errors import ColumnError, listed
from duckdb_anon.model.function_specs import ColumnInfo, ColumnPlan, Params, Roles
from duckdb_anon.model.quoting import literal
from duckdb_anon.model.release_formats import COUNT
from duckdb_anon.model.released_columns import Cells, Coded, Interval, Node, NodeSet, Real, Source, ValueSet, Whole

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


def layout_of_persons(function: str, roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Return the released columns: boxes, then the sensitive lists; exploded, the person's number first.

    Raises:
        ColumnError: for columns that belong to rows rather than persons, or a column without the hierarchy
            or the visible type that the release needs.
    """
    if roles.keep:
        raise ColumnError(
            f"{function}: {listed(c.name for c in roles.keep)} belong to rows, but one row per person is released; "
            "say keep := [] to leave them out"
        )
    flat = [c.name for c in roles.sensitive if c.kind != "hierarchy"]
    if flat:
        raise ColumnError(
            f"{function}: sensitive values are generalized along a hierarchy, and {listed(flat)} has none; "
            f"say hierarchies := {{{literal(flat[0])}: 'its_hierarchy_table'}}"
        )
    boxes = box_plans(function, roles.qi)
    cells: type[Cells] = Node if params["explode"] else NodeSet
    lists = tuple(ColumnPlan(info.name, cells) for info in roles.sensitive)
    if params["explode"] and roles.person is not None:
        return (ColumnPlan(roles.person.name, Whole), *boxes, *lists)
    return (*boxes, *lists)
