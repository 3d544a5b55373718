"""Which columns a sliced release has, known before any row is read.

`bucket`, then one STRUCT a column of the table; a field keeps its attribute's type, or is a box where its
cells may be generalized. Cost: none that depends on the table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from duckdb_anon.kernels.slicing.generalized_layout import box_plans
from duckdb_anon.kernels.slicing.slice_layout import Grouping
from duckdb_anon.model.function_specs import ColumnInfo, ColumnPlan, Parameter, Roles
from duckdb_anon.model.release_formats import BUCKET
from duckdb_anon.model.released_columns import Source, Struct, Whole

COLUMNS = (
    Parameter(
        "columns",
        "attributes that stay together, [['age', 'sex'], ['zip']]; by default found by association (k-medoids on "
        "1 - phi squared)",
    ),
    Parameter("column_count", "number of columns to find", "integer", 2, low=1),
    Parameter(
        "bins", "intervals an ordered attribute is cut into when measuring association", "integer", 10, low=1, high=1000
    ),
)


def sliced_layout(
    function: str, roles: Roles, grouping: Grouping, boxed: Collection[str] = ()
) -> tuple[ColumnPlan, ...]:
    """Plan the columns of a sliced release.

    Args:
        function: SQL function, for messages.
        roles: columns by role.
        grouping: which attributes share a column.
        boxed: attributes whose cells may be generalized.

    Raises:
        ColumnError: the kind of a boxed attribute is not visible to the planner.
    """
    infos = {info.name: info for info in roles.qi + roles.sensitive}
    plans = [ColumnPlan(BUCKET.key, Whole)]
    for name, column in grouping.named().items():
        fields = tuple(_field(function, infos[a], name, a in boxed) for a in column)
        plans.append(ColumnPlan(name, Struct, fields=fields))
    plans += [ColumnPlan(info.name, Source, frame="keep") for info in roles.keep]
    return tuple(plans)


def _field(function: str, info: ColumnInfo, column: str, boxed: bool) -> ColumnPlan:
    if not boxed:
        return ColumnPlan(info.name, Source, frame=f"column {column}")
    (box,) = box_plans(function, [info])
    return replace(box, frame=f"attribute {info.name}")
