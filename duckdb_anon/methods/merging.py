"""Merging: slicing with fake records and validity rules, against the composition attack.

Each record, and a few fakes that cannot be distinguished from them, is released as its bucket and one STRUCT a column,
the sensitive attribute alone in the last. Guarantee: no sensitive value has a share above 1/l in a bucket, fakes
counted (a bound on shares, see `slicing`), nor among the rows of a bucket to which a validity rule leaves it; no row
contradicts a rule. With a person column, buckets hold all records of an individual and l and `min_bucket` count
individuals, a fake being one more record of the individual it copies; values constant over an individual's records are
permuted record by record. A fake repeats an insensitive value of its bucket, so with fakes insensitive columns that
have more different values than half the records are refused.

Source: Hasan, Jiang, Chen and Wang (2018), Applied Sciences 8(5):783, algorithms 1 and 2; rules by exchanging cells:
Hasan, Jiang, Luo, Li and Chen (2016). Readings: algorithm 2 as printed never answers no, so the test is that of
l-diversity; `fake` is a total by default; ordered attributes are cut into `bins` for the association. Departures:
buckets are cut where boxes save most (`cut := 'median'` is the paper's); cells of rows that contradict a rule are
exchanged within the bucket instead of generalized. Cost: O(d n log n).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import (
    All,
    BoolArray,
    ConditionalDiversity,
    FrequencyDiversity,
    KAnonymity,
    OfColumn,
    PrivacyModel,
    combine,
    diverse_persons,
)
from duckdb_anon.kernels.row_keys import compact, joint
from duckdb_anon.kernels.slicing.bucket_permutation import (
    check_columns,
    check_diversity,
    shuffled_slots,
    sliced_cells,
    swapped,
)
from duckdb_anon.kernels.slicing.fake_records import Records, insensitive_rows, of_records, with_fakes
from duckdb_anon.methods.partition_params import CUTS, cut_by_person, cut_groups
from duckdb_anon.methods.privacy_spec import all_of
from duckdb_anon.methods.slicing import COLUMNS, checked_grouping, found_columns, given_columns, sliced_layout
from duckdb_anon.model.coded_table import Attribute, CodeArray, CodedTable, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, listed
from duckdb_anon.model.function_specs import REQUIRED, ColumnPlan, Cutting, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import quoted
from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.model.released_columns import Cells, Source

_WORD = re.compile(r"'(?:[^']|'')*'|\"((?:[^\"]|\"\")+)\"|([^\W\d]\w*)")


# Validity rules: combinations of values that cannot be true, such as a man with ovarian cancer. Permuting columns can
# produce rows that contradict common knowledge; a reader rules them out and learns from that (Hasan, Jiang, Luo, Li and
# Chen 2016; no rule format is given there). A rule is a forbidden conjunction of predicates, at most one per attribute,
# written as SQL conditions: `[['sex = ''M''', 'disease IN (''Ovarian Cancer'')']]` is one rule with two predicates.
# They are evaluated by DuckDB on the table's types. `unseen_pairs` finds rules in the table: a value of a quasi-
# identifier and a sensitive value that never occur together although their expected count is large. Cost: one pass over
# the rows per rule.
class Predicate(NamedTuple):
    """A condition on one column."""

    column: str  # the column it is about
    sql: str  # the condition as the user wrote it
    name: str  # name of the column with its truth


def parse_rules(function: str, given: Any, qi: Sequence[str], sensitive: str) -> tuple[tuple[Predicate, ...], ...]:
    """Find the column of each predicate.

    Args:
        given: list of rules, each a list of SQL conditions; None is no rule.

    Raises:
        ParameterError: `given` is not a list of lists of texts, or a rule names one column twice.
        ColumnError: a condition is not about exactly one column with a role.

    >>> parse_rules('merging', [["sex = 'M'", "disease = 'sex'"]], ['sex'], 'disease')[0][1].column
    'disease'
    """
    if given is None:
        return ()
    if not isinstance(given, (list, tuple)) or not all(
        isinstance(rule, (list, tuple)) and rule and all(isinstance(p, str) for p in rule) for rule in given
    ):
        raise ParameterError(
            f"{function}: rules := must be a list of rules, each a list of conditions on one column, such as "
            "[['sex = ''M''', 'disease = ''Ovarian Cancer''']]"
        )
    rules = []
    for i, rule in enumerate(given):
        columns = [_column_of(function, i, text, (*qi, sensitive)) for text in rule]
        if len(set(columns)) < len(columns) or not set(columns) & set(qi):
            raise ParameterError(
                f"{function}: rule {i + 1} must have one condition a column, one of them on a quasi-identifier "
                f"({listed(qi)})"
            )
        pairs = enumerate(zip(columns, rule, strict=True))
        rules.append(tuple(Predicate(column, text, f"rule_{i}_{j}") for j, (column, text) in pairs))
    return tuple(rules)


def _column_of(function: str, number: int, text: str, names: Sequence[str]) -> str:
    """The one column named in a condition, outside of string literals."""
    folded = {fold(name): name for name in names}
    words = {fold(quoted or bare) for quoted, bare in _WORD.findall(text)}
    found = [folded[word] for word in folded if word in words]
    if len(found) != 1:
        raise ColumnError(
            f"{function}: condition {text!r} of rule {number + 1} must name exactly one of {listed(names)}; "
            f"it names {listed(found) or 'none'}"
        )
    return found[0]


@dataclass(frozen=True)
class ValidityRule:
    """Classes of quasi-identifiers and sensitive values that must not stand in one row."""

    class_of_code: Mapping[int, IntArray]  # by place of a quasi-identifier; a row has the product of its classes
    sensitive_class: IntArray  # class of each sensitive code
    forbidden: BoolArray  # shape (classes, sensitive classes)

    def class_of(self, codes: Sequence[CodeArray]) -> IntArray:
        """Class of each row by its quasi-identifiers."""
        return np.asarray(prod(of_code[codes[q]] for q, of_code in self.class_of_code.items()))

    def violated(self, codes: Sequence[CodeArray], sensitive: CodeArray) -> BoolArray:
        """Whether each row is forbidden."""
        return np.asarray(self.forbidden[self.class_of(codes), self.sensitive_class[sensitive]])


def rule_of(predicates: Sequence[Predicate], qi: Sequence[Attribute], sensitive: Attribute,
            truth: Mapping[str, Attribute]) -> ValidityRule:  # fmt: skip
    """Turn a rule into codes; `truth` has for each predicate's name an attribute that is 1 in rows where it holds."""
    index = {attribute.name: q for q, attribute in enumerate(qi)}
    on_qi: dict[int, IntArray] = {}
    on_sensitive = np.ones(sensitive.domain, dtype=np.int64)
    for predicate in predicates:
        answer = truth[predicate.name]
        attribute = sensitive if predicate.column == sensitive.name else qi[index[predicate.column]]
        holds = (answer.positions[answer.codes[attribute.first_row]] == 1).astype(np.int64)
        if attribute is sensitive:
            on_sensitive = holds
        else:
            on_qi[index[predicate.column]] = holds
    return ValidityRule(on_qi, on_sensitive, np.array([[False, False], [False, True]]))


def unseen_pairs(qi: Sequence[Attribute], sensitive: Attribute, min_expected: float = 5.0) -> tuple[ValidityRule, ...]:
    """Find pairs that never occur together although at least `min_expected` rows are expected.

    The expected count is n p(value) p(sensitive value). Returns one rule for each quasi-identifier with such pairs.
    """
    found = []
    n = max(len(sensitive.codes), 1)
    per_value = np.bincount(sensitive.codes, minlength=sensitive.domain)
    for q, attribute in enumerate(qi):
        per_code = np.bincount(attribute.codes, minlength=attribute.domain)
        code, row_of_code = _frequent(per_code, min_expected * n / per_value.max(initial=1))
        value, column_of_code = _frequent(per_value, min_expected * n / per_code.max(initial=1))
        seen = np.zeros((len(code) + 1, len(value) + 1), dtype=bool)
        seen[row_of_code[attribute.codes], column_of_code[sensitive.codes]] = True
        expected = np.outer(per_code[code], per_value[value]) / n
        forbidden = np.zeros_like(seen)
        forbidden[1:, 1:] = ~seen[1:, 1:] & (expected >= min_expected)
        if forbidden.any():
            alike, class_of_row = np.unique(forbidden, axis=0, return_inverse=True)
            found.append(ValidityRule({q: class_of_row.ravel()[row_of_code]}, column_of_code, alike))
    return tuple(found)


def _frequent(counts: IntArray, least: float) -> tuple[IntArray, IntArray]:
    """Return codes with at least `least` rows, and for every code its rank among them from 1, 0 for the others."""
    frequent = counts >= least
    return np.flatnonzero(frequent).astype(np.int64), np.where(frequent, np.cumsum(frequent), 0).astype(np.int64)


NAME = "merging"
_ROUNDS = 1000
"""Rounds of exchanging cells of rows that contradict a rule; the call is refused where some are left."""
_ALIKE = "rows that a rule treats alike"
_UNIQUE = "nearly unique: "


def required(
    table: CodedTable, records: Records, rules: Sequence[ValidityRule], params: Params
) -> tuple[PrivacyModel, CodeArray]:
    """What every bucket must satisfy, and the codes of the records that are read for it.

    A reader leaves out rows that a rule excludes, so the share of a value is bounded among those that a rule treats
    alike: then it is bounded among the rows that may have the value, one rule at a time.
    """
    least, sensitive = float(params["l"]), table.sensitive[0].codes[records.sensitive_row]
    diverse = FrequencyDiversity(least) if table.repeated_person is None else diverse_persons(least)
    parts: list[PrivacyModel] = [KAnonymity(params["min_bucket"])] if params["min_bucket"] > 1 else []
    if not rules:
        return all_of([*parts, diverse]), sensitive
    classes = [rule.class_of([a.codes[records.qi_row] for a in table.qi]).astype(np.int32) for rule in rules]
    codes, (value, *class_of_code) = combine([sensitive, *classes])
    parts.append(OfColumn(diverse, table.sensitive[0].name, value))
    for each in class_of_code:
        pair = joint([each, value])
        class_of_pair = each[np.unique(pair, return_index=True)[1]].astype(np.int64)
        diverse_alike = ConditionalDiversity(least, class_of_pair, _ALIKE)
        parts.append(OfColumn(diverse_alike, "rules", compact(pair).astype(np.int32)))
    return all_of(parts), codes


def buckets(table: CodedTable, records: Records, rules: Sequence[ValidityRule], params: Params) -> IntArray:
    """Bucket of each record, fakes included."""
    person = table.repeated_person
    qi = tuple(of_records(attribute, records.qi_row) for attribute in table.qi)
    requirement, codes = required(table, records, rules, params)
    try:
        return cut_groups(NAME, qi, codes, requirement, params, None if person is None else person[records.qi_row])
    except RequirementError as error:
        fakes = len(records.qi_row) - records.real
        if fakes == 0:
            raise
        counted = (
            "1 fake is counted, whose values are" if fakes == 1 else f"{fakes} fakes are counted, whose values are"
        )
        raise RequirementError(f"{error}; {counted} drawn at random: ask for fewer, or for a smaller l") from error


def rules_of(table: CodedTable, params: Params) -> list[ValidityRule]:
    """All validity rules of a call, as codes."""
    sensitive = table.sensitive[0]
    written = parse_rules(NAME, params["rules"], [a.name for a in table.qi], sensitive.name)
    found = unseen_pairs(table.qi, sensitive, params["min_expected"]) if params["unseen_pairs"] else ()
    return [*(rule_of(rule, table.qi, sensitive, table.other) for rule in written), *found]


def violating(
    table: CodedTable,
    rules: Sequence[ValidityRule],
    records: Records,
    columns: Sequence[tuple[int, ...]],
    orders: Sequence[IntArray],
) -> BoolArray:
    """Whether rows made of the given records, column by column and the sensitive one last, contradict a rule."""
    if not rules:
        return np.zeros(len(orders[-1]), dtype=bool)
    codes: list[CodeArray] = [a.codes for a in table.qi]
    for column, order in zip(columns, orders, strict=False):
        for q in column:
            codes[q] = table.qi[q].codes[records.qi_row[order]]
    sensitive = table.sensitive[0].codes[records.sensitive_row[orders[-1]]]
    result = np.zeros(len(sensitive), dtype=bool)
    for rule in rules:
        result |= rule.violated(codes, sensitive)
    return result


def _possible(
    table: CodedTable, rules: Sequence[ValidityRule], records: Records, columns: Sequence[tuple[int, ...]]
) -> Records:
    """The records, where fakes that contradict a rule have the sensitive value of the record they copy instead."""
    wrong = violating(table, rules, records, columns, [np.arange(len(records.qi_row))] * (len(columns) + 1))
    contradicting = int(wrong[: records.real].sum())
    if contradicting:
        raise RequirementError(
            f"{NAME}: {contradicting} rows of the table contradict rules themselves; correct them, or narrow rules := "
            "[...]"
        )
    return records._replace(sensitive_row=np.where(wrong, records.qi_row, records.sensitive_row))


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Merge a table."""
    refuse_unique(table)
    names, sensitive = [a.name for a in table.qi], table.sensitive[0]
    grouping = checked_grouping(NAME, params["columns"], names, sensitive.name, alone=True)
    columns = [tuple(names.index(name) for name in column) for column in grouping.qi]
    rules = rules_of(table, params)
    drawn = with_fakes(table.rows, params["fake"], params["fake_mode"] == "per_record", rng)
    records = _possible(table, rules, drawn, columns)
    bucket = buckets(table, records, rules, params)
    slot_bucket = np.sort(bucket)

    def contradicting(orders: Sequence[IntArray]) -> BoolArray:
        return violating(table, rules, records, columns, orders)

    shuffled = [shuffled_slots(bucket, rng) for _ in range(len(columns) + 1)]
    orders = swapped(shuffled, slot_bucket, contradicting, _ROUNDS, rng)
    left = int(contradicting(orders).sum())
    if left:
        raise RequirementError(
            f"{NAME}: {left} rows still contradict a rule after {_ROUNDS} rounds of exchanging cells; take a larger "
            "min_bucket, fewer columns, or fewer rules"
        )
    check_columns(NAME, orders, bucket)
    in_slots = sensitive.codes[records.sensitive_row[orders[-1]]]
    check_diversity(NAME, slot_bucket, np.zeros_like(slot_bucket), in_slots, float(params["l"]))
    codes = {
        table.qi[q].name: table.qi[q].codes[records.qi_row[order]]
        for order, column in zip(orders, columns, strict=False)
        for q in column
    }
    codes[sensitive.name] = in_slots
    order = shuffled_slots(bucket, rng)
    cells = sliced_cells(grouping, slot_bucket, codes, insensitive_rows(records, bucket, rng)[order], rng)
    cells[SOURCE.key] = Source(np.where(order < records.real, records.qi_row[order], -1))
    return cells


def resolve_params(roles: Roles, params: Params, rows: Callable[[], CodedTable]) -> dict[str, Any]:
    """Columns of the call, checked, or found in the table's rows."""
    roles.one_sensitive(NAME)
    if params["columns"] is None:
        params = {**params, "columns": found_columns(rows(), params, alone=True)}
    return {"columns": [list(column) for column in given_columns(NAME, roles, params, alone=True).columns]}


def conditions(roles: Roles, params: Params) -> dict[str, str]:
    """Conditions of the written rules, to be evaluated by DuckDB, and whether insensitive columns are nearly unique."""
    names = [info.name for info in roles.qi]
    rules = parse_rules(NAME, params["rules"], names, roles.one_sensitive(NAME).name)
    return {predicate.name: predicate.sql for rule in rules for predicate in rule} | {
        f"{_UNIQUE}{info.name}": f"2 * count(distinct {quoted(info.name)}) over () > count({quoted(info.name)}) over ()"
        for info in (roles.keep if params["fake"] else ())
    }


def refuse_unique(table: CodedTable) -> None:
    """Refuse to release insensitive columns whose values are mostly unique together with fakes."""
    for name, truth in table.other.items():
        if name.startswith(_UNIQUE) and (truth.positions[truth.codes] == 1).any():
            raise ColumnError(
                f"{NAME}: insensitive column '{name.removeprefix(_UNIQUE)}' is nearly unique, and a fake record "
                "repeats a value of its bucket, which betrays the fake. Do not keep the column, or say fake := 0"
            )


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """`bucket`, one STRUCT a column, insensitive columns."""
    return sliced_layout(roles, given_columns(NAME, roles, params, alone=True))


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """As buckets are cut; each part has `fake` fakes of its own."""
    if params["unseen_pairs"]:
        raise ParameterError(
            f"{NAME}: unseen_pairs := true asks which pairs the whole table lacks, so it cannot be worked in parts; "
            "write them as rules := [...]"
        )
    if repeated:
        return cut_by_person(max(params["l"], params["min_bucket"]))
    diverse = FrequencyDiversity(float(params["l"]))
    return Cutting("cut", All((KAnonymity(params["min_bucket"]), diverse)), table.sensitive[0].codes)


METHOD = Method(
    name=NAME,
    summary="slicing with fake records and validity rules, against the composition attack",
    paper="Hasan, Jiang, Chen & Wang (2018), Applied Sciences 8(5):783, algorithms 1 and 2 (with readings)",
    example="CREATE TABLE merged AS FROM merging('people', 3)",
    smallest="l := 2",
    trials=("l := 1", "l := 3", "l := 2, fake := 3", "l := 1, unseen_pairs := true, min_expected := 5.0"),
    formats=("sliced",),
    parameters=(
        Parameter("l", "no sensitive value has a share above 1/l in a bucket", "number", REQUIRED, low=1),
        *COLUMNS,
        Parameter("fake", "number of fake records", "integer", 1, low=0, high=1_000_000),
        Parameter("fake_mode", "whether `fake` is a total or counts per row", "text", "total", ("total", "per_record")),
        Parameter(
            "rules",
            "forbidden conjunctions, each a list of conditions on one column: "
            "[['sex = ''M''', 'disease = ''Ovarian Cancer''']]",
        ),
        Parameter("unseen_pairs", "also forbid pairs that never occur though expected", "boolean", False),
        Parameter("min_expected", "expected count from which on absence is a rule", "number", 5.0, above=0),
        Parameter("min_bucket", "minimum number of records per bucket", "integer", 1, low=1),
        *CUTS,
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
