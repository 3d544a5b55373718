"""Layouts: the released columns of a call, planned once and carried to where they are filled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from duckdb_anon.model import released_columns as c
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import ColumnInfo, ColumnPlan, Method, Params, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import EDGES, SOURCE
from duckdb_anon.model.release_formats.duckdb_types import is_boolean, is_integer, is_moment, is_text


def layout_of(entry: Method, roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Released columns of a call, what `sensitive_edges` were and `row_id` last when asked for.

    Args:
        entry: the function that is called.
        roles: columns by role.
        params: checked parameters of the call.
    """
    layout = entry.layout(roles, params)
    if params.get(EDGES.word) is not None:
        layout += (ColumnPlan(EDGES.key, c.Whole),)
    if params["row_id"]:
        layout += (ColumnPlan(SOURCE.key, c.Source, "_anon_rn", frame=SOURCE.key),)
    names = [fold(plan.name) for plan in layout]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ColumnError(f"{entry.name}: two released columns would be called {', '.join(twice)}; rename the source's")
    return layout


def layout_told(layout: Sequence[ColumnPlan]) -> list[dict[str, Any]]:
    """A layout as the planned call carries it, so that it is planned once."""
    return [{**vars(plan), "cells": plan.cells.__name__, "fields": layout_told(plan.fields)} for plan in layout]


def layout_from(told: Sequence[Mapping[str, Any]]) -> tuple[ColumnPlan, ...]:
    """The layout that `layout_told` has written.

    >>> plan = ColumnPlan("a", c.Struct, fields=(ColumnPlan("b", c.Coded),))
    >>> layout_from(layout_told([plan])) == (plan,)
    True
    """
    return tuple(
        ColumnPlan(**{**plan, "cells": getattr(c, plan["cells"]), "fields": layout_from(plan["fields"])})
        for plan in told
    )


def looked_up(layout: Sequence[ColumnPlan], infos: Iterable[ColumnInfo]) -> tuple[str, ...]:
    """Coded columns that are released as they are, and whose codes say all of a value: no join need bring it back.

    Args:
        layout: the released columns.
        infos: the coded columns.
    """
    plans = [part for plan in layout for part in (plan, *plan.fields) if part.cells is not c.Struct]
    changed = {plan.column or plan.name for plan in plans if plan.cells is not c.Source}
    return tuple(
        info.name
        for info in infos
        if info.name not in changed and not info.hierarchy
        # 0.0 and -0.0 have one code; of other types a code may stand for several texts
        if is_integer(info.type) or is_moment(info.type) or is_text(info.type) or is_boolean(info.type)
    )


def length(cells: Any) -> int:
    """Number of released rows of some cells."""
    if isinstance(cells, c.Struct):
        return length(next(iter(cells.fields.values())))
    per_row = {c.Source: "rows", c.Coded: "codes", c.Whole: "values", c.Real: "values"}.get(type(cells), "index")
    return len(vars(cells)[per_row])
