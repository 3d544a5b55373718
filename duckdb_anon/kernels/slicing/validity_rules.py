"""Validity rules: combinations of values that cannot be true, such as a man with ovarian cancer.

Permuting columns can print rows that contradict what everybody knows; a reader rules them out and learns
from that (Hasan, Jiang, Luo, Li and Chen 2016; no rule format is given there). Here a rule is a forbidden
conjunction of predicates, at most one an attribute. `unseen_pairs` finds rules in the table itself: a value
of a quasi-identifier and a sensitive value that never occur together although their expected count under
independence is large.

Written rules that name the same single quasi-identifier count together, for a cell that shows two values, each
forbidden by a rule of its own, is as impossible as one. Conjunctions of several quasi-identifiers count one by
one. Cost: one pass over the rows a rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import BoolArray
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray


@dataclass(frozen=True)
class ValidityRule:
    """A forbidden conjunction.

    Attributes:
        qi: quasi-identifier's place in the table to the truth of its predicate for each code.
        sensitive: truth of the predicate on the sensitive value for each code.
    """

    qi: Mapping[int, BoolArray]
    sensitive: BoolArray


@dataclass(frozen=True)
class PairRule:
    """Forbidden pairs of a value of one quasi-identifier and a sensitive value.

    Values that are forbidden alike share a row or a column of the matrix.

    Attributes:
        qi: the quasi-identifier's place in the table.
        forbidden: shape (rows, columns).
        row_of_code: row of each code of the quasi-identifier.
        column_of_code: column of each sensitive code.
    """

    qi: int
    forbidden: BoolArray
    row_of_code: IntArray
    column_of_code: IntArray


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

    def attributes(self) -> set[int]:
        """Places of the quasi-identifiers that some rule names."""
        return {q for rule in self.conjunctions for q in rule.qi} | {pair.qi for pair in self.pairs}

    def violated(self, codes: Sequence[CodeArray], sensitive: CodeArray) -> tuple[IntArray, IntArray]:
        """Find the rows that satisfy a rule by their exact values.

        Args:
            codes: code of each quasi-identifier in each slot, each of shape (slots,).
            sensitive: sensitive code of each slot.

        Returns:
            Slots and rule numbers, one entry for each violation.
        """
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
    """What any of some rules on quasi-identifier q forbids."""
    rows, row_of_code = np.unique(np.stack([rule.qi[q] for rule in rules]), axis=1, return_inverse=True)
    columns, column_of_code = np.unique(np.stack([rule.sensitive for rule in rules]), axis=1, return_inverse=True)
    forbidden: BoolArray = np.any(rows[:, :, None] & columns[:, None, :], axis=0)
    return PairRule(q, forbidden, row_of_code.ravel().astype(np.int64), column_of_code.ravel().astype(np.int64))


def unseen_pairs(qi: Sequence[Attribute], sensitive: Attribute, min_expected: float = 5.0) -> tuple[PairRule, ...]:
    """Pairs that never occur together although at least `min_expected` rows were to be expected.

    Args:
        qi: quasi-identifiers.
        sensitive: the sensitive attribute.
        min_expected: least expected count, n p(value) p(sensitive value), for absence to be a rule.

    Returns:
        One rule for each quasi-identifier that has such pairs.
    """
    found = []
    n = max(len(sensitive.codes), 1)
    per_value = np.bincount(sensitive.codes, minlength=sensitive.domain)
    for place, attribute in enumerate(qi):
        per_code = np.bincount(attribute.codes, minlength=attribute.domain)
        code, row_of_code = _frequent(per_code, min_expected * n / per_value.max(initial=1))
        value, column_of_code = _frequent(per_value, min_expected * n / per_code.max(initial=1))
        seen = np.zeros((len(code) + 1, len(value) + 1), dtype=bool)
        seen[row_of_code[attribute.codes], column_of_code[sensitive.codes]] = True
        expected = np.outer(per_code[code], per_value[value]) / n
        forbidden = np.zeros_like(seen)
        forbidden[1:, 1:] = ~seen[1:, 1:] & (expected >= min_expected)
        if forbidden.any():
            found.append(PairRule(place, forbidden, row_of_code, column_of_code))
    return tuple(found)


def _frequent(counts: IntArray, least: float) -> tuple[IntArray, IntArray]:
    """Codes with at least `least` rows, and for every code its place among them plus 1, 0 for the others."""
    frequent = counts >= least
    return np.flatnonzero(frequent).astype(np.int64), np.where(frequent, np.cumsum(frequent), 0).astype(np.int64)
