"""What the text of a DuckDB type says about the cells of a column: interval, list, counts, slice, channels.

Nothing here looks at data, and nothing depends on how the text is spaced or quoted. Cost: the length of the text.
"""

from __future__ import annotations

import re

_BOX = re.compile(r'STRUCT\(\s*"?lower"?\s+(.+?),\s*"?upper"?\s+(.+)\)', re.IGNORECASE | re.DOTALL)
_BAG = re.compile(r"MAP\((.+),\s*U?BIGINT\)", re.IGNORECASE | re.DOTALL)
_INTEGER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?", re.IGNORECASE)
_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\)", re.IGNORECASE)


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
    return _NUMBER.fullmatch(duckdb_type.strip()) is not None


def is_channels(duckdb_type: str) -> bool:
    """Tell whether a STRUCT holds a channel of randomized response for each of its fields.

    >>> is_channels('STRUCT(sex STRUCT(p DOUBLE, "domain" VARCHAR[]))'), is_channels('STRUCT(p DOUBLE)')
    (True, False)
    """
    inner = [struct_fields(kind) for _, kind in struct_fields(duckdb_type)]
    return bool(inner) and all({name.lower() for name, _ in fields} == {"p", "domain"} for fields in inner)


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
    """
    text = duckdb_type.strip()
    if not (text.upper().startswith("STRUCT(") and text.endswith(")")):
        return ()
    return tuple(_field(part) for part in _split(text[7:-1]))


def _split(text: str) -> list[str]:
    """Cut at the commas that stand outside parentheses and quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif not quoted and letter in "([":
            depth += 1
        elif not quoted and letter in ")]":
            depth -= 1
        elif letter == "," and not quoted and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _field(part: str) -> tuple[str, str]:
    part = part.strip()
    if part.startswith('"'):
        end = re.match(r'"((?:[^"]|"")*)"', part)
        if end:
            return end.group(1).replace('""', '"'), part[end.end() :].strip()
    name, _, kind = part.partition(" ")
    return name, kind.strip()
