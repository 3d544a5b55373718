"""What a call of a method promises in words, and what it does not: for readers who do not know the parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from duckdb_anon.report.redaction import NOT_COVERED

_PROMISES = {
    "k": "At least {n:g} released records share each combination of quasi-identifiers, so that the record of a known "
    "individual is found with a probability of at most 1/{n:g}.",
    "delta": "The record of a known individual is found with a probability of at most {n:.3g}. This is exact where the "
    "sensitive value does not depend on the quasi-identifiers, and measured otherwise.",
    "l": "No sensitive value has a share of more than 1/{n:g} in its group of records.",
    "t": "The sensitive values of each group are distributed as those of the table, up to {n:g}.",
    "epsilon": "Whether an individual is in the table changes the probability of any release by a factor of at most "
    "exp({n:g}).",
}
_SENSITIVE = ("l", "t", "epsilon")


def promises(call: str, roles: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Sentences on what a call promises, and on what it does not.

    Args:
        call: the call as SQL, its parameters by name.
        roles: role of each column of the table, '' for one that is not released.

    >>> promises("mondrian('people', k := 10)", {"age": "quasi", "wage": "sensitive"})[1][0]
    'It does not limit what the release reveals of wage: an attacker who finds a group may infer its values.'
    """
    found = dict(re.findall(r"\b(k|l|t|delta|epsilon) := ([0-9]+(?:[./][0-9]+)?)", call))
    if "epsilon" in found:
        found.pop("delta", None)  # the probability that epsilon does not hold
    numbers = {name: float(Fraction(text)) for name, text in found.items()}
    holds = [text.format(n=numbers[name]) for name, text in _PROMISES.items() if numbers.get(name, 1) != 1]
    sensitive = [column for column, role in roles.items() if role == "sensitive"]
    not_held = []
    if sensitive and not any(numbers.get(name, 1) != 1 for name in _SENSITIVE):
        not_held.append(
            f"It does not limit what the release reveals of {', '.join(sensitive)}: an attacker who finds a group may "
            "infer its values."
        )
    exact = [column for column, role in roles.items() if role == "insensitive"]
    if exact:
        not_held.append(
            f"It says nothing of {', '.join(exact)}, released unchanged: the limit assumes that they are unknown."
        )
    return holds, [*not_held, *NOT_COVERED]
