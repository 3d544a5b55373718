"""Requirements as compiled rules: what a partitioner asks of one part, in one pass over its rows.

Each `Requirement` says itself as rules; this module checks them. The array form of a requirement
(`Requirement.holds`) and its rules are written apart: finished groups are checked again with the former.
Formulas and sources: see `requirements`, `closeness`, `slicing.diversity` and `slicing.chance`.

Where rows belong to persons, a group's size is the number of its persons and a value's count the number of
persons that have it, so that several rows of one person never count as several people.

Cost: linear in the rows of the part; a sort of its different values for ordered distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray

BoolArray = NDArray[np.bool_]
SIZE, FREQUENCY, DISTINCT, ENTROPY, RECURSIVE, EQUAL, ORDERED, HIERARCHICAL, CONDITIONAL, COMMON, LINKABLE = range(11)
PERSON_ROWS = 11
TOLERANCE = 1e-9
_NUMBERS = 4


class Rule(NamedTuple):
    """One condition on a part.

    Attributes:
        kind: which of the constants above.
        numbers: its parameters, at most four.
        view: code of the column it is about by sensitive code; None where they are the same.
        codes: whole numbers it needs by code.
        shares: numbers it needs by code.
        rows: whether rows are counted even where persons are.
    """

    kind: int
    numbers: tuple[float, ...] = ()
    view: CodeArray | None = None
    codes: CodeArray | None = None
    shares: FloatArray | None = None
    rows: bool = False


class Rules(NamedTuple):
    """Several rules as flat arrays.

    Attributes:
        kind: kind of each rule, shape (rules,).
        number: parameters, shape (rules, 4).
        rows: whether a rule counts rows even where persons are counted.
        column: which row of `views` a rule reads its codes through.
        views: code by sensitive code; row 0 is the sensitive code itself.
        codes_at: where the rule's whole numbers start in `codes`, shape (rules + 1,).
        codes: see `Rule.codes`.
        shares_at: where the rule's numbers start in `shares`, shape (rules + 1,).
        shares: see `Rule.shares`.
        person: person of each source row; no entries where rows are persons.
        pair: number of the (person, value) pair of each source row, shape (views, rows).
    """

    kind: IntArray
    number: FloatArray
    rows: BoolArray
    column: IntArray
    views: IntArray
    codes_at: IntArray
    codes: IntArray
    shares_at: IntArray
    shares: FloatArray
    person: IntArray
    pair: IntArray

    @staticmethod
    def of(rules: Sequence[Rule], sensitive: CodeArray | None, person: CodeArray | None) -> Rules:
        """Flatten rules.

        Args:
            rules: what every part must satisfy.
            sensitive: sensitive code of each row, or None.
            person: person of each row, or None where every row is a person.
        """
        domain = 1 if sensitive is None else int(sensitive.max(initial=0)) + 1
        views = [np.arange(domain, dtype=np.int64)]
        which = []
        for rule in rules:
            which.append(0 if rule.view is None else len(views))
            if rule.view is not None:
                views.append(rule.view.astype(np.int64))
        no_codes, no_shares = np.empty(0, np.int64), np.empty(0, np.float64)
        codes = [no_codes if rule.codes is None else rule.codes.astype(np.int64) for rule in rules]
        shares = [no_shares if rule.shares is None else rule.shares.astype(np.float64) for rule in rules]
        number = np.zeros((len(rules), _NUMBERS))
        for row, rule in zip(number, rules, strict=True):
            row[: len(rule.numbers)] = rule.numbers
        pairs = np.empty((len(views), 0), np.int64)
        if person is not None and sensitive is not None:
            pairs = np.array([_pairs(person, view[sensitive]) for view in views])
        return Rules(
            np.array([rule.kind for rule in rules], dtype=np.int64),
            number,
            np.array([rule.rows for rule in rules], dtype=np.bool_),
            np.array(which, dtype=np.int64),
            np.array(views),
            _starts(codes),
            np.concatenate([no_codes, *codes]),
            _starts(shares),
            np.concatenate([no_shares, *shares]),
            no_codes if person is None else person.astype(np.int64),
            pairs,
        )


def _starts(arrays: Sequence[IntArray] | Sequence[FloatArray]) -> IntArray:
    return np.cumsum([0, *(len(array) for array in arrays)]).astype(np.int64)


def _pairs(person: CodeArray, code: IntArray) -> IntArray:
    return keys_of([person, code]).of_row


class Tally(NamedTuple):
    """Working space for one thread.

    Attributes:
        rows: rows (persons) of each code, zero between checks.
        other: second set of counts, zero between checks.
        touched: the codes that occur.
        top: largest counts, in descending order.
        chance: probabilities of small numbers of values.
        seen: last check in which each person or pair was met.
        check: number of the current check, shape (1,).
    """

    rows: IntArray
    other: IntArray
    touched: IntArray
    top: IntArray
    chance: FloatArray
    seen: IntArray
    check: IntArray

    @staticmethod
    def of(rules: Rules) -> Tally:
        """Make space for checking these rules."""
        # the whole table may have more values than the rows at hand
        values = int(np.diff(rules.shares_at).max(initial=0))
        codes = (rules.views, rules.codes, rules.person)
        domain = max(values, *(int(each.max(initial=0)) for each in codes)) + 2
        most = 2 + int(rules.number[:, 0].max(initial=0)) if len(rules.kind) else 2
        met = max(int(rules.person.max(initial=-1)), int(rules.pair.max(initial=-1))) + 1
        small = np.zeros(min(most, 2 + len(rules.views[0]) + domain), dtype=np.int64)
        return Tally(
            np.zeros(domain, np.int64),
            np.zeros(domain, np.int64),
            np.zeros(domain, np.int64),
            small,
            np.zeros(len(small) + 1),
            np.zeros(met, np.int64),
            np.zeros(1, np.int64),
        )
