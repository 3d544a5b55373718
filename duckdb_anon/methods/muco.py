"""MuCo: records of a group cover for one another by random output tables.

Releases every quasi-identifier value drawn from its record's row of a random output table; sensitive and
insensitive columns and the number of rows are untouched. Guarantee: every table satisfies
delta-probability, so that no record has more than the share delta in the mass of a published value of its
group, and no record keeps all its quasi-identifiers (except rows counted as stuck). Delta is not a bound on the
risk of re-identification: it bounds one attribute's table as if groups were known.

Source: Li et al. (2020), arXiv 2008.10771, sections 3 and 4. Departures: groups are cut where that saves most
(`cut := 'loss'`) instead of at medians; `balance` mixes the cheapest table with one that keeps each group's
histogram; records that drew nothing new exchange values within their group instead of being redrawn; all draws
come from one generator. Cost: O(n log n d) for the groups, then one small linear program for each distinct pattern
of gaps, solved together.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import Any

import numpy as np

from duckdb_anon.engine.interrupt import tick
from duckdb_anon.kernels.cover import Cover, cover
from duckdb_anon.kernels.cover.unchanged import randomize_unchanged
from duckdb_anon.kernels.groups import FrequencyDiversity, KAnonymity, Requirement, assign
from duckdb_anon.kernels.guarantees import every_column, joined
from duckdb_anon.methods.cuts import CUTS, cut_groups
from duckdb_anon.model import cells
from duckdb_anon.model.cells import Cells
from duckdb_anon.model.entries import REQUIRED, ColumnPlan, Ladder, Method, Parameter, Params, Report, Roles
from duckdb_anon.model.errors import ParameterError, RequirementError
from duckdb_anon.model.table import CodeArray, CodedTable, IntArray

PAPER = "Li, B., Li, Y., et al. (2020), arXiv 2008.10771"
GROUPING = (
    Parameter(
        "delta", "largest share of one record in a published value, in (0, 1]", "fraction", REQUIRED, high=1, above=0
    ),
    Parameter("l", "frequency l-diversity of the groups, at least 1/delta (default: ceil(1/delta))", "number", low=1),
    *CUTS,
    Parameter(
        "subdivide", "'assign' deals each group into small ones of distinct sensitive values", "text", "none",
        ("none", "assign"),
    ),
    Parameter(
        "balance", "0: least expected change; 1: each group's histogram is kept on average; in [0, 1]", "number", 0.75,
        low=0, high=1,
    ),
)  # fmt: skip


def refine(params: dict[str, Any]) -> dict[str, Any]:
    """Fill in l and check it against delta."""
    least = ceil(1 / params["delta"])
    if params["l"] is None:
        params["l"] = float(least)
    if params["l"] < 1 / params["delta"] - 1e-9:
        raise ParameterError(
            f"muco: l := {params['l']:g} is below 1/delta = {float(1 / params['delta']):g}; groups would be too small "
            f"for delta. Take l := {least} or more, or a larger delta"
        )
    return params


def groups_of(table: CodedTable, params: Params, function: str = "muco") -> IntArray:
    """Group of each row under the grouping parameters, shape (n,).

    Without a sensitive column the groups have at least ceil(l) rows; with several, each is l-diverse in every group.
    """
    # dealing needs whole numbers of different sensitive values
    least = float(ceil(params["l"])) if params["subdivide"] == "assign" else params["l"]
    sensitive: CodeArray | None = None
    requirement: Requirement = KAnonymity(ceil(least))
    if table.sensitive:
        sensitive, each = every_column(table.sensitive, lambda _: FrequencyDiversity(least))
        requirement = joined(each)
    try:
        groups = cut_groups(function, table.qi, sensitive, requirement, params)
    except RequirementError as error:
        most = table.rows / max((int(np.bincount(a.codes).max()) for a in table.sensitive), default=1)
        raise RequirementError(
            f"{error}; so l := {floor(most * 1000 + 1e-6) / 1000:g} and delta := 1/{max(1, floor(most))} are the "
            "strictest it can have"
        ) from error
    if params["subdivide"] == "assign":
        if sensitive is None or len(table.sensitive) > 1:
            raise ParameterError(
                f"{function}: subdivide := 'assign' deals by one sensitive column; name it in sensitive := '...'"
            )
        groups = assign(groups, sensitive, ceil(least))
    return groups


def covers(table: CodedTable, params: Params, groups: IntArray) -> list[Cover]:
    """Random output tables of each quasi-identifier, verified."""
    return [cover(attribute, groups, params["delta"], params["balance"], tick) for attribute in table.qi]


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Draw the released codes of every quasi-identifier; everything else passes through."""
    groups = groups_of(table, params)
    tables = covers(table, params, groups)
    drawn = [c.draw(rng) for c in tables]
    swap = params["unchanged"] == "exchange"
    published, _ = randomize_unchanged(tables, drawn, params["min_changed"], rng, exchange=swap, tick=tick)
    released: dict[str, Cells] = {
        a.name: cells.Coded(a.name, codes) for a, codes in zip(table.qi, published, strict=True)
    }
    released |= {a.name: cells.Coded(a.name, a.codes) for a in table.sensitive}
    released[cells.ROWS] = cells.Source(np.arange(table.rows, dtype=np.int64))
    return released


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Every column keeps its type: quasi-identifiers, sensitive, insensitive."""
    coded = tuple(ColumnPlan(info.name, cells.Coded) for info in roles.qi + roles.sensitive)
    return coded + tuple(ColumnPlan(info.name, cells.Source) for info in roles.keep)


def random_output_tables(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> dict[str, Any]:
    """The tables `muco` would draw from: one row for each group, attribute, original and output value."""
    table = tables[0]
    groups = groups_of(table, params, "muco_tables")
    every = covers(table, params, groups)
    parts = [c.table() for c in every]
    sizes = [len(part.probability) for part in parts]
    return {
        "group_id": np.concatenate([part.group for part in parts]),
        "attribute": np.repeat([a.name for a in table.qi], sizes),
        "original": np.concatenate([part.original for part in parts]),
        "output": np.concatenate([part.output for part in parts]),
        "probability": np.concatenate([part.probability for part in parts]),
        "records": np.concatenate([c.classes.count[c.row] for c in every]),
    }


METHOD = Method(
    name="muco",
    summary="quasi-identifiers drawn from random output tables; release has the original's types",
    paper=PAPER + ", sections 3-4",
    example="CREATE TABLE release AS FROM muco('people', 0.2, row_id := true)",
    smallest="0.2",
    parameters=(
        *GROUPING,
        Parameter(
            "min_changed",
            "quasi-identifiers that differ from the original in every row; 1.5 adds one in half of them",
            "number",
            1.0,
            low=0,
        ),
        Parameter(
            "unchanged",
            "rows that drew too few new values: 'exchange' them with others of the group, or 'redraw' as in the paper",
            "text",
            "exchange",
            ("exchange", "redraw"),
        ),
    ),
    layout=layout,
    release=release,
    refine=refine,
    ladders=(
        Ladder("delta := 1/{n}", (5, 7, 10)),
        Ladder("delta := 1/{n}, min_changed := 2", (5, 7, 10)),
    ),
)

TABLES = Report(
    name="muco_tables",
    summary="the random output tables muco would draw from; for the data holder, never for publication",
    paper=PAPER + ", section 3, definition 1",
    example="FROM muco_tables('people', 0.2) LIMIT 10",
    parameters=GROUPING,
    returns={
        "group_id": "BIGINT",
        "attribute": "VARCHAR",
        "original": "CODE",
        "output": "CODE",
        "probability": "DOUBLE",
        "records": "BIGINT",
    },
    compute=random_output_tables,
    refine=refine,
)
