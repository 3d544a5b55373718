"""Validity rules as users write them: lists of SQL predicates, each about one column.

`[['sex = ''M''', 'disease IN (''Ovarian Cancer'', ''Breast Cancer'')']]` is one rule with two predicates. The
predicates are evaluated by DuckDB on the table's own types; here only the column of each is found.
Cost: none that depends on the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import BoolArray
from duckdb_anon.kernels.slicing.validity_rules import ValidityRule
from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.errors import ColumnError, ParameterError, listed
from duckdb_anon.model.identifier_case import fold

_WORD = re.compile(r"'(?:[^']|'')*'|\"((?:[^\"]|\"\")+)\"|([^\W\d]\w*)")


class Predicate(NamedTuple):
    """A condition on one column.

    Attributes:
        column: the column it is about.
        sql: the condition as it was written.
        name: name under which its truth travels to the kernel.
    """

    column: str
    sql: str
    name: str


def parse_rules(function: str, given: Any, qi: Sequence[str], sensitive: str) -> tuple[tuple[Predicate, ...], ...]:
    """Find the column of each predicate.

    Args:
        function: SQL function, for messages.
        given: list of rules, each a list of SQL conditions; None is no rule.
        qi: quasi-identifiers.
        sensitive: the sensitive column.

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
    """Turn one rule into codes.

    Args:
        predicates: its conditions.
        qi: quasi-identifiers.
        sensitive: the sensitive attribute.
        truth: for each predicate's name an attribute whose value is 1 in rows where it holds, else 0.
    """
    place = {attribute.name: q for q, attribute in enumerate(qi)}
    on_qi: dict[int, BoolArray] = {}
    on_sensitive = np.ones(sensitive.domain, dtype=bool)
    for predicate in predicates:
        about = sensitive if predicate.column == sensitive.name else qi[place[predicate.column]]
        answer = truth[predicate.name]
        holds = answer.positions[answer.codes[about.first_row]] == 1
        if about is sensitive:
            on_sensitive = holds
        else:
            on_qi[place[predicate.column]] = holds
    return ValidityRule(on_qi, on_sensitive)
