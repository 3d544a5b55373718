"""Mutual cover: quasi-identifiers are permuted inside groups of similar records.

Every column keeps its values and its type; sensitive and insensitive columns stay with their records. A permutation is
a draw from uniform random output tables: each record has the share 1 / |group| of every published value of its group.
Guarantee: an attacker who knows the method, the groups and all quasi-identifiers re-identifies a record with
probability 1 / |group| where the sensitive value is independent of the quasi-identifiers inside the group and nothing
is repaired. Otherwise a model of the sensitive values says more, so groups have at least 1.6 / delta records, with
which the attacker stays at delta in measurements (docs/threat_model.md), which is no proof. Each sensitive column is
frequency l-diverse in every group. With a person column, groups hold all records of as many individuals, none with
more than the share delta of the records, and l counts individuals and records; values that are constant over an
individual's records are permuted record by record, and what is known of all of them together is not bounded by l.

Source: Li et al. (2020), arXiv 2008.10771, sections 3 and 4. Departures: the tables are uniform, and groups are cut by
squared error, that of sensitive columns too, never between equal values, so they are often larger than needed
(`muco_groups` counts them); `tables := 'linear'` is the paper's algorithm (`muco_lp`).
Cost: O(n log n) times the quasi-identifiers, and as much for the repair.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import ceil, floor
from typing import Any

import numpy as np

from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.partition.privacy_models import (
    FrequencyDiversity,
    KAnonymity,
    PersonShare,
    PrivacyModel,
    diverse_persons,
)
from duckdb_anon.kernels.partition.structural_values import rows_alone, structural
from duckdb_anon.kernels.permutation.marginal_calibration import repaired
from duckdb_anon.kernels.permutation.permute_within_groups import permuted, permuted_codes
from duckdb_anon.kernels.random_output_tables.min_changed import require_movable
from duckdb_anon.kernels.random_output_tables.output_tables import MutualCover, uniform_cover
from duckdb_anon.kernels.thread_pool import parallel_map
from duckdb_anon.methods import muco_lp
from duckdb_anon.methods.partition_params import cut_by_person, least_size, plain_layout, unchanged
from duckdb_anon.methods.privacy_spec import all_of, every_column
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import Attribute, CodeArray, CodedTable, IntArray
from duckdb_anon.model.errors import ParameterError, RequirementError
from duckdb_anon.model.function_specs import REQUIRED, Cutting, Method, Parameter, Params, Report, Roles, Sweep
from duckdb_anon.model.progress import tick
from duckdb_anon.model.quoting import literal, quoted
from duckdb_anon.model.released_columns import Cells, Coded

PAPER = "Li, B., Li, Y., et al. (2020), arXiv 2008.10771"
DEFAULT_L = 2.0
GROUPING = (
    Parameter(
        "delta", "maximum probability of re-identifying a record, in (0, 1], for an attacker who knows the groups: "
"exact where the sensitive value is independent of the quasi-identifiers inside the group, measured otherwise. Groups "
"have at least 1.6/delta records (individuals, where there is a person column)", "fraction", REQUIRED, high=1, above=0,
    ),
    Parameter("l", "frequency l-diversity of each sensitive column in the groups (default: 2, but for structural "
"values; linear: ceil(1/delta), the minimum)", "number", low=1),
    Parameter("tables", "'uniform': columns are permuted inside groups; 'linear': the paper's tables of least "
"expected change", "text", "uniform", ("uniform", "linear")),
    Parameter(
        "repair", "exchange cells inside groups until counts of three columns, and sums of numeric sensitive columns "
"in cells of three, fit (default: true)", "boolean",
    ),
)  # fmt: skip
STRUCTURAL = "structural"
L_EXCEPT = Parameter(
    "l_except", "sensitive values, as text, that l does not bound; [] for none. 'structural': those that a part of the "
"table has alone, as a wage of 0 of children, or that are more frequent than l allows (`structural_values` lists "
"them); the default where l is left out, and there is no person column", "values",
)  # fmt: skip
MIN_CHANGED = Parameter(
    "min_changed", "linear: number of quasi-identifiers that differ from the original in every record; 1.5 means "
"2 in half of them (default: 1)", "number", low=0,
)  # fmt: skip


def refine(params: dict[str, Any], function: str = "muco") -> dict[str, Any]:
    """Check parameters that must fit together, and fill in those of the paper's tables."""
    if params["tables"] == "linear":
        for name in ("repair", "l_except"):
            if params.get(name) is not None:
                raise ParameterError(f"{function}: {name} belongs to tables := 'uniform'; leave it out")
        return muco_lp.refine(params)
    if params.get("min_changed") is not None:
        raise ParameterError(
            f"{function}: min_changed := {literal(params['min_changed'])} belongs to the paper's random output tables; "
            "say tables := 'linear' with it, or leave it out"
        )
    if params["repair"] is None:
        params["repair"] = True
    if params["l_except"] is None:
        params["l_except"] = [STRUCTURAL] if params["l"] is None else []
    if params["l"] is None:
        params["l"] = DEFAULT_L
    return params


def required(table: CodedTable, params: Params, least: int, *, persons: bool) -> tuple[PrivacyModel, CodeArray | None]:
    """What every group must satisfy, and the sensitive codes that are read for it."""
    parts: list[PrivacyModel] = [KAnonymity(least)]
    if persons:
        parts.append(PersonShare(float(1 / params["delta"])))
    least_l = l_of(params)
    if not table.sensitive or least_l <= 1:
        return all_of(parts), None

    def diverse(attribute: Attribute) -> PrivacyModel:
        excepted = tuple(np.unique(attribute.rank_of_code[excepted_codes(table, attribute, params)]).tolist())
        return diverse_persons(least_l, excepted) if persons else FrequencyDiversity(least_l, excepted)

    sensitive, each = every_column(table.sensitive, diverse)
    return all_of([*parts, *each]), sensitive


def l_of(params: Params) -> float:
    """The l of the uniform tables."""
    return DEFAULT_L if params["l"] is None else float(params["l"])


def conditions(roles: Roles, params: Params) -> dict[str, str]:
    """Whether the value of each sensitive column is one that l does not bound."""
    if params["l_except"] in (None, [], [STRUCTURAL]):
        return {}
    text = "{}::varchar is not distinct from {}"
    return {
        _exception(info.name): " or ".join(text.format(quoted(info.name), literal(v)) for v in params["l_except"])
        for info in roles.sensitive
    }


def excepted_codes(table: CodedTable, attribute: Attribute, params: Params) -> IntArray:
    """Codes of the values of a sensitive column that l does not bound."""
    if params["l_except"] == [STRUCTURAL] and table.repeated_person is None:
        part = attribute.whole_counts is not None  # which does not show what a part of the full table has alone
        alone = np.zeros(attribute.domain, dtype=np.int64) if part else rows_alone(table.qi, attribute)
        return structural(alone, attribute.counts, least_size(params), l_of(params))
    truth = table.other.get(_exception(attribute.name))
    if truth is None:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero((truth.positions[truth.codes[attribute.first_row]] == 1) & (attribute.counts > 0))


def described_by(params: Params) -> tuple[str, str, dict[str, Any], str] | None:
    """How the description of a release lists the structural values."""
    if params["l_except"] != [STRUCTURAL] or l_of(params) != DEFAULT_L:
        return None
    delta = {"delta": float(params["delta"])}
    # a value that is published as a mean is not named
    shown = f"excepted and records >= {params.get('sensitive_edges') or 1}"
    return "l_except", "structural_values", delta, f"list(distinct value order by value) filter (where {shown})"


def _exception(column: str) -> str:
    return f"l_except of {column}"


def groups_of(table: CodedTable, params: Params, function: str = "muco") -> IntArray:
    """Group of each row under the grouping parameters, shape (n,)."""
    if params["tables"] == "linear":
        return muco_lp.groups_of(table, params, function)
    person = table.repeated_person
    # one group has no association of a quasi-identifier with a sensitive value that a model could learn
    members = table.rows if person is None else len(np.unique(person))
    least = max(ceil(1 / params["delta"]), min(least_size(params), members))
    requirement, sensitive = required(table, params, least, persons=person is not None)
    try:
        return partition(
            table.qi, sensitive, requirement, person=person, tick=tick, cut="sse", function=function,
            guides=table.sensitive if person is None else (),
        )  # fmt: skip
    except RequirementError as error:
        if person is not None:
            raise
        most = table.rows / max((int(np.bincount(a.codes).max()) for a in table.sensitive), default=1)
        if table.rows < ceil(1 / params["delta"]):
            raise RequirementError(f"{error}; delta := 1/{table.rows} is the strictest it can have") from error
        reached = f"l := {floor(most * 1000 + 1e-6) / 1000:g}, or " if most > 1 else ""
        raise RequirementError(f"{error}; say {reached}l := 1 to leave sensitive values as they fall") from error


def covers(table: CodedTable, params: Params, groups: IntArray) -> list[MutualCover]:
    """Random output tables of each quasi-identifier, verified."""
    if params["tables"] == "linear":
        return muco_lp.covers(table, params, groups)
    return [uniform_cover(attribute, groups, params["delta"]) for attribute in table.qi]


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Draw the released codes of every quasi-identifier; everything else passes through."""
    published = muco_lp.drawn(table, params, rng) if params["tables"] == "linear" else _permuted(table, params, rng)
    return {a.name: Coded(a.name, codes) for a, codes in zip(table.qi, published, strict=True)} | unchanged(table)


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

    return parallel_map(taken, range(len(table.qi)))


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """As groups are cut; of structural values a part knows those alone that are more frequent than l allows."""
    if params["l_except"] and params["l_except"] != [STRUCTURAL]:
        raise ParameterError(
            "muco: l_except depends on values of the full table, so it cannot be worked in parts. Release the table in "
            "one call, or say l := 1"
        )
    if params["tables"] == "linear":
        return Cutting("cut", *muco_lp.required(table, params))
    if repeated:
        return cut_by_person(max(least_size(params), l_of(params)))
    return Cutting("cut", *required(table, params, least_size(params), persons=False))


def random_output_tables(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> dict[str, Any]:
    """The tables `muco` would draw from: one row for each group, attribute, original and output value."""
    table = tables[0]
    groups = groups_of(table, params, "muco_tables")
    parts = [attribute.table() for attribute in covers(table, params, groups)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return columns | {"attribute": np.repeat([a.name for a in table.qi], [len(part["records"]) for part in parts])}


def varying(table: CodedTable, groups: IntArray) -> IntArray:
    """Number of quasi-identifiers with two values or more in each group, shape (groups,)."""
    many = int(groups.max(initial=-1)) + 1
    found = np.zeros(many, dtype=np.int64)
    for attribute in table.qi:
        some = np.zeros(many, dtype=np.int64)
        some[groups] = attribute.codes
        found += np.bincount(groups, weights=attribute.codes != some[groups], minlength=many) > 0
    return found


def count_groups(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> dict[str, Any]:
    """Number and sizes of the groups, and records that keep their values or get some from outside their group.

    Uniform tables publish records as they are where their group agrees on every quasi-identifier. The paper's tables
    change `min_changed` of them; records of a group that varies on fewer are moved outside it, unbounded by delta.
    """
    table = tables[0]
    groups = groups_of(table, params, "muco_groups")
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
        "note": ["" if linear else _note(table, params, groups)],
    }


def share_in_groups(attribute: Attribute, groups: IntArray, code: int) -> float:
    """Share of a sensitive value in the group of one of its holders, on average: the chance that it is inferred there.

    >>> pay = Attribute("pay", "ordered", np.array([0, 0, 1, 0]), np.arange(2.0), 2, -1, np.array([0, 2]))
    >>> round(share_in_groups(pay, np.array([0, 0, 1, 1]), 0), 2)
    0.83
    """
    own = np.bincount(groups, weights=attribute.codes == code)
    return float((own * own / np.bincount(groups)).sum() / max(own.sum(), 1))


def _note(table: CodedTable, params: Params, groups: IntArray) -> str:
    """What is to be said of values that l does not bound, and of groups of more than three times what delta asks."""
    notes = []
    for attribute in table.sensitive if l_of(params) > 1 else ():
        excepted = excepted_codes(table, attribute, params)
        if len(excepted):
            shares = [share_in_groups(attribute, groups, code) for code in excepted.tolist()]
            notes.append(
                f"l does not bound {len(excepted)} of the values of '{attribute.name}' (structural_values lists them): "
                f"in the groups of their holders they have a share of up to {max(shares):.2f}"
            )
    sizes, enough = np.bincount(groups), 3 * least_size(params)
    large = sizes[sizes > enough]
    if len(large):
        notes.append(
            f"{large.sum() / sizes.sum():.1%} of the records are in groups of more than {enough} ({len(large)} of "
            f"{len(sizes)} groups), three times what delta asks, where values travel farther. Causes: equal "
            "quasi-identifiers, which no cut separates, and l, which forbids to part off a sensitive value: "
            "structural_values shows for which values to say l_except"
        )
    return "; ".join(notes)


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
        MIN_CHANGED,
        L_EXCEPT,
    ),
    layout=plain_layout,
    release=release,
    conditions=conditions,
    described_by=described_by,
    moves_values=True,
    groups=groups_of,
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
    section="From papers, for comparison",
    smallest="delta := 0.5",
    instead=("muco",),
    parameters=(*GROUPING, L_EXCEPT),
    conditions=conditions,
    returns={
        "group_id": "BIGINT", "attribute": "VARCHAR", "original": "CODE", "output": "CODE", "probability": "DOUBLE",
        "records": "BIGINT",
    },
    compute=random_output_tables,
    refine=partial(refine, function="muco_tables"),
)  # fmt: skip

GROUPS = Report(
    name="muco_groups",
    summary="groups of a muco call, unchanged records, and values moved outside their group",
    paper=PAPER + ", algorithm 2",
    example="FROM muco_groups('people', 0.2, tables := 'linear')",
    section="Preparing a call",
    smallest="delta := 0.5",
    instead=("muco",),
    parameters=(*GROUPING, MIN_CHANGED, L_EXCEPT),
    returns=dict.fromkeys(("rows", "groups", "smallest", "largest", "as_they_were", "moved"), "BIGINT")
    | {"note": "VARCHAR"},
    compute=count_groups,
    conditions=conditions,
    refine=partial(refine, function="muco_groups"),
)
