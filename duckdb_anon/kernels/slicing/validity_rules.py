"""Validity rules: combinations of values that cannot be true, such as a man with ovarian cancer.

Permuting columns can produce rows that contradict common knowledge; a reader rules them out and learns from that
(Hasan, Jiang, Luo, Li and Chen 2016; no rule format is given there). A rule is a forbidden conjunction of predicates,
at most one per attribute, written as SQL conditions: `[['sex = ''M''', 'disease IN (''Ovarian Cancer'')']]` is one rule
with two predicates. They are evaluated by DuckDB on the table's types. `unseen_pairs` finds rules in the table: a value
of a quasi-identifier and a sensitive value that never occur together although their expected count is large.

Written rules that name the same single quasi-identifier count together, because a cell that may be either of two
values, each forbidden by a rule, is as impossible as one. Conjunctions of several quasi-identifiers count one by one.
Cost: one pass over the rows per rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import BoolArray
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, listed
from duckdb_anon.model.identifier_case import fold

_WORD = re.compile(r"'(?:[^']|'')*'|\"((?:[^\"]|\"\")+)\"|([^\W\d]\w*)")


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


def rule_of(predicates: Sequence[Predicate], qi: Sequence[Attribute], sensitive: Attribute,
            truth: Mapping[str, Attribute]) -> ValidityRule:  # fmt: skip
    """Turn a rule into codes; `truth` has for each predicate's name an attribute that is 1 in rows where it holds."""
    index = {attribute.name: q for q, attribute in enumerate(qi)}
    on_qi: dict[int, BoolArray] = {}
    on_sensitive = np.ones(sensitive.domain, dtype=bool)
    for predicate in predicates:
        answer = truth[predicate.name]
        attribute = sensitive if predicate.column == sensitive.name else qi[index[predicate.column]]
        holds = answer.positions[answer.codes[attribute.first_row]] == 1
        if attribute is sensitive:
            on_sensitive = holds
        else:
            on_qi[index[predicate.column]] = holds
    return ValidityRule(on_qi, on_sensitive)


@dataclass(frozen=True)
class ValidityRule:
    """A forbidden conjunction."""

    qi: Mapping[int, BoolArray]  # index of a quasi-identifier to the truth of its predicate for each code
    sensitive: BoolArray  # truth of the predicate on the sensitive value for each code


@dataclass(frozen=True)
class PairRule:
    """Forbidden pairs of a value of one quasi-identifier and a sensitive value.

    Values that are forbidden alike share a row or a column of the matrix.
    """

    qi: int  # index of the quasi-identifier
    forbidden: BoolArray  # shape (rows, columns)
    row_of_code: IntArray  # row of each code of the quasi-identifier
    column_of_code: IntArray  # column of each sensitive code


@dataclass(frozen=True)
class ValidityRules:
    """All rules; rule numbers count the conjunctions first, then each pair rule's columns."""

    conjunctions: tuple[ValidityRule, ...] = ()
    pairs: tuple[PairRule, ...] = ()

    @staticmethod
    def of(written: Sequence[ValidityRule], found: Sequence[PairRule]) -> ValidityRules:
        """Put together the written rules that name the same single quasi-identifier, and those found in the table."""
        single: dict[int, list[ValidityRule]] = {}
        for rule in written:
            if len(rule.qi) == 1:
                single.setdefault(next(iter(rule.qi)), []).append(rule)
        pairs = [_together(q, rules) for q, rules in single.items()]
        return ValidityRules(tuple(rule for rule in written if len(rule.qi) > 1), (*pairs, *found))

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return bool(self.conjunctions or self.pairs)

    def violated(self, codes: Sequence[CodeArray], sensitive: CodeArray) -> tuple[IntArray, IntArray]:
        """Return slots and rule numbers, one entry for each slot that satisfies a rule by its exact codes."""
        slots: list[IntArray] = []
        rules: list[IntArray] = []
        for number, rule in enumerate(self.conjunctions):
            hit = rule.sensitive[sensitive]
            for q, holds in rule.qi.items():
                hit = hit & holds[codes[q]]
            slots.append(np.flatnonzero(hit).astype(np.int64))
            rules.append(np.full(len(slots[-1]), number, dtype=np.int64))
        base = len(self.conjunctions)
        for pair in self.pairs:
            row, column = pair.row_of_code[codes[pair.qi]], pair.column_of_code[sensitive]
            slots.append(np.flatnonzero(pair.forbidden[row, column]).astype(np.int64))
            rules.append(base + column[slots[-1]])
            base += pair.forbidden.shape[1]
        none = np.empty(0, dtype=np.int64)
        return np.concatenate([none, *slots]), np.concatenate([none, *rules])

    def predicates(self, number: int) -> Mapping[int, BoolArray]:
        """Return the predicates of a rule on quasi-identifiers."""
        if number < len(self.conjunctions):
            return self.conjunctions[number].qi
        number -= len(self.conjunctions)
        for pair in self.pairs:
            if number < pair.forbidden.shape[1]:
                return {pair.qi: pair.forbidden[pair.row_of_code, number]}
            number -= pair.forbidden.shape[1]
        raise IndexError("no such rule")


def _together(q: int, rules: Sequence[ValidityRule]) -> PairRule:
    """Return what any of some rules on quasi-identifier q forbids."""
    rows, row_of_code = np.unique(np.stack([rule.qi[q] for rule in rules]), axis=1, return_inverse=True)
    columns, column_of_code = np.unique(np.stack([rule.sensitive for rule in rules]), axis=1, return_inverse=True)
    forbidden: BoolArray = np.any(rows[:, :, None] & columns[:, None, :], axis=0)
    return PairRule(q, forbidden, row_of_code.ravel().astype(np.int64), column_of_code.ravel().astype(np.int64))


def unseen_pairs(qi: Sequence[Attribute], sensitive: Attribute, min_expected: float = 5.0) -> tuple[PairRule, ...]:
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
            found.append(PairRule(q, forbidden, row_of_code, column_of_code))
    return tuple(found)


def _frequent(counts: IntArray, least: float) -> tuple[IntArray, IntArray]:
    """Return codes with at least `least` rows, and for every code its rank among them from 1, 0 for the others."""
    frequent = counts >= least
    return np.flatnonzero(frequent).astype(np.int64), np.where(frequent, np.cumsum(frequent), 0).astype(np.int64)
