"""Merging: slicing with fake records and generalized cells, against the composition attack.

Each record, and a few fakes that cannot be told apart from them, is released as its bucket and one STRUCT a column, the
sensitive attribute alone in the last. Guarantee: no sensitive value has a share above 1/l in a bucket, fakes counted (a
bound on shares, see `slicing`); no row contradicts a validity rule with certainty. Parts of a generalized cell have at
least k rows of their bucket, which is no k-anonymity of the table. With a person column, buckets hold all records of an
individual and l and `min_bucket` count individuals, a fake being one more record of the individual it copies; values
constant over an individual's records are permuted record by record; cells are not generalized then.

Source: Hasan, Jiang, Chen and Wang (2018), Applied Sciences 8(5):783, algorithms 1 and 2. Readings: algorithm 2 as
printed never answers no, so the test is that of l-diversity; rules are checked once, after the permutation; `fake` is a
total by default; ordered attributes are cut into `bins` for the association. Departure: buckets are cut where boxes
save most (`cut := 'median'` is the paper's). Cost: O(d n log n).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from duckdb_anon.kernels.partition.interval_rounding import EDGES, with_edges
from duckdb_anon.kernels.partition.person_level import diverse_persons
from duckdb_anon.kernels.partition.privacy_models import All, BoolArray, FrequencyDiversity, KAnonymity
from duckdb_anon.kernels.slicing.bucket_permutation import (
    check_columns,
    check_diversity,
    shuffled_slots,
    sliced_cells,
    swapped,
)
from duckdb_anon.kernels.slicing.cell_generalization import SlicedTable, check_repaired, repair
from duckdb_anon.kernels.slicing.covers import Cover
from duckdb_anon.kernels.slicing.fake_records import Records, insensitive_rows, of_records, with_fakes
from duckdb_anon.kernels.slicing.slice_layout import COLUMNS, Grouping, checked_grouping, sliced_layout
from duckdb_anon.kernels.slicing.validity_rules import ValidityRules, parse_rules, rule_of, unseen_pairs
from duckdb_anon.methods.partition_params import CUTS, cut_groups, cutting, whole_persons_by
from duckdb_anon.methods.slicing import find_grouping
from duckdb_anon.model.coded_table import CodeArray, CodedTable, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, nearest
from duckdb_anon.model.function_specs import REQUIRED, ColumnPlan, Cutting, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.model.released_columns import Cells, Source

NAME = "merging"


@dataclass(frozen=True)
class _Slots:
    """The permuted table: for every slot its bucket and its codes."""

    bucket: IntArray
    codes: list[CodeArray]
    sensitive: CodeArray


def buckets(table: CodedTable, records: Records, params: Params) -> IntArray:
    """Bucket of each record, fakes included; no sensitive value has a share above 1/l in any of them.

    `min_bucket` is at least k where cells may be generalized: the parts of a cell are parts of its bucket.
    """
    person = table.repeated_person
    diverse = FrequencyDiversity(float(params["l"])) if person is None else diverse_persons(float(params["l"]))
    try:
        return cut_groups(
            NAME,
            tuple(of_records(attribute, records.qi_row) for attribute in table.qi),
            table.sensitive[0].codes[records.sensitive_row],
            All((KAnonymity(params["min_bucket"]), diverse)) if params["min_bucket"] > 1 else diverse,
            params,
            None if person is None else person[records.qi_row],
        )
    except RequirementError as error:
        fakes = len(records.qi_row) - records.real
        if fakes == 0:
            raise
        counted = (
            "1 fake is counted, whose values are" if fakes == 1 else f"{fakes} fakes are counted, whose values are"
        )
        raise RequirementError(f"{error}; {counted} drawn at random: ask for fewer, or for a smaller l") from error


def rules_of(table: CodedTable, params: Params) -> ValidityRules:
    """All validity rules of a call, as codes."""
    sensitive = table.sensitive[0]
    written = parse_rules(NAME, params["rules"], [a.name for a in table.qi], sensitive.name)
    found = unseen_pairs(table.qi, sensitive, params["min_expected"]) if params["unseen_pairs"] else ()
    return ValidityRules.of([rule_of(rule, table.qi, sensitive, table.other) for rule in written], found)


def _codes(
    table: CodedTable, records: Records, columns: list[tuple[int, ...]], orders: Sequence[IntArray]
) -> tuple[list[CodeArray], CodeArray]:
    """Codes of the quasi-identifiers and the sensitive codes of rows made of the given records, column by column."""
    codes: list[CodeArray] = [a.codes for a in table.qi]
    for column, order in zip(columns, orders, strict=False):
        for q in column:
            codes[q] = table.qi[q].codes[records.qi_row[order]]
    return codes, table.sensitive[0].codes[records.sensitive_row[orders[-1]]]


def _violating(rules: ValidityRules, codes: list[CodeArray], sensitive: CodeArray) -> BoolArray:
    """Whether each row violates a rule."""
    violating = np.zeros(len(sensitive), dtype=bool)
    violating[rules.violated(codes, sensitive)[0]] = True
    return violating


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Merge a table."""
    names, sensitive = [a.name for a in table.qi], table.sensitive[0]
    grouping = (
        find_grouping(table, params, alone=True)
        if params["columns"] is None
        else checked_grouping(NAME, params["columns"], names, sensitive.name, alone=True)
    )
    columns = [tuple(names.index(name) for name in column) for column in grouping.qi]
    records = with_fakes(table.rows, params["fake"], params["fake_mode"] == "per_record", rng)
    boxed = _boxed(table, params, grouping)
    if boxed and table.repeated_person is not None:
        raise RequirementError(
            f"{NAME}: persons have several rows, and rules, unseen_pairs and force_k make parts of k rows; leave them "
            "out, so that l and min_bucket count persons"
        )
    least = max(params["min_bucket"], params["k"]) if boxed else params["min_bucket"]
    bucket = buckets(table, records, {**params, "min_bucket": least})
    rules = rules_of(table, params)
    slot_bucket = np.sort(bucket)
    orders = swapped(
        [shuffled_slots(bucket, rng) for _ in range(len(columns) + 1)],
        slot_bucket,
        lambda trial: _violating(rules, *_codes(table, records, columns, trial)),
        params["try_repermute"] if rules else 0,
        rng,
    )
    slots = _Slots(slot_bucket, *_codes(table, records, columns, orders))
    forced = forced_columns(grouping, params["force_k"] or ())
    check_columns(NAME, orders, bucket)
    check_diversity(NAME, slots.bucket, np.zeros_like(slots.bucket), slots.sensitive, float(params["l"]))
    covers = _generalized(table, params, grouping, slots, rules, forced, boxed)
    rows = {name: records.qi_row[order] for order, c in zip(orders, grouping.qi, strict=False) for name in c}
    rows[sensitive.name] = records.sensitive_row[orders[-1]]
    kept = shuffled_slots(bucket, rng)
    printed = with_edges(table, {name: cover.cells for name, cover in covers.items()}, params)
    cells = sliced_cells(grouping, slots.bucket, rows, printed, insensitive_rows(records, bucket, rng)[kept], rng)
    cells[SOURCE.key] = Source(np.where(kept < records.real, records.qi_row[kept], -1))
    return cells


def forced_columns(grouping: Grouping, names: list[str] | tuple[str, ...]) -> frozenset[int]:
    """Places of the columns that hold one of `names`."""
    wanted = {fold(name) for name in names}
    return frozenset(i for i, column in enumerate(grouping.qi) if wanted & {fold(name) for name in column})


def generalizable(grouping: Grouping, params: Params, named: set[str]) -> set[str]:
    """Names of the attributes that may be printed generalized: those of columns a rule or `force_k` names."""
    wanted = {fold(name) for name in named | set(params["force_k"] or ())}
    return {
        name
        for column in grouping.qi
        for name in column
        if params["unseen_pairs"] or wanted & {fold(other) for other in column}
    }


def _boxed(table: CodedTable, params: Params, grouping: Grouping) -> set[str]:
    """Names of the attributes whose cells may be generalized."""
    written = parse_rules(NAME, params["rules"], [a.name for a in table.qi], table.sensitive[0].name)
    return generalizable(grouping, params, {p.column for rule in written for p in rule})


def _generalized(
    table: CodedTable,
    params: Params,
    grouping: Grouping,
    slots: _Slots,
    rules: ValidityRules,
    forced: frozenset[int],
    boxed: set[str],
) -> dict[str, Cover]:
    """Covers of the attributes that may be generalized, re-checked against values, rules and k."""
    if not boxed:
        return {}
    names = [a.name for a in table.qi]
    columns = [tuple(names.index(name) for name in column) for column in grouping.qi]
    sliced = SlicedTable(table.qi, columns, slots.codes, slots.sensitive, slots.bucket, params["k"], forced)
    covers = repair(sliced, rules)
    check_repaired(sliced, rules, covers)
    return {a.name: cover for a, cover in zip(table.qi, covers, strict=True) if a.name in boxed}


def resolve_params(roles: Roles, params: Params, rows: Callable[[], CodedTable]) -> dict[str, Any]:
    """Columns of the call, checked, or found in the table's rows."""
    if params["columns"] is None:
        roles.one_sensitive(NAME)
        grouping = find_grouping(rows(), params, alone=True)
    else:
        grouping = _given(roles, params)
    _check_names(grouping, params["force_k"] or ())
    return {"columns": [list(column) for column in grouping.columns]}


def _given(roles: Roles, params: Params) -> Grouping:
    names = [info.name for info in roles.qi]
    return checked_grouping(NAME, params["columns"], names, roles.one_sensitive(NAME).name, alone=True)


def _check_names(grouping: Grouping, names: list[str] | tuple[str, ...]) -> None:
    known = {fold(name): name for column in grouping.qi for name in column}
    for name in names:
        if fold(name) not in known:
            raise ColumnError(
                f"merging: force_k := names '{name}', which is no quasi-identifier{nearest(name, known.values())}"
            )


def conditions(roles: Roles, params: Params) -> dict[str, str]:
    """Conditions of the written rules, to be evaluated by DuckDB."""
    names = [info.name for info in roles.qi]
    rules = parse_rules(NAME, params["rules"], names, roles.one_sensitive(NAME).name)
    return {predicate.name: predicate.sql for rule in rules for predicate in rule}


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """`bucket`, one STRUCT a column, insensitive columns; boxes where a rule or `force_k` may generalize."""
    grouping = _given(roles, params)
    names = [info.name for info in roles.qi]
    rules = parse_rules(NAME, params["rules"], names, grouping.sensitive)
    boxed = generalizable(grouping, params, {predicate.column for rule in rules for predicate in rule})
    return sliced_layout(NAME, roles, grouping, boxed)


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """As buckets are cut; each part has `fake` fakes of its own."""
    if params["unseen_pairs"]:
        raise ParameterError(
            f"{NAME}: unseen_pairs := true asks which pairs the whole table lacks, so it cannot be worked in parts; "
            "write them as rules := [...]"
        )
    if repeated:
        return whole_persons_by(params["cut"], max(params["l"], params["min_bucket"], params["k"]))
    diverse = FrequencyDiversity(float(params["l"]))
    least = KAnonymity(max(params["min_bucket"], params["k"]))
    return cutting(params, All((least, diverse)), table.sensitive[0].codes)


METHOD = Method(
    name=NAME,
    summary="slicing with fake tuples and generalized cells, against the composition attack",
    paper="Hasan, Jiang, Chen & Wang (2018), Applied Sciences 8(5):783, algorithms 1 and 2 (with readings)",
    example="CREATE TABLE merged AS FROM merging('people', 3)",
    smallest="l := 2",
    trials=(
        "l := 1",
        "l := 3",
        "l := 2, k := 3, fake := 3",
        "l := 1, k := 2, unseen_pairs := true, min_expected := 0.5",
    ),
    formats=("sliced",),
    parameters=(
        Parameter("l", "no sensitive value has a share above 1/l in a bucket", "number", REQUIRED, low=1),
        Parameter(
            "k", "rows in each part of a generalized cell; buckets that may have one are as large", "integer", 2, low=1
        ),
        *COLUMNS,
        Parameter("fake", "number of fake rows", "integer", 1, low=0, high=1_000_000),
        Parameter("fake_mode", "whether `fake` is a total or counts per row", "text", "total", ("total", "per_record")),
        Parameter(
            "rules",
            "forbidden conjunctions, each a list of conditions on one column: "
            "[['sex = ''M''', 'disease = ''Ovarian Cancer''']]",
        ),
        Parameter("unseen_pairs", "also forbid pairs that never occur though expected", "boolean", False),
        Parameter("min_expected", "expected count from which on absence is a rule", "number", 5.0, above=0),
        Parameter(
            "try_repermute",
            "rounds of swapping cells of rows that violate a rule, before cells are generalized; 20 spare most of them",
            "integer",
            0,
            low=0,
        ),
        Parameter("force_k", "attributes whose columns are always made k-anonymous cell by cell", "names"),
        Parameter("min_bucket", "least number of rows of a bucket", "integer", 1, low=1),
        *CUTS,
        EDGES,
    ),
    layout=layout,
    release=release,
    needs=("qi", "sensitive"),
    resolve_params=resolve_params,
    conditions=conditions,
    unit="person",
    sweeps=(Sweep("l := {l}", (2, 5, 10), finds_columns=True),),
    parts=parts,
)
