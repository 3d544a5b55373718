"""Validity rules: combinations of values that cannot be true, such as a man with ovarian cancer.

Permuting columns can produce rows that contradict common knowledge; a reader rules them out and learns from that
(Hasan, Jiang, Luo, Li and Chen 2016; no rule format is given there). A rule is a forbidden conjunction of predicates,
at most one per attribute, written as SQL conditions: `[['sex = ''M''', 'disease IN (''Ovarian Cancer'')']]` is one rule
with two predicates. They are evaluated by DuckDB on the table's types. `unseen_pairs` finds rules in the table: a value
of a quasi-identifier and a sensitive value that never occur together although their expected count is large.

Cost: one pass over the rows per rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
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
