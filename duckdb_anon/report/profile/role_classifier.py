"""From what a column contains to a role, its reason, a hierarchy and Safe Harbor's identifier.

The rules a data steward would use, written down: direct identifiers are never released; what others can know of a
person (demographics, dates, places, work) is a quasi-identifier; what a person would mind seeing known is sensitive.
A column about which nothing is known is taken for a quasi-identifier, the careful choice among those that release it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from duckdb_anon.model.quoting import ident
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_moment, is_nested, is_number
from duckdb_anon.report.profile.names import names_a_group, names_a_household, names_an_event

IDENTIFIERS = {
    "name": "A names",
    "address": "B geographic subdivisions smaller than a state",
    "phone": "D telephone numbers",
    "fax": "E fax numbers",
    "mail": "F email addresses",
    "national id": "G social security numbers",
    "medical record number": "H medical record numbers",
    "health plan number": "I health plan beneficiary numbers",
    "account number": "J account numbers",
    "iban": "J account numbers",
    "card number": "J account numbers",
    "license number": "K certificate and license numbers",
    "vehicle number": "L vehicle identifiers",
    "device number": "M device identifiers",
    "url": "N web URLs",
    "ip address": "O IP addresses",
    "biometric": "P biometric identifiers",
    "photo": "Q full-face photographs",
    "key": "R any other unique number",
}
"""Direct identifiers, with the item of HIPAA's Safe Harbor list (45 CFR 164.514(b)(2)(i)) each is."""
_PLACES, _DATES = "B geographic subdivisions smaller than a state", "C dates, except the year"
QUASI = {
    "date of birth": (_DATES, "date"),
    "month of birth": (_DATES, ""),
    "date": (_DATES, "date"),
    "postcode": (_PLACES, "code"),
    "place": (_PLACES, "text"),
    "coordinate": (_PLACES, "number"),
    "year of birth": ("", "number"),
    "state": ("", ""),
    "country": ("", "text"),
    "age": ("C ages over 89", "number"),
    "sex": ("", ""),
    "ethnicity": ("", ""),
    "marital status": ("", ""),
    "relationship": ("", ""),
    "education": ("", "text"),
    "occupation": ("", "text"),
    "working hours": ("", "number"),
}
"""Quasi-identifiers, with Safe Harbor's item and the kind of `anon_hierarchy` that suits each."""
SENSITIVE = {
    "health": "health data",
    "belief": "a special category (GDPR article 9)",
    "judicial": "criminal, school or court records",
    "income": "income, debt or payments",
}
_REPEATED = 1.05
"""Rows for each value from which on a number of individuals identifies them in several rows."""
_NUMBERS_OF_PERSONS = ("medical record number", "health plan number")


@dataclass(frozen=True)
class Facts:
    """What is known of a column."""

    name: str  # name, type: as the table has them
    type: str
    rows: int  # rows, distinct: numbers of rows, of different values
    distinct: int
    nulls: float  # share of rows without a value
    uniqueness: float  # share of rows whose value nobody else has
    called: str  # what its name says, see `names.hinted`
    looks_like: str  # what its values are, see `values.looks_like`
    share: float  # share of the values that are so

    @property
    def repeats(self) -> float:
        """Rows with a value for each different value."""
        return self.rows * (1 - self.nulls) / max(self.distinct, 1)


_NESTED = (
    "a nested column has no role of its own, so it is left out: expand it into columns and label those, or label it "
    "insensitive to release it unchanged"
)
_INTERVAL = (
    "no method takes an INTERVAL, so it is left out: make it a number, such as epoch(column), and label that, or label "
    "it insensitive to release it unchanged"
)


@dataclass(frozen=True)
class Suggestion:
    """What a column is, its role and why."""

    kind: str
    role: str
    reason: str
    hierarchy: str
    safe_harbor: str


def suggested(facts: Facts) -> Suggestion:
    """The role of a column and the reason for it."""
    kind, how = _kind(facts)
    if is_nested(facts.type):
        reason = _INTERVAL if facts.type == "INTERVAL" else _NESTED
        return Suggestion(kind, "identifier", reason, "", IDENTIFIERS.get(kind, ""))
    number = is_number(facts.type) and not is_integer(facts.type)
    repeated = kind in _NUMBERS_OF_PERSONS and facts.repeats >= _REPEATED
    if kind in ("key", "person key") or repeated or (not kind and facts.uniqueness > 0.95 and not number):
        return _key(facts, kind, how)
    if kind in IDENTIFIERS:
        return Suggestion(kind, "identifier", f"{how}: a direct identifier", "", IDENTIFIERS[kind])
    if kind == "free text":
        reason = f"{how}: free text may contain names and other identifiers"
        return Suggestion(kind, "identifier", reason, "", "A to R, unseen")
    if kind == "list":
        reason = (
            f"{how}: several facts in one text. Split it into columns, as split_part({ident(facts.name)}, ';', 1) "
            "does, and label those, or label it sensitive"
        )
        return Suggestion(kind, "identifier", reason, "", "")
    if facts.rows and facts.distinct <= 1 and kind not in SENSITIVE and (not facts.nulls or facts.nulls == 1):
        return Suggestion("constant", "insensitive", "one value in all rows", "", "")
    if kind == "weight":
        return Suggestion(kind, "quasi", f"{how}: a survey weight reveals the stratum and may be unique", "number", "")
    if kind in SENSITIVE:
        return Suggestion(kind, "sensitive", f"{how}: {SENSITIVE[kind]}", "", "")
    if kind in QUASI:
        reason = f"{how}: other people may know it"
        return Suggestion(kind, "quasi", reason, _hierarchy(facts, kind), QUASI[kind][0])
    numeric = is_number(facts.type)
    tree = "number" if numeric and facts.distinct > 20 else "code" if kind == "code" else ""
    reason = f"{how or 'its content is not recognized'}: treated as known to other people, the careful choice"
    return Suggestion(kind, "quasi", reason, tree, "")


def _hierarchy(facts: Facts, kind: str) -> str:
    """The kind of hierarchy that can be made of the column: whole numbers are no dates, times of the day have none."""
    tree = QUASI[kind][1]
    if tree != "date" or facts.type == "DATE" or facts.type.startswith("TIMESTAMP"):
        return tree
    if is_number(facts.type):
        return "number"
    return tree if facts.looks_like == "date" else ""


def with_single_person(found: Sequence[tuple[Facts, Suggestion]], labelled: bool) -> list[Suggestion]:
    """The suggestions with at most one person column, that of most individuals; none where one is `labelled`."""
    candidates = [facts for facts, suggestion in found if suggestion.role == "person"]
    named = [f for f in candidates if f.called in ("person key", *_NUMBERS_OF_PERSONS)] or candidates
    chosen = None if labelled or not named else max(named, key=lambda facts: facts.distinct)
    suggestions = []
    for facts, suggestion in found:
        if suggestion.role == "person" and facts is chosen:
            others = ", ".join(f"'{other.name}'" for other in candidates if other is not chosen)
            more = f"; other candidates, with fewer or as many individuals: {others}" if others else ""
            suggestion = replace(suggestion, reason=suggestion.reason + more)
        elif suggestion.role == "person":
            why = f"'{chosen.name}' is the person column" if chosen else "another column is labelled as the person"
            suggestion = replace(suggestion, role="identifier", reason=f"identifies an individual, and {why}")
        suggestions.append(suggestion)
    return suggestions


def _kind(facts: Facts) -> tuple[str, str]:
    """What a column is, and how that shows; what values are checked to be comes before what the name says."""
    seen = f"{facts.share:.0%} of its values have this format"
    checked = ("mail", "ip address", "url", "iban", "card number", "national id", "device number", "phone")
    # numbers that share their form with others: the name says which they are
    numbers = ("medical record number", "health plan number", "account number")
    of_others = facts.looks_like in ("phone", "national id") and facts.called in numbers
    if facts.looks_like in checked and facts.called != "fax" and not of_others:
        return facts.looks_like, seen
    if is_moment(facts.type) or facts.looks_like == "date":
        by_name = facts.called == "date of birth"
        return ("date of birth", "its name says so") if by_name else ("date", "it contains dates")
    if facts.called and not _contradicted(facts):
        return facts.called, "its name says so"
    return (facts.looks_like, seen) if facts.looks_like else ("", "")


def _contradicted(facts: Facts) -> bool:
    """Whether the values cannot be what the name says."""
    few, numeric = 0 < facts.distinct <= 2, is_number(facts.type)  # an empty table contradicts nothing
    if facts.called in ("name", "address", "mail", "url"):
        return numeric or few
    # 'citizen' may be yes or no
    return few if facts.called in ("date", "coordinate", "country") else facts.called == "free text" and numeric


def _key(facts: Facts, kind: str, how: str) -> Suggestion:
    of_individual = kind in ("person key", *_NUMBERS_OF_PERSONS)
    enough = facts.repeats >= _REPEATED if of_individual else facts.repeats >= 1.5 and facts.uniqueness < 0.5
    if names_an_event(facts.name) and facts.uniqueness < 0.95:
        reason = f"{how or 'its name says so'}: key of a visit, an order or another event, not of an individual"
        return Suggestion("key", "identifier", reason, "", IDENTIFIERS["key"])
    if kind and not names_a_group(facts.name) and enough and facts.distinct > 10:
        reason = (
            f"{how}: each value occurs in {facts.repeats:.1f} rows on average, so it identifies the individual of a row"
        )
        if facts.nulls:
            reason += f"; {facts.nulls:.2%} of the rows have none: leave them out, since methods refuse them"
        return Suggestion(kind, "person", reason, "", IDENTIFIERS["key"])
    if facts.uniqueness <= 0.5 and names_a_group(facts.name):
        reason = "its name says so: key of a group of individuals"
        if names_a_household(facts.name):
            reason += "; label it household if whoever recognizes one member finds the others"
        return Suggestion("group key", "quasi", reason, "", "")
    if facts.uniqueness > 0.5 or kind == "key":
        why = how or f"{facts.uniqueness:.0%} of the rows have a unique value"
        return Suggestion(kind or "key", "identifier", f"{why}: it identifies a row", "", IDENTIFIERS["key"])
    return Suggestion(kind, "quasi", f"{how}: other people may know it", "", "")
