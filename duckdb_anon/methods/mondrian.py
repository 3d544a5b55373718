"""Mondrian: the table is cut into groups, and each group is published as a box around it.

Quasi-identifiers become intervals, sets of values or hierarchy nodes; sensitive and insensitive columns are unchanged,
and no record is left out. Guarantee: every equivalence class satisfies the required k-anonymity, l-diversity and
t-closeness, checked once more on the finished boxes. l bounds the share of a value in a class, not what can be inferred
from other classes (`attribute_risk`); 1/k, not what a model of the sensitive values adds (`linkage_risk`, `smallest`).
With `delta` classes have at least 2 / delta records, where that attacker was measured to stay within delta.
Ends of intervals are rounded so that they do not reveal a single value (`kernels.partition.interval_rounding`); sets
print the values that occur. With a person column all requirements count individuals, l also records, and none has more
than 1/k (1/l) of a class's records. Individuals whose quasi-identifiers change may have several boxes.

Source: LeFevre, DeWitt and Ramakrishnan (2006), strict and relaxed. Departures: each cut takes the attribute and point
that save most of the normalized certainty penalty (Xu et al. 2006; `cut := 'median'` is the paper's); NULL is a value
of its own, and a group with NULL and values is published as an interval without ends.
Cost: O(n log n) an attribute and level of cuts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duckdb_anon.kernels.partition.generalize import boxes
from duckdb_anon.kernels.partition.interval_rounding import with_edges
from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.verify_release import recheck
from duckdb_anon.methods.generalized_layout import record_layout
from duckdb_anon.methods.partition_params import (
    BOX_MARGIN,
    EDGES,
    GUARANTEE_TRIALS,
    WIDTHS,
    least_size,
    unchanged,
)
from duckdb_anon.methods.privacy_spec import parameters_of_guarantee, required_model
from duckdb_anon.methods.privacy_spec import refine as refine_guarantee
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import ColumnPlan, Cutting, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.progress import tick
from duckdb_anon.model.released_columns import Cells

NAME = "mondrian"


def refine(params: dict[str, Any]) -> dict[str, Any]:
    """Fill in the cut, and check parameters that must fit together."""
    if params["cut"] is None:
        medians = params["mode"] == "relaxed" or params["width"] is not None
        params["cut"] = "median" if medians else "loss"
    if params["mode"] == "relaxed" and params["cut"] == "loss":
        raise ParameterError(
            "mondrian: mode := 'relaxed' deals equal values to both sides of a median; say cut := 'median' with it"
        )
    params["width"] = params["width"] or "range"
    if params["delta"] is not None:
        params["k"] = max(params["k"] or 1, least_size(params, BOX_MARGIN))
    return refine_guarantee(NAME, params)


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Cut the table and publish a box a group."""
    person = table.repeated_person
    requirement, sensitive = required_model(NAME, table, params, persons=person is not None)
    group = partition(
        table.qi,
        sensitive,
        requirement,
        person=person,
        cut=params["cut"],
        width=params["width"],
        mode=params["mode"],
        tick=tick,
        function=NAME,
    )
    published: dict[str, Cells] = {**with_edges(table, boxes(table.qi, group), params, person)}
    recheck(NAME, list(published.values()), sensitive, np.arange(table.rows), requirement, person)
    return published | unchanged(table)


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """A box a quasi-identifier; sensitive and insensitive columns keep their types."""
    return record_layout(NAME, roles)


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """Similar rows together."""
    return Cutting("cut", *required_model(NAME, table, params, persons=repeated))


METHOD = Method(
    name=NAME,
    summary="k-anonymity, l-diversity, t-closeness by local recoding into intervals, sets or hierarchy "
"nodes",
    paper="LeFevre, K., DeWitt, D. J., Ramakrishnan, R. (2006), Mondrian multidimensional k-anonymity",
    example="CREATE TABLE boxes AS FROM mondrian('people', 5, l := 3, row_id := true)",
    smallest="k := 2",
    trials=(
        *GUARANTEE_TRIALS,
        "t := 0.3, distance := 'equal'",
        "delta := 0.5",
        "k := 2, mode := 'relaxed'",
        "k := 2, cut := 'median'",
        "k := 3, l := 2, cut := 'median', width := 'spread'",
    ),
    formats=("boxes",),
    parameters=(
        *parameters_of_guarantee("frequency"),
        Parameter(
            "delta", "maximum probability of re-identifying a record, in (0, 1], for an attacker who knows everybody's "
"quasi-identifiers and learns the sensitive values: measured, not proven; k is at least 2/delta", "fraction",
            high=1, above=0,
        ),
        Parameter(
            "mode", "'strict' keeps equal values on one side of a cut; 'relaxed' splits them at the median", "text",
            "strict", ("strict", "relaxed"),
        ),
        Parameter(
            "cut", "'loss': cut where information loss falls most; 'median': widest attribute at its median (default: "
"loss; median where mode is relaxed or width is given)", "text", None, ("loss", "median"),
        ),
        Parameter(
            "width", "attribute that a median cut takes first: by range (default), distinct values or squared spread",
            "text", None, WIDTHS,
        ),
        EDGES,
    ),
    layout=layout,
    release=release,
    refine=refine,
    unit="person",
    sweeps=(Sweep("k := {n}, l := {l}", (5, 10, 25)),),
    parts=parts,
    finished=("rows", "classes", "diverse"),
)  # fmt: skip
