"""Transformations of identifiers, and the normal form in which they are compared with released texts.

Both sides are read alike: full-width characters, letters without case and accents, umlauts written in two letters,
no punctuation, no leading zeros. What is left are the forms below, one row each.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.release_formats.duckdb_types import is_moment, is_number

TEXT, DIGEST, SHORT, NUMBER, DATE = range(5)
"""How much agreement is no chance: of a text, of a digest, which is never by chance, of less than a text, of a
number, of a date."""

_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_WIDE = "".join(chr(ord(letter) + 0xFEE0) for letter in _ASCII)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DATES = (
    "%Y%m%d", "%d%m%Y", "%-d%-m%Y", "%m%d%Y", "%-m%-d%Y", "%d%m%y", "%m%d%y",
    "%-d%B%Y", "%B%-d%Y", "%-d%b%Y", "%b%-d%Y", "%Y%-m%-d", "%Y%j",
)  # fmt: skip
_UNLIKELY = 12
_DIGESTS = {"MD5": ("md5", 32), "SHA-1": ("sha1", 40), "SHA-256": ("sha256", 64)}


@dataclass(frozen=True)
class Form:
    """A transformation of an identifier: SQL of its normal form, and how much agreement with it is no chance."""

    name: str
    sql: str
    rule: int = TEXT


def spelled(text: str) -> str:
    """SQL of a text in small ASCII letters as far as possible, with its punctuation."""
    other = f"strip_accents(lower(translate({text}, '{_WIDE}', {literal(_ASCII)})))"
    return f"case when strlen({text}) = length({text}) then lower({text}) else {other} end"


def words_of(letters: str) -> str:
    """SQL of the words of a text that `spelled` gave."""
    return f"regexp_extract_all({letters}, '[\\pL\\pN]+')"


def joined(letters: str) -> str:
    """SQL of the normal form of letters and digits that `spelled` gave."""
    return f"replace(replace(replace(ltrim({letters}, '0'), 'ae', 'a'), 'oe', 'o'), 'ue', 'u')"


def normal(letters: str) -> str:
    """SQL of the normal form of a text that `spelled` gave."""
    return joined(f"regexp_replace({letters}, '[^\\pL\\pN]+', '', 'g')")


def read(kind: str) -> str:
    """SQL of what forms of an identifier are made of, and of its number, which is a date's in days since 1970.

    `t`: its text; `s`: as it is spelled; `words`: of its text, or of an e-mail address before '@'; `born`: its date.
    """
    words, born, number = "null::varchar[]", "null::timestamp", "try_cast(id as double)"
    if is_moment(kind):
        born, number = "try_cast(id as timestamp)", "epoch(id) / 86400"
    elif not is_number(kind):
        words, born = words_of(spelled("split_part(id::varchar, '@', 1)")), "try_cast(id as timestamp)"
        digits = "regexp_replace(t, '\\D+', '', 'g')"
        number = f"coalesce(epoch(born) / 86400, case when length({digits}) between 4 and 15 then {digits}::double end)"
    spelling = "t" if is_number(kind) or is_moment(kind) else spelled("t")
    return f"id::varchar as t, {spelling} as s, {words} as words, {born} as born, {number} as number"


def forms(kind: str, cuts: Collection[int], longest: int, *, dated: bool) -> list[Form]:
    """Transformations of an identifier of a type, the identity first, which read the columns of `read`.

    `cuts`: lengths to which digests may be cut; `longest`: that of the texts that they are compared with, to which
    longer ones are not transformed; `dated`: whether some identifiers are dates.
    """
    dates = [Form("a date", joined(f"lower(strftime(born, '{pattern}'))"), DATE) for pattern in _DATES if dated]
    if is_moment(kind):
        return dates
    short = "case when length(s) <= {} then {} end".format
    spellings = ("t",) if is_number(kind) else ("t", "lower(trim(t))", "upper(trim(t))")
    found = [Form("unchanged", normal("s")), Form("reversed", normal("reverse(s)")), *dates]
    for name, (function, length) in _DIGESTS.items():
        digests = [f"{function}({spelling})" for spelling in spellings]
        found += [Form(name, joined(digest), DIGEST) for digest in digests if longest >= length // 2]
        found += [Form(name, normal(f"lower(to_base64(unhex({digests[0]})))"), DIGEST)] * (longest >= length // 3)
        found += [Form(f"{name}, cut", joined(f"{digests[0]}[:{cut}]"), SHORT) for cut in cuts if cut < length]
    if longest >= _UNLIKELY:
        found += [
            Form("hash", "hash(id)::varchar", DIGEST),
            Form("hash", joined("lower(to_hex(md5_number(t)))"), DIGEST),
        ]
    if is_number(kind):
        return [*found, Form("hexadecimal", joined("lower(to_hex(try_cast(id as hugeint)))"), NUMBER)]
    for spelling in spellings:
        found += [Form("hexadecimal", short(longest // 2, joined(f"lower(hex({spelling}))")))]
        found += [Form("base64", short(longest, normal(f"lower(to_base64(encode({spelling})))")))]
    found += [Form("URL", short(longest, normal("lower(url_encode(t))")))]
    found += [Form("rot13", normal(f"translate(s, '{_LETTERS}', '{_LETTERS[13:]}{_LETTERS[:13]}')"))]
    first, last = "words[1]", "words[-1]"
    turned = (f"{last} || array_to_string(words[:-2], '')", f"array_to_string(words[2:], '') || {first}")
    found += [Form("words in another order", joined(sql)) for sql in (*turned, "array_to_string(words, '')")]
    for one, other in ((first, last), (last, first)):
        for sql in (f"{one}[1] || {other}", f"{other} || {one}[1]"):
            found += [Form("initial and name", f"case when len(words) > 1 then {joined(sql)} end", SHORT)]
    both = f"case when len(words) > 2 then {joined(f'{first} || {last}')} end"
    return [*found, Form("first and last word", both, SHORT)]
