"""What the name of a column says of its values: the words of a dozen languages in `column_names.txt`.

Column names are cut into words (`dateOfBirth`, `date_of_birth`, `DATE OF BIRTH`), so that `age` is not found in `page`.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path


def lines_of(name: str) -> list[tuple[str, str]]:
    """Kind and text of each line of a word list next to this module."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    split = (line.partition(": ") for line in lines if not line.startswith("#"))
    return [(kind, text) for kind, _, text in split]


# the last letter of a Greek word is written as in its middle after casefold()
_PATTERNS = tuple(
    (kind, re.compile(pattern.replace("\u03c2", "\u03c3"))) for kind, pattern in lines_of("column_names.txt")
)
_WORD = re.compile(r"[^\W\d_]+|\d+")
_QUALIFIERS = {"the", "my", "his", "her", "main", "current", "primary", "secondary", "new", "old", "is", "has", "flag"}


def words(column: str) -> list[str]:
    """Words of a column's name, in lower case and without accents.

    >>> words("dateOfBirth"), words("UHRSWORK"), words("zip_code2")
    (['date', 'of', 'birth'], ['uhrswork'], ['zip', 'code', '2'])
    """
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", column).casefold()
    plain = "".join(c for c in unicodedata.normalize("NFKD", split) if not unicodedata.combining(c))
    return _WORD.findall(plain)


_GROUPS = re.compile(
    r"school|class(room)?|house ?hold|hh|family|store|shop|country|region|city|state|district|area|dep(artmen)?t|"
    r"company|firm|team|branch|site|hospital|clinic|ward|product|item|category|group|station|course|room|vendor|"
    r"supplier"
)


_EVENTS = re.compile(
    r"visit|lab|order|encounter|event|case|claim|invoice|transaction|booking|admission|stay|session|record|row|sample|"
    r"specimen|prescription|ticket|payment|test|exam|appointment|shipment|delivery|aufenthalt|besuch|bestellung|rechnung|"
    r"commande|facture|visite|sejour"
)
_INDIVIDUALS = re.compile(
    r"person|patient|subject|member|client|customer|user|employee|student|participant|respondent|pupil|kunde|mitarbeiter"
)


def names_an_event(column: str) -> bool:
    """Whether a key is that of a visit, an order or another event, which no individual is.

    >>> names_an_event("visit_id"), names_an_event("orderNo"), names_an_event("patient_record_id")
    (True, True, False)
    """
    given = words(column)
    return any(_EVENTS.fullmatch(word) for word in given) and not any(_INDIVIDUALS.fullmatch(word) for word in given)


def names_a_group(column: str) -> bool:
    """Whether a key is that of something that many individuals share.

    >>> names_a_group("school_id"), names_a_group("hhId"), names_a_group("patient_id")
    (True, True, False)
    """
    return any(_GROUPS.fullmatch(word) for word in words(column))


def names_a_household(column: str) -> bool:
    """Whether a key of a group is that of a household.

    >>> names_a_household("hhId"), names_a_household("school_id")
    (True, False)
    """
    return any(word in ("hh", "household", "family") for word in words(column))


def hinted(column: str) -> str:
    """What a column is called: a kind of value, '' where its name says nothing.

    The whole name counts before its end, the end before its beginning: `patient_name` is a name, `name_of_city` a city.

    >>> hinted("e_mail"), hinted("customer_birth_date"), hinted("page"), hinted("wt"), hinted("wt71")
    ('mail', 'date of birth', '', 'weight', 'health')
    """
    given = [word for word in words(column) if word not in _QUALIFIERS] or words(column)
    numbered = [given]  # body weights of a year, `wt71`, are no survey weights
    while len(given) > 1 and given[-1].isdigit():
        given = given[:-1]
    spans = (
        numbered
        + [given[start:] for start in range(len(given))]
        + [given[:end] for end in range(len(given) - 1, 0, -1)]
    )
    for span in spans:
        text = " ".join(span)
        for kind, pattern in _PATTERNS:
            if pattern.fullmatch(text) or pattern.fullmatch(text.replace(" ", "")):
                return kind
    return ""
