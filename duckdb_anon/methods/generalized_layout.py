"""Planned columns of a generalized release: a box per quasi-identifier, then sensitive values, counts or lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from duckdb_anon.kernels.partition.generalize import boxes
from duckdb_anon.kernels.partition.interval_rounding import with_edges
from duckdb_anon.kernels.partition.privacy_models import PrivacyModel
from duckdb_anon.kernels.slicing.fake_records import of_records
from duckdb_anon.kernels.verify_release import recheck
from duckdb_anon.methods.partition_params import CUTS, EDGES, cut_groups
from duckdb_anon.model.coded_table import CodedTable, IntArray
from duckdb_anon.model.errors import ColumnError, RequirementError, listed
from duckdb_anon.model.function_specs import REQUIRED, ColumnInfo, ColumnPlan, Layout, Parameter, Params, Roles
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


def parameters(*more: Parameter) -> tuple[Parameter, ...]:
    """Parameters of a method on k-anonymous groups: k, its own, how groups are cut, and the ends of their boxes."""
    return (Parameter("k", "minimum number of records per group", "integer", REQUIRED, low=1), *more, *CUTS, EDGES)


def layout_of(name: str, columns: Callable[[str, Roles], tuple[ColumnPlan, ...]] = record_layout) -> Layout:
    """A layout that first checks that there is one sensitive column."""

    def checked(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
        roles.one_sensitive(name)
        return columns(name, roles)

    return checked


def sampled_rows(function: str, rows: int, rate: float, rng: np.random.Generator) -> IntArray:
    """Draw each row with probability `rate`."""
    drawn = np.flatnonzero(rng.random(rows) < rate).astype(np.int64)
    if len(drawn) == 0:
        raise RequirementError(f"{function}: a sample at rate {rate:g} of {rows} rows came out empty; raise the rate")
    return drawn


def boxed_groups(
    function: str, table: CodedTable, rows: IntArray, requirement: PrivacyModel, params: Params
) -> tuple[IntArray, dict[str, Interval | ValueSet | Node]]:
    """Cut rows of a table into groups and put a box around each."""
    qi = tuple(of_records(a, rows) for a in table.qi)
    sensitive = table.sensitive[0].codes[rows]
    group = cut_groups(function, qi, sensitive, requirement, params)
    published = with_edges(table, boxes(qi, group), params, table.repeated_person)
    cells: list[Cells] = list(published.values())
    recheck(function, cells, sensitive, np.arange(len(rows), dtype=np.int64), requirement)
    return group, published
