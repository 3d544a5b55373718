"""What values look like, whatever their column is called: checked by libraries that know the rules.

Numbers of people, cards and accounts are checked by python-stdnum (their check digits), phone numbers by phonenumbers
(Google's library of numbering plans). A kind is found when nearly all of the values are of it: a check digit lets one
number in ten or eleven pass, so that a column of random numbers passes none of them as a whole.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec

from duckdb_anon.model.errors import AnonError, ParameterError
from duckdb_anon.report.profile.names import lines_of
from duckdb_anon.report.profile.pattern_rules import shaped

ENOUGH = 0.85
_FEW = 4
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}")
_URL = re.compile(r"(https?://|www\.)\S+|\S+\.(com|org|net|de|fr|uk|io|eu)(/\S*)?", re.IGNORECASE)
_MAC = re.compile(r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")
_UUID = re.compile(r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_POSTCODES = tuple(
    re.compile(pattern)
    for pattern in (
        r"[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}",  # United Kingdom
        r"\d{4} ?[A-Z]{2}",  # Netherlands
        r"[A-Z]\d[A-Z] ?\d[A-Z]\d",  # Canada
        r"\d{5}-\d{4}",  # United States, ZIP+4
        r"\d{2}-\d{3}",  # Poland
        r"\d{5}-\d{3}",  # Brazil
        r"\d{4}-\d{3}",  # Portugal
    )
)
_FIVE = re.compile(r"\d{4,6}")
_STREET = re.compile(
    r"(\d+[A-Za-z]?,? .*(st|street|ave|avenue|rd|road|blvd|lane|ln|drive|dr|way|court|ct|place|pl|square|sq|hill|"
    r"parkway|pkwy|terrace|close|crescent|row|gardens?|rue|chemin|allee|route|apt|suite|unit|ways?|mills?|"
    r"[a-z]+s?)\b.*)|(.*(stra(ss|ß)e|str\.|weg|platz|gasse|allee|ring|calle|via|rue|avenue|plaza|laan|straat)\b.*\d+.*)",
    re.IGNORECASE,
)
_DAY = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}")
_QUANTITY = re.compile(r"[-+]?\d+([.,]\d+)? ?([^\W\d_]{1,12}|%)\.?")
_MOST_UNITS = 5
_LISTED = re.compile(r"[^;|]*[^\W\d_][^;|]*([;|][^;|]+)+")
_SOME = 0.25
"""Share of the values from which on several facts stand in one text."""
_SCALAR = re.compile(r"[^\[\]{}\"',=:]+")
_INSIDE = 0.25
"""Share of the members of lists, MAPs and JSON texts that are of a kind."""
_CODE = re.compile(r"(?=.*\d)[A-Z]{0,4}[-.]?\d[\dA-Z]*([-./][\dA-Z]+)*", re.ASCII)
_NUMBER = re.compile(r"[-+]?\d*\.?\d+([eE][-+]?\d+)?")
_WORDS = re.compile(r"[^\W\d_]{2,}")
_CARD = re.compile(r"(4\d{12}(\d{3}){0,2}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|6\d{11,18}|"
                   r"(5018|5020|5038|2131|1800|35\d\d)\d{8,15})")  # fmt: skip
_PERSONAL = (
    "gb.nhs", "fr.nir", "de.idnr", "es.dni", "es.nie", "it.codicefiscale", "nl.bsn", "be.nn", "se.personnummer",
    "dk.cpr", "fi.hetu", "no.fodselsnummer", "pl.pesel", "cz.rc", "ro.cnp", "bg.egn", "br.cpf", "cl.rut", "mx.curp",
    "in_.aadhaar", "cn.ric", "kr.rrn", "tr.tckimlik", "za.idnr", "il.idnr", "ee.ik", "lt.asmens", "hr.oib", "gr.amka",
    "ch.ssn", "at.vnr", "ie.pps", "ca.sin", "pt.cc",
)  # fmt: skip
_SSN = re.compile(r"\d{3}-\d{2}-\d{4}")
_NAMES = {
    kind: frozenset(word for found, words in lines_of("names_of_people.txt") if found == kind for word in words.split())
    for kind in ("forenames", "surnames")
}


def require_libraries() -> None:
    """Raise unless the libraries that know the rules are installed."""
    if not (find_spec("stdnum") and find_spec("phonenumbers")):
        raise AnonError(
            "needs python-stdnum and phonenumbers, which know what numbers of people look like; "
            "pip install 'duckdb-anon[profile]'"
        )


def country_of(given: str) -> str:
    """The code of a country whose telephone numbers are known, in capitals."""
    code = given.strip().upper()
    if code not in import_module("phonenumbers").SUPPORTED_REGIONS:
        raise ParameterError(f"country := '{given}' is no two-letter code of a country, such as 'US', 'DE' or 'GB'")
    return code


def looks_like(values: Sequence[str], country: str) -> tuple[str, float]:
    """The kind of distinct values, and the share of them that is of it; ('', 0.0) where none fits.

    >>> looks_like(["a@b.org", "c.d@e.net", "f@g.co.uk", "h@i.de"], "US")
    ('mail', 1.0)
    >>> looks_like(["1", "2", "3", "4"], "US"), looks_like(["DE;asthma", "FR;flu", "IT;flu", "flu"], "US")
    (('', 0.0), ('list', 0.75))
    """
    texts = [value.strip() for value in values if value.strip()]
    if len(texts) < _FEW:
        return "", 0.0
    if all(text[0] in "[{" for text in texts):
        return _inside(texts, country)
    lists = sum(bool(_LISTED.fullmatch(text)) for text in texts) / len(texts)
    if lists >= _SOME:
        return "list", lists
    units = [found.group(2).lower() for found in map(_QUANTITY.fullmatch, texts) if found]
    if len(units) >= ENOUGH * len(texts) and len(set(units)) <= _MOST_UNITS:
        return "quantity", len(units) / len(texts)
    for kind, test in _tests(country):
        share = _share(test, texts, _MOSTLY.get(kind, ENOUGH))
        if share is not None:
            return kind, share
    return shaped(texts) or _described(texts)


def _inside(texts: Sequence[str], country: str) -> tuple[str, float]:
    """The kind of identifier that members of lists, MAPs and JSON texts are."""
    members = [member.strip() for text in texts for member in _SCALAR.findall(text) if member.strip()]
    for kind, test in _tests(country):
        share = _share(test, members, _INSIDE) if kind in _NESTED and members else None
        if share is not None:
            return kind, share
    return "", 0.0


def _share(test: Callable[[str], bool], texts: Sequence[str], least: float) -> float | None:
    """Share of the texts that pass a test; None, as soon as that is certain, where it is below the least."""
    passed = len(texts)
    for text in texts:
        passed -= not test(text)
        if passed / len(texts) < least:
            return None
    return passed / len(texts)


_NESTED = ("mail", "ip address", "iban", "card number", "national id", "phone")
_MOSTLY = {"name": 0.2, "address": 0.7, "phone": 0.75}
"""Names are found by the common ones among them; addresses and phone numbers have many forms."""


def _tests(country: str) -> list[tuple[str, Callable[[str], bool]]]:
    tests: list[tuple[str, Callable[[str], bool]]] = [
        ("mail", lambda text: bool(_MAIL.fullmatch(text))),
        ("ip address", _is_ip),
        ("device number", lambda text: bool(_MAC.fullmatch(text))),
        ("key", lambda text: bool(_UUID.fullmatch(text))),
        ("url", lambda text: bool(_URL.fullmatch(text))),
        ("iban", _checked("iban")),
        ("card number", _is_card),
        ("national id", lambda text: bool(_SSN.fullmatch(text)) and _checked("us.ssn")(text)),
        *(("national id", _checked(name)) for name in _PERSONAL),
        ("device number", lambda text: len(text) >= 14 and _checked("imei")(text)),
        ("date", lambda text: bool(_DAY.fullmatch(text))),
        ("postcode", lambda text: any(pattern.fullmatch(text) for pattern in _POSTCODES)),
        ("phone", lambda text: _is_phone(text, country)),
        ("address", lambda text: " " in text and len(text) < 120 and bool(_STREET.fullmatch(text.replace("\n", " ")))),
        ("name", _is_name),
    ]
    return tests


def _checked(name: str) -> Callable[[str], bool]:
    module = import_module(f"stdnum.{name}")

    def valid(text: str) -> bool:
        # a number in a column of numbers has lost its leading zeros and cannot be told from a count
        return len(text) >= 8 and bool(module.is_valid(text))

    return valid


def _is_ip(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _is_card(text: str) -> bool:
    digits = re.sub(r"[ -]", "", text)
    return bool(_CARD.fullmatch(digits)) and bool(import_module("stdnum.luhn").is_valid(digits))


def _is_phone(text: str, country: str) -> bool:
    if not re.fullmatch(r"\+?[\d ()./x-]{7,25}|\+?[\d ()./-]{7,20} ?(x|ext\.?) ?\d{1,6}", text):
        return False
    if text.isdigit() and not (len(text) in (10, 11) and text[0] in "023456789"):
        return False
    digits = re.sub(r"\D", "", re.sub(r"(x|ext).*", "", text))
    if text[0] in "+0(" and not text.isdigit() and 9 <= len(digits) <= 15:
        return True  # a prefix and groups of figures: so they are written in every country
    phones = import_module("phonenumbers")
    try:
        number = phones.parse(text, country)
    except phones.NumberParseException:
        return False
    # of made-up and old numbers the length may be right and the area code unknown
    return bool(phones.is_possible_number(number)) and (not text.isdigit() or bool(phones.is_valid_number(number)))


def _is_name(text: str) -> bool:
    parts = [part.lower() for part in _WORDS.findall(text)]
    if not 1 <= len(parts) <= 5 or any(char.isdigit() for char in text) or not 2 < len(text) <= 60:
        return False  # two letters are codes of countries and states
    return parts[0] in _NAMES["forenames"] or parts[-1] in _NAMES["surnames"]


def _described(texts: Sequence[str]) -> tuple[str, float]:
    """Free text, codes, or numbers that could be a postcode: what no rule tells for certain."""
    long = sum(len(_WORDS.findall(text)) >= 5 for text in texts) / len(texts)
    if long >= 0.5:
        return "free text", long
    five = sum(bool(_FIVE.fullmatch(text)) for text in texts) / len(texts)
    if five >= ENOUGH and len({len(text) for text in texts}) == 1 and any(text.startswith("0") for text in texts):
        return "postcode", five
    code = sum(bool(_CODE.fullmatch(text)) and not _NUMBER.fullmatch(text) for text in texts) / len(texts)
    return ("code", code) if code >= ENOUGH else ("", 0.0)
