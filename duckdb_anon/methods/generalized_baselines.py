"""What the methods that merging is compared with share: groups of a table or a sample, a box a group.

Source: Hasan, Jiang, Chen and Wang (2018, section 5) run their competitors on the same k-anonymous groups. Each module
adds its requirement on a group and what becomes of sensitive values. Cost: O(d n log n).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from duckdb_anon.kernels.guarantees.verify_release import recheck
from duckdb_anon.kernels.partition.generalize import boxes
from duckdb_anon.kernels.partition.interval_rounding import with_edges
from duckdb_anon.kernels.partition.privacy_models import PrivacyModel
from duckdb_anon.kernels.slicing.fake_records import of_records
from duckdb_anon.methods.generalized_layout import record_layout
from duckdb_anon.methods.partition_params import CUTS, EDGES, cut_groups
from duckdb_anon.model.coded_table import CodedTable, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import REQUIRED, ColumnPlan, Layout, Parameter, Params, Roles
from duckdb_anon.model.released_columns import Cells, Interval, Node, ValueSet


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
