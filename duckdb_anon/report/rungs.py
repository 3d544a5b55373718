"""What recommend tries: one line a family of calls, its strengths from weak to strong, cheap families first.

A family is climbed until a step meets the largest risk, since a stronger one would only lose more, or cannot be
taken, since a stronger one asks for more. Costs are those of release, attack and queries on 20,000 census rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_AS_THEY_STAND = "the attacker reads each row as it stands; its columns were permuted inside the bucket"
_PERSONS = "queries count persons by quasi-identifiers; fragment_risk and kl_diversity measure its risk"
_OTHER_RECORDS = "the attacker takes each value as it stands; p of them are their owner's"


@dataclass(frozen=True)
class Family:
    """Calls of one method that differ in strength.

    Attributes:
        method: its SQL name.
        arguments: with {n} for the strength and {l} for an l: the strength, but no more than the table can meet.
        strengths: from weak to strong.
        note: what to keep in mind when its figures are read.
        protects: 'row' for methods that take each row for a person of its own, 'person' for the others.
        finds_columns: whether the method looks for columns in the rows; the call then names those it found.
    """

    method: str
    arguments: str
    strengths: tuple[float, ...]
    note: str = ""
    protects: Literal["row", "person"] = "row"
    finds_columns: bool = False

    def calls(self, most: int) -> list[str]:
        """Arguments of each step, weak to strong, where no l above `most` can be met; each once.

        >>> Family("mondrian", "k := {n}, l := {l}", (5, 10, 25)).calls(8)
        ['k := 5, l := 5', 'k := 10, l := 8', 'k := 25, l := 8']
        """
        texts = [self.arguments.format(n=n, l=min(n, max(most, 2))) for n in self.strengths]
        return list(dict.fromkeys(texts))


FAMILIES: tuple[Family, ...] = (
    Family("anatomy", "l := {l}", (2, 5, 10)),
    Family("merging", "l := {l}", (2, 5, 10), _AS_THEY_STAND, finds_columns=True),
    Family("slicing", "l := {l}, sensitive_column := 'alone'", (2, 5, 10), _AS_THEY_STAND, finds_columns=True),
    Family("muco", "delta := 1/{n}", (5, 7, 10)),
    Family("muco", "delta := 1/{n}, min_changed := 2", (5, 7, 10)),
    Family("incognito", "k := {n}, l := {l}", (5, 10, 25)),
    Family("rr_distort", "p := {n}", (0.9, 0.7, 0.6), _OTHER_RECORDS),
    Family("mondrian", "k := {n}, l := {l}", (5, 10, 25)),
    Family("one_to_m_generalize", "k := {n}, l := {l}", (2, 5, 10), _PERSONS, "person"),
    Family("rmr", "k := {n}", (2, 5, 10), _PERSONS, "person"),
)


def families(methods: Sequence[str] | None, *, persons: bool, repeated: bool) -> list[Family]:
    """The families to try.

    Args:
        methods: names to choose from; None: all.
        persons: whether a column says whose row it is.
        repeated: whether somebody has several rows, so that a row must not be taken for a person.
    """
    units = {"person"} if repeated else {"row", "person"} if persons else {"row"}
    return [f for f in FAMILIES if f.protects in units and (methods is None or f.method in methods)]
