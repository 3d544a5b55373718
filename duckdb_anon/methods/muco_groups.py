"""muco_groups: how many groups a call of muco makes, how large they are, and which rows it cannot do as it says.

Answers, for the data holder and before anything is released, one row of counts of the call's groups. Where all rows of
a group agree on every quasi-identifier, `as_they_were` of them are published so by the uniform tables. The paper's
tables (tables := 'linear') change `min_changed` quasi-identifiers of every row; rows of a group that varies on fewer
are stuck, and `moved` of them get the nearest value of the table, which no row of their group has: there delta bounds
nothing. A fraction of `min_changed` moves that share of the rows of groups that vary on one fewer, and is not counted.
Counts alone are told, but they are counts of the original: not for publication.

Source: Li et al. (2020), arXiv 2008.10771, algorithm 2, which does not say what becomes of stuck rows.
Cost: that of the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from duckdb_anon.kernels.random_output_tables.min_changed import require_movable
from duckdb_anon.methods.muco import GROUPING, METHOD, PAPER, groups_of, refine
from duckdb_anon.model.coded_table import CodedTable, IntArray
from duckdb_anon.model.function_specs import Params, Report

NAME = "muco_groups"
MIN_CHANGED = next(parameter for parameter in METHOD.parameters if parameter.name == "min_changed")


def varying(table: CodedTable, groups: IntArray) -> IntArray:
    """Number of quasi-identifiers with two values or more in each group, shape (groups,).

    Args:
        table: the coded table.
        groups: group of each row, 0-based, every one occupied, shape (n,).
    """
    many = int(groups.max(initial=-1)) + 1
    found = np.zeros(many, dtype=np.int64)
    for attribute in table.qi:
        some = np.zeros(many, dtype=np.int64)
        some[groups] = attribute.codes
        found += np.bincount(groups, weights=attribute.codes != some[groups], minlength=many) > 0
    return found


def count_groups(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> dict[str, Any]:
    """Groups of the call, their sizes, and rows that are not done as the others."""
    table = tables[0]
    groups = groups_of(table, params, NAME)
    sizes, varied = np.bincount(groups), varying(table, groups)
    linear = params["tables"] == "linear"
    if linear:
        require_movable(table.qi, params["min_changed"])
    moved = int(sizes[varied < int(params["min_changed"])].sum()) if linear else 0
    return {
        "rows": [table.rows],
        "groups": [len(sizes)],
        "smallest": [int(sizes.min(initial=table.rows))],
        "largest": [int(sizes.max(initial=0))],
        "as_they_were": [0 if linear else int(sizes[varied == 0].sum())],
        "moved": [moved],
    }


GROUPS = Report(
    name=NAME,
    summary="groups of a call of muco, rows that come out as they were, and rows moved outside their group",
    paper=PAPER + ", algorithm 2",
    example="FROM muco_groups('people', 0.2, tables := 'linear')",
    section="Preparing a call",
    smallest="delta := 0.5",
    instead=("muco",),
    parameters=(*GROUPING, MIN_CHANGED),
    returns=dict.fromkeys(("rows", "groups", "smallest", "largest", "as_they_were", "moved"), "BIGINT"),
    compute=count_groups,
    refine=partial(refine, function=NAME),
)
