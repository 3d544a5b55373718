"""MuCo: records of a group cover for one another by random output tables.

Releases every quasi-identifier permuted inside groups of at least 1/delta rows that resemble one another;
sensitive and insensitive columns stay with their rows, and every column keeps its values and its type. That is a draw
from uniform random output tables, in which each record has the share 1 / |group| <= delta of every value.
Guarantee: with `repair := false` an attacker who knows the method, the groups and all quasi-identifiers of everybody
finds a person's row with probability 1 / |group|, at most delta. By default cells are then exchanged inside groups
until what three columns tell together is nearly what the table says. That raised her chance by .002 to .016 on four
tables, so groups that are repaired have one row more, ceil(1/delta) + 1 (where the table has as many): she stayed below
delta on all four at 1/5 to 1/30, which is no theorem. Mean of three seeds (`examples/studies/frontier.py`) at delta
1/10 and 1/20, all 7 quasi-identifiers known: who also knows the groups finds .079 and .042 of the rows of census (.068
and .035 are one in a group), .055 and .035 of adult's (.046 and .028); who does not, .072 and .036, and .051 and .035.
Each sensitive column is frequency l-diverse in every group. A quasi-identifier
tuple may come out as it was: the bound is on linking it to a person, not on its being seen.

Groups are often larger still, for cuts never separate equal values: at delta 1/10 one in a group is .068 on census,
.046 on adult, .040 on fair and .035 on randhie (two tables of statsmodels). So the risk is less than asked for, and the
error that of the larger groups: .190 on fair and .379 on randhie where groups of exactly 10 (MDAV, columns permuted, no
l) have .165 and .156, at an insider's .103 and .099 against .043 and .038. Who may spend all of delta asks for a larger
one on such tables: `muco_groups` tells the sizes.

Where a column says whose row it is, groups hold whole persons: at least 1/delta of them, none with more than the share
delta of the group's rows, so that a row said to be hers is hers with that probability; of her attributes that change,
the median or most frequent value decides her group. l counts persons and rows: no value is had by more than 1/l of the
persons, nor shown in more than 1/l of the rows. What is constant over a person's rows (sex, birth year) is permuted row
by row, for no released column says which rows are one person's. Who has many rows has many values: what is known of
all her rows together is not bounded by l.

Source: Li et al. (2020), arXiv 2008.10771, sections 3 and 4; their own tables, which change values as little as delta
allows, are `tables := 'linear'` (see `linear_tables`). Departures: least change is not least error at equal risk, so
the tables are uniform, drawn without replacement; groups are cut by squared error (`kernels.partition.sse_split`).
Cost: O(n log n) times the quasi-identifiers, and as much for the repair.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import ceil, floor
from typing import Any

import numpy as np

from duckdb_anon.kernels.guarantees import every_column, joined
from duckdb_anon.kernels.partition import FrequencyDiversity, KAnonymity, PersonShare, Requirement, sse_partition
from duckdb_anon.kernels.partition.person_level import diverse_persons
from duckdb_anon.kernels.permutation import permuted, permuted_codes, repaired
from duckdb_anon.kernels.random_output_tables import MutualCover, uniform_cover
from duckdb_anon.kernels.thread_pool import side_by_side
from duckdb_anon.methods import muco_lp
from duckdb_anon.methods.partition_params import cutting, whole_persons_by
from duckdb_anon.model import progress, released_columns
from duckdb_anon.model.coded_table import CodeArray, CodedTable, IntArray
from duckdb_anon.model.errors import ParameterError, RequirementError
from duckdb_anon.model.function_specs import (
    REQUIRED,
    ColumnPlan,
    Cutting,
    Method,
    Parameter,
    Params,
    Report,
    Roles,
    Sweep,
)
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_comment import argument_text
from duckdb_anon.model.released_columns import Cells

PAPER = "Li, B., Li, Y., et al. (2020), arXiv 2008.10771"
DEFAULT_L = 2.0
LINEAR = (
    Parameter("cut", "linear: 'loss' (default) cuts where boxes would save most, 'median' as Mondrian", "text", None,
              ("loss", "median")),
    Parameter("width", "linear: attribute a median cut takes first: 'range' (default), distinct values or squared "
              "spread", "text", None, ("range", "distinct", "spread")),
    Parameter("subdivide", "linear: 'assign' deals each group into small ones of distinct sensitive values (default: "
              "'none')", "text", None, ("none", "assign")),
    Parameter("balance", "linear: 0 least expected change, 1 each group's histogram kept on average; in [0, 1] "
              "(default: 0.75)", "number", None, low=0, high=1),
)  # fmt: skip
GROUPING = (
    Parameter(
        "delta", "largest share of one record in a published value, in (0, 1]; groups have at least 1/delta rows "
        "(persons, where a column says whose row it is)", "fraction", REQUIRED, high=1, above=0,
    ),
    Parameter("l", "frequency l-diversity of each sensitive column in the groups (default: 2; linear: ceil(1/delta), "
              "which is the least)", "number", low=1),
    Parameter("tables", "'uniform': columns permuted inside groups; 'linear': the paper's tables of least expected "
              "change", "text", "uniform", ("uniform", "linear")),
    *LINEAR,
    Parameter(
        "repair", "exchange cells inside groups, of one row (person) more, until marginals of three columns fit; "
        "false: delta is exact (default: true)", "boolean",
    ),
)  # fmt: skip


def refine(params: dict[str, Any], function: str = "muco") -> dict[str, Any]:
    """Check parameters that must fit together, and fill in those of the paper's tables."""
    if params["tables"] == "linear":
        if params.get("repair") is not None:
            raise ParameterError(f"{function}: repair belongs to tables := 'uniform'; leave it out")
        return muco_lp.refine(params)
    for name in muco_lp.DEFAULTS:
        if params.get(name) is not None:
            raise ParameterError(
                f"{function}: {name} := {argument_text(params[name])} belongs to the paper's random output tables; say "
                "tables := 'linear' with it, or leave it out"
            )
    if params["repair"] is None:
        params["repair"] = True
    return params


def least_size(params: Params) -> int:
    """Rows (persons) of a group of the uniform tables, at least.

    The repair takes some of what permuting gives, so groups that are repaired have one more.

    Args:
        params: delta and repair.

    >>> [least_size({"delta": 0.1, "repair": repair}) for repair in (True, False)]
    [11, 10]
    """
    least: int = ceil(1 / params["delta"])
    return least + 1 if least > 1 and params["repair"] else least


def required(table: CodedTable, params: Params, least: int, *, persons: bool) -> tuple[Requirement, CodeArray | None]:
    """What every group must satisfy, and the sensitive codes that are read for it.

    Args:
        table: the table; its sensitive columns are read.
        params: delta and l.
        least: rows (persons) of a group.
        persons: whether somebody has several rows.
    """
    parts: list[Requirement] = [KAnonymity(least)]
    if persons:
        parts.append(PersonShare(float(1 / params["delta"])))
    least_l = DEFAULT_L if params["l"] is None else params["l"]
    if not table.sensitive or least_l <= 1:
        return joined(parts), None
    diverse = diverse_persons(least_l) if persons else FrequencyDiversity(least_l)
    sensitive, each = every_column(table.sensitive, lambda _: diverse)
    return joined([*parts, *each]), sensitive


def groups_of(table: CodedTable, params: Params, function: str = "muco") -> IntArray:
    """Group of each row under the grouping parameters, shape (n,).

    Args:
        table: the coded table.
        params: checked parameters of the call.
        function: SQL function, for messages.

    Raises:
        RequirementError: the table has too few rows for delta, or one sensitive value too often for l.
    """
    if params["tables"] == "linear":
        return muco_lp.groups_of(table, params, function)
    person = table.repeated_person
    # a table of just as many as delta asks for is one group, which cannot have one more
    members = table.rows if person is None else len(np.unique(person))
    least = max(ceil(1 / params["delta"]), min(least_size(params), members))
    requirement, sensitive = required(table, params, least, persons=person is not None)
    try:
        return sse_partition(table.qi, sensitive, requirement, person=person, tick=tick, function=function)
    except RequirementError as error:
        if person is not None:
            raise
        most = table.rows / max((int(np.bincount(a.codes).max()) for a in table.sensitive), default=1)
        if table.rows < ceil(1 / params["delta"]):
            raise RequirementError(f"{error}; delta := 1/{table.rows} is the strictest it can have") from error
        reached = f"l := {floor(most * 1000 + 1e-6) / 1000:g}, or " if most > 1 else ""
        raise RequirementError(f"{error}; say {reached}l := 1 to leave sensitive values as they fall") from error


def covers(table: CodedTable, params: Params, groups: IntArray) -> list[MutualCover]:
    """Random output tables of each quasi-identifier, verified.

    Args:
        table: the coded table.
        params: checked parameters of the call.
        groups: group of each row.
    """
    if params["tables"] == "linear":
        return muco_lp.covers(table, params, groups)
    return [uniform_cover(attribute, groups, params["delta"]) for attribute in table.qi]


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Draw the released codes of every quasi-identifier; everything else passes through."""
    published = muco_lp.drawn(table, params, rng) if params["tables"] == "linear" else _permuted(table, params, rng)
    released: dict[str, Cells] = {
        a.name: released_columns.Coded(a.name, codes) for a, codes in zip(table.qi, published, strict=True)
    }
    released |= {a.name: released_columns.Coded(a.name, a.codes) for a in table.sensitive}
    released[released_columns.ROWS] = released_columns.Source(np.arange(table.rows, dtype=np.int64))
    return released


def _permuted(table: CodedTable, params: Params, rng: np.random.Generator) -> list[CodeArray]:
    """Codes of each quasi-identifier, permuted inside groups and, where asked for, repaired."""
    progress.say("groups")
    groups = groups_of(table, params)
    source = permuted(groups, len(table.qi), rng)
    if params["repair"]:
        progress.say("repair")
        source = repaired(table.qi, table.sensitive, groups, source, rng)

    def taken(q: int) -> CodeArray:
        codes = permuted_codes(table.qi[q].codes, source[q], groups)
        if codes is None:
            raise RequirementError(
                "muco: a column left its groups; nothing is released. This is an error of the package, not of the call"
            )
        return codes

    return side_by_side(taken, range(len(table.qi)))


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Every column keeps its type: quasi-identifiers, sensitive, insensitive."""
    coded = tuple(ColumnPlan(info.name, released_columns.Coded) for info in roles.qi + roles.sensitive)
    return coded + tuple(ColumnPlan(info.name, released_columns.Source) for info in roles.keep)


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """As groups are cut."""
    if params["tables"] == "linear":
        return cutting(params, *muco_lp.required(table, params))
    if repeated:
        return whole_persons_by("sse", max(least_size(params), DEFAULT_L if params["l"] is None else params["l"]))
    return Cutting("sse", *required(table, params, least_size(params), persons=False))


def random_output_tables(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> dict[str, Any]:
    """The tables `muco` would draw from: one row for each group, attribute, original and output value."""
    table = tables[0]
    groups = groups_of(table, params, "muco_tables")
    parts = [attribute.table() for attribute in covers(table, params, groups)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return columns | {"attribute": np.repeat([a.name for a in table.qi], [len(part["records"]) for part in parts])}


METHOD = Method(
    name="muco",
    summary="quasi-identifiers permuted inside groups of similar rows; release has the original's types",
    paper=PAPER + ", sections 3-4",
    example="CREATE TABLE release AS FROM muco('people', 0.2, row_id := true)",
    smallest="delta := 0.2",
    trials=(
        "delta := 1.0", "delta := 0.34, l := 1", "delta := 0.2, l := 3", "delta := 0.5, repair := false",
        "delta := 0.5, tables := 'linear'", "delta := 0.34, l := 3, tables := 'linear'",
    ),
    formats=("rows",),
    parameters=(
        *GROUPING,
        Parameter(
            "min_changed", "linear: quasi-identifiers that differ from the original in every row; 1.5 adds one in half "
            "of them (default: 1)", "number", low=0,
        ),
        Parameter(
            "unchanged", "linear: rows that drew too few new values: 'exchange' them with others of the group "
            "(default), or 'redraw' as in the paper", "text", None, ("exchange", "redraw"),
        ),
    ),
    layout=layout,
    release=release,
    moves_values=True,
    refine=refine,
    unit="person",
    sweeps=(Sweep("delta := 1/{n}", (5, 10, 20)),),
    parts=parts,
    finished=("rows", "values"),
)  # fmt: skip

TABLES = Report(
    name="muco_tables",
    summary="the random output tables muco would draw from; for the data holder, never for publication",
    paper=PAPER + ", section 3, definition 1",
    example="FROM muco_tables('people', 0.2) LIMIT 10",
    section="Preparing a call",
    smallest="delta := 0.5",
    instead=("muco",),
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
    refine=partial(refine, function="muco_tables"),
)
