"""What a planned call of a method promises in words, and what it does not: for readers who do not know the parameters.

A parameter has its sentence where it is a guarantee of the method: l bounds shares where the diversity is 'frequency',
epsilon bounds a release where the method is differentially private.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duckdb_anon.model.function_specs import Method
from duckdb_anon.report.redaction import NOT_COVERED
from duckdb_anon.report.verify_release import BY_CLASS, DIVERSE

_K = (
    "At least {k} released records share each combination of quasi-identifiers, so that the record of a known "
    "individual is found with a probability of at most 1/{k}."
)
_LISTS = "At least {k} individuals have each released list of sensitive values."
_DELTA = (
    "The record of a known individual is found with a probability of at most {delta:.3g}. This is exact where the "
    "sensitive value does not depend on the quasi-identifiers, and measured otherwise."
)
_T = "The sensitive values of each group are distributed as those of the table, up to {t:g}."
_EPSILON = (
    "Whether an individual is in the table changes the probability of any release by a factor of at most "
    "exp({epsilon:g}){but}."
)
_DIVERSITY = {
    "frequency": "No {value} has a share of more than 1/{l:g} in its group of records{but}.",
    "distinct": "Each group of records has at least {l:g} different {value}s; one of them may be far more frequent.",
    "entropy": "The entropy of the {value}s of each group of records is at least ln({l:g}); one of them may have more "
    "than 1/{l:g} of the records.",
    "recursive": "In each group of records the most frequent {value} has less than {c:g} times the records of all but "
    "the {l:g} - 1 most frequent ones.",
}


def promises(method: Method, arguments: Mapping[str, Any], roles: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Sentences on what a call promises, and on what it does not.

    Args:
        method: the method that is called.
        arguments: its parameters as the call was planned: given by name or by position, or filled in.
        roles: role of each released column.

    >>> from duckdb_anon.methods.mondrian import METHOD
    >>> promises(METHOD, {"k": 10}, {"age": "quasi", "wage": "sensitive"})[1][0]
    'It does not limit what the release reveals of wage: an attacker who finds a group may infer its values.'
    """
    columns = {role: [c for c, each in roles.items() if each == role] for role in ("sensitive", "insensitive")}
    groups = _of_groups(method.name, arguments) if columns["sensitive"] else []
    noise = []
    if method.differentially_private:
        failure = arguments.get("delta")
        but = f", but with a probability of {failure:g}" if failure else ""
        noise = [_EPSILON.format(epsilon=arguments["epsilon"], but=but)]
    open_points = []
    if columns["sensitive"] and not (groups or noise):
        open_points.append(
            f"It does not limit what the release reveals of {', '.join(columns['sensitive'])}: an attacker who finds a "
            "group may infer its values."
        )
    if columns["insensitive"]:
        open_points.append(
            f"It says nothing of {', '.join(columns['insensitive'])}, released unchanged: the limit assumes that they "
            "are unknown."
        )
    return [*_of_records(method, arguments), *groups, *noise], [*open_points, *NOT_COVERED]


def _of_records(method: Method, given: Mapping[str, Any]) -> list[str]:
    """On the records of known individuals."""
    k, delta = given.get("k") or 1, given.get("delta")
    found = []
    if k > 1 and "lists" in method.finished:
        found.append(_LISTS.format(k=k))
    if k > 1 and method.name in BY_CLASS and given.get("missing") != "wildcard":
        found.append(_K.format(k=k))
    # of a differentially private method, delta is the probability that epsilon does not hold
    if delta is not None and delta < 1 and not method.differentially_private:
        found.append(_DELTA.format(delta=float(delta)))
    return found


def _of_groups(method: str, given: Mapping[str, Any]) -> list[str]:
    """On the sensitive values of each group of records."""
    least, t = given.get("l") or 1, given.get("t")
    found = []
    if least > 1 and method in DIVERSE:
        value = "released list" if method == "one_to_m_generalize" else "sensitive value"
        but = ", but for values that l_except names" if given.get("l_except") else ""
        text = _DIVERSITY[given.get("diversity") or "frequency"]
        found.append(text.format(l=float(least), c=given.get("c") or 1, value=value, but=but))
    if t is not None and t < 1:
        found.append(_T.format(t=t))
    return found
