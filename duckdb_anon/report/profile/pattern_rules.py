"""Names, addresses and phone numbers by how the values of a column are built, whatever language they are in.

Lists of common names and street words end with the countries they were made for. Names of people are two or more
capitalised words that differ from value to value; an address is words and a house number; where some phone numbers
begin with a country's prefix, the others are theirs too. Job titles are not capitalised in every word, and rooms repeat
their words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_MANY = 30
_NAMES, _ADDRESSES, _PHONES = 0.7, 0.65, 0.65
"""Shares of the values that must be built so: titles, second lines and bare numbers stand among them."""
_PREFIXED = 0.08
_NAME = re.compile(r"[^\W\d_]\.|[^\W\d_][^\W\d_]*(['\u2019-][^\W\d_]+)*")
_TITLE = re.compile(r"[^\W\d_]{2,6}\.")
_PARTICLES = frozenset(
    "af al av bin d da dal de del della den der di do dos du e el la le of ten ter und van von y".split()
)
_STREET = re.compile(r"(\d{1,5}[A-Za-z]?,? +)?\D*[^\W\d_]{3}\D*( \d{1,4} ?[A-Za-z]?)?(,.*)?")
_DIGITS = re.compile(r"\+?[\d ()./-]{7,22}")
_WORDS = re.compile(r"[^\W\d_]{3,}")


def shaped(texts: Sequence[str]) -> tuple[str, float] | None:
    """The kind of distinct values, and the share of them that is of it; None where they are few, or none fits.

    >>> shaped([f"{a}ro {b}ska" for a in "Vi Ta Mo Le Du Pi".split() for b in "Ry Ne Ba So Zu".split()])
    ('name', 1.0)
    >>> shaped([f"Room {k}" for k in range(40)]) is None
    True
    """
    if len(texts) < _MANY:
        return None
    phones = sum(bool(_DIGITS.fullmatch(text)) and 8 <= _figures(text) <= 15 for text in texts) / len(texts)
    if phones >= _PHONES and sum(text.startswith(("+", "(+", "00")) for text in texts) >= _PREFIXED * len(texts):
        return "phone", phones
    names = [words for words in map(_name, texts) if words]
    share = len(names) / len(texts)
    if share >= _NAMES and _varied([w[0] for w in names], 0.2) and _varied([w[-1] for w in names], 0.12):
        return "name", share
    addresses = [t for t in texts if " " in t and len(t) <= 100 and _figures(t) > 0 and _STREET.fullmatch(t)]
    share = len(addresses) / len(texts)
    if share >= _ADDRESSES and len({word for text in addresses for word in _WORDS.findall(text)}) >= len(addresses) / 2:
        return "address", share
    return None


def _figures(text: str) -> int:
    return sum(character.isdigit() for character in text)


def _name(text: str) -> list[str]:
    """Words of a name without titles and particles; none where it is not built like one."""
    words = text.replace(",", " ").split()
    name_words = [word for word in words if word.lower() not in _PARTICLES and not _TITLE.fullmatch(word)]
    in_capitals = any(len(word) > 2 and word.isupper() for word in name_words)
    built = not in_capitals and all(_NAME.fullmatch(word) and word[0].isupper() for word in name_words)
    return name_words if built and 2 <= len(name_words) <= 5 else []


def _varied(words: Sequence[str], least: float) -> bool:
    return len(set(words)) >= least * len(words)
