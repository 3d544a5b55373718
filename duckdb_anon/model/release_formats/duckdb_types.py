"""What the text of a DuckDB type means: kind of its values, and of a column's cells (interval, list, counts, slice).

The one reader of types: planner, coding, shapes, rewrites and servers ask it. Nothing here looks at data, and nothing
depends on how the text is spaced or quoted. Cost: the length of the text.
"""

from __future__ import annotations

import re
from typing import Literal

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import unquoted

_BOX = re.compile(r'STRUCT\(\s*"?lower"?\s+(.+?),\s*"?upper"?\s+(.+)\)', re.IGNORECASE | re.DOTALL)
_BAG = re.compile(r"MAP\((.+),\s*U?BIGINT\)", re.IGNORECASE | re.DOTALL)
_INTEGER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?", re.IGNORECASE)
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)", re.IGNORECASE)
_NESTED = re.compile(r"(STRUCT|MAP|UNION)\(.*|.*\[\d*\]|INTERVAL|VARIANT", re.IGNORECASE | re.DOTALL)
_MARK = re.compile(r"""[][(),]|"(?:[^"]|"")*"|'(?:[^']|'')*'""")
_ENUM = re.compile(r"ENUM\((?:'(?:[^']|'')*'(?:,\s*)?)*\)", re.IGNORECASE)

Kind = Literal["ordered", "nominal", ""]
Spread = Literal["discrete", "continuous", "nominal"]


def is_integer(duckdb_type: str) -> bool:
    """Tell whether a type holds whole numbers.

    >>> is_integer('UBIGINT'), is_integer('DOUBLE')
    (True, False)
    """
    return _INTEGER.fullmatch(duckdb_type.strip()) is not None


def is_number(duckdb_type: str) -> bool:
    """Tell whether a type holds numbers.

    >>> is_number('DECIMAL(9,2)'), is_number('VARCHAR')
    (True, False)
    """
    text = duckdb_type.strip()
    return is_integer(text) or text.upper() in ("FLOAT", "DOUBLE") or decimal_type(text) is not None


def decimal_type(duckdb_type: str) -> tuple[int, int] | None:
    """Give width and places of DECIMAL(width, places), or None for any other type.

    >>> decimal_type('DECIMAL(9,2)'), decimal_type('DOUBLE')
    ((9, 2), None)
    """
    found = _DECIMAL.fullmatch(duckdb_type.strip())
    return (int(found.group(1)), int(found.group(2))) if found else None


def is_moment(duckdb_type: str) -> bool:
    """Tell whether a type holds dates, times of day or timestamps, of any unit and zone.

    >>> is_moment('TIMESTAMP WITH TIME ZONE'), is_moment('INTERVAL')
    (True, False)
    """
    text = duckdb_type.strip().upper()
    return text == "DATE" or text.startswith("TIME")


def is_timestamp(duckdb_type: str) -> bool:
    """Tell whether a type holds timestamps, of any unit and zone.

    >>> is_timestamp('TIMESTAMP_NS'), is_timestamp('DATE')
    (True, False)
    """
    return duckdb_type.strip().upper().startswith("TIMESTAMP")


def is_zoned(duckdb_type: str) -> bool:
    """Tell whether the times of a type have a zone.

    >>> is_zoned('TIMESTAMP WITH TIME ZONE'), is_zoned('TIMESTAMPTZ_NS'), is_zoned('TIMESTAMP')
    (True, True, False)
    """
    text = duckdb_type.strip().upper()
    return is_moment(text) and (text.endswith(" WITH TIME ZONE") or text == "TIMESTAMPTZ_NS")


def is_text(duckdb_type: str) -> bool:
    """Tell whether the values of a type are texts, declared ones (ENUM) among them.

    >>> is_text("ENUM('low', 'high')"), is_text('VARCHAR[]')
    (True, False)
    """
    return duckdb_type.strip().upper() == "VARCHAR" or is_enum(duckdb_type)


def is_boolean(duckdb_type: str) -> bool:
    """Tell whether a type holds true and false.

    >>> is_boolean('BOOLEAN'), is_boolean('BOOLEAN[]')
    (True, False)
    """
    return duckdb_type.strip().upper() == "BOOLEAN"


def is_enum(duckdb_type: str) -> bool:
    """Tell whether a type declares its texts.

    >>> is_enum("ENUM('low', 'it''s', 'a)')"), is_enum("ENUM('a')[]")
    (True, False)
    """
    return _ENUM.fullmatch(duckdb_type.strip()) is not None


def without_enums(duckdb_type: str) -> str:
    """Give a type with VARCHAR in place of every ENUM in it, whose texts may be values of no record.

    >>> without_enums("STRUCT(a ENUM('x', 'y'), b INTEGER)")
    'STRUCT(a VARCHAR, b INTEGER)'
    """
    return _ENUM.sub("VARCHAR", duckdb_type)


def comparable(first: str, second: str) -> bool:
    """Whether values of one type can be compared with another's: numbers, texts, moments and truths among themselves.

    >>> comparable("DECIMAL(9,2)", "DOUBLE"), comparable("INTEGER", "VARCHAR"), comparable("VARCHAR", "VARCHAR[]")
    (True, False, False)
    """
    same = without_enums(first).strip().upper() == without_enums(second).strip().upper()
    return same or any(is_it(first) and is_it(second) for is_it in (is_number, is_moment, is_text, is_boolean))


def is_nested(duckdb_type: str) -> bool:
    """Tell whether a type has no plain values: a STRUCT, MAP, UNION or list, INTERVAL, VARIANT.

    >>> is_nested('INTEGER[]'), is_nested('INTEGER')
    (True, False)
    """
    return _NESTED.fullmatch(duckdb_type.strip()) is not None


def kind_of_type(duckdb_type: str) -> Kind:
    """Tell ordered types (numbers, dates, times) from nominal ones; '' when the type is unknown.

    >>> kind_of_type('DECIMAL(9,2)'), kind_of_type('VARCHAR')
    ('ordered', 'nominal')
    """
    if not duckdb_type:
        return ""
    if is_number(duckdb_type) or is_moment(duckdb_type) or duckdb_type.strip().upper() == "BIGNUM":
        return "ordered"
    return "nominal"


def spread_of(duckdb_type: str) -> Spread:
    """Tell how the values of a type fill an interval: counted, measured, or not at all.

    >>> spread_of('INTEGER'), spread_of('DATE'), spread_of('DOUBLE'), spread_of('VARCHAR')
    ('discrete', 'discrete', 'continuous', 'nominal')
    """
    text = duckdb_type.strip().upper()
    if kind_of_type(text) != "ordered":
        return "nominal"
    decimal = decimal_type(text)
    is_counted = is_integer(text) or text in ("DATE", "BIGNUM") or (decimal is not None and decimal[1] == 0)
    return "discrete" if is_counted else "continuous"


def is_channels(duckdb_type: str) -> bool:
    """Tell whether a STRUCT holds a channel of randomized response for each of its fields.

    >>> is_channels('STRUCT(sex STRUCT(p DOUBLE, "domain" VARCHAR[]))'), is_channels('STRUCT(p DOUBLE)')
    (True, False)
    """
    inner = [struct_fields(kind) for _, kind in struct_fields(duckdb_type)]
    return bool(inner) and all({fold(name) for name, _ in fields} == {"p", "domain"} for fields in inner)


def box_type(duckdb_type: str) -> str | None:
    """Give T of STRUCT(lower T, upper T), or None for any other type.

    >>> box_type('STRUCT("lower" INTEGER, "upper" INTEGER)'), box_type('INTEGER')
    ('INTEGER', None)
    """
    found = _BOX.fullmatch(duckdb_type.strip())
    return found.group(1).strip() if found and found.group(1).strip() == found.group(2).strip() else None


def list_type(duckdb_type: str) -> str | None:
    """Give T of T[], or None for any other type.

    >>> list_type('VARCHAR[]'), list_type('VARCHAR')
    ('VARCHAR', None)
    """
    text = duckdb_type.strip()
    return text[:-2] if text.endswith("[]") else None


def bag_type(duckdb_type: str) -> str | None:
    """Give T of MAP(T, BIGINT), or None for any other type.

    >>> bag_type('MAP(VARCHAR, BIGINT)'), bag_type('MAP(VARCHAR, VARCHAR)')
    ('VARCHAR', None)
    """
    found = _BAG.fullmatch(duckdb_type.strip())
    return found.group(1).strip() if found else None


def struct_fields(duckdb_type: str) -> tuple[tuple[str, str], ...]:
    """Give the (name, type) fields of a STRUCT type, in order; empty for any other type.

    >>> struct_fields('STRUCT(age INTEGER, "Zip Code" VARCHAR[])')
    (('age', 'INTEGER'), ('Zip Code', 'VARCHAR[]'))
    >>> struct_fields("STRUCT(size ENUM('small (S)', 'large )'), age INTEGER)")[1]
    ('age', 'INTEGER')
    """
    text = duckdb_type.strip()
    if not (text.upper().startswith("STRUCT(") and text.endswith(")")):
        return ()
    return tuple(_field(part) for part in _split(text[7:-1]))


def slice_fields(duckdb_type: str) -> tuple[tuple[str, str], ...]:
    """Give the fields of a STRUCT that may be a slice; none of a box, of channels, or of any other type.

    >>> slice_fields('STRUCT(age INTEGER)'), slice_fields('STRUCT(lower INTEGER, upper INTEGER)')
    ((('age', 'INTEGER'),), ())
    """
    return () if box_type(duckdb_type) or is_channels(duckdb_type) else struct_fields(duckdb_type)


def _split(text: str) -> list[str]:
    """Cut at the commas that stand outside parentheses and quotes."""
    parts, depth, start = [], 0, 0
    for found in _MARK.finditer(text):
        mark = found[0]
        depth += (mark in ("(", "[")) - (mark in (")", "]"))
        if mark == "," and depth == 0:
            parts.append(text[start : found.start()])
            start = found.end()
    return [*parts, text[start:]]


def _field(part: str) -> tuple[str, str]:
    part = part.strip()
    if part.startswith('"'):
        end = re.match(r'"(?:[^"]|"")*"', part)
        if end:
            return unquoted(end.group()), part[end.end() :].strip()
    name, _, kind = part.partition(" ")
    return name, kind.strip()
