"""Names and values as SQL text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def ident(name: str) -> str:
    """Quote a column or table name.

    >>> print(ident('a "b" c'))
    "a ""b"" c"
    """
    return '"' + name.replace('"', '""') + '"'


def quoted(name: str) -> str:
    """A column or table name, quoted where it is more than letters, digits and underscores.

    >>> quoted("age"), quoted("zip code")
    ('age', '"zip code"')
    """
    return name if _PLAIN.fullmatch(name) else ident(name)


def unquoted(name: str) -> str:
    """The name that SQL writes.

    >>> unquoted('"zip ""code"'), unquoted("age")
    ('zip "code', 'age')
    """
    return name[1:-1].replace('""', '"') if name.startswith('"') and name.endswith('"') else name


def literal(value: Any) -> str:
    """A value as SQL writes it, short and the same each time.

    >>> literal(Decimal("0.20")), literal({"age": [0, None]}), literal("it's"), literal(date(2020, 1, 31))
    ('0.2', "{'age': [0, NULL]}", "'it''s'", "DATE '2020-01-31'")
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}" if value == value.to_integral_value() else f"{value.normalize()}"
    if isinstance(value, Fraction):
        return literal(value.numerator / value.denominator)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value}'"
    if isinstance(value, date):
        return f"DATE '{value}'"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(str(k))}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "[" + ", ".join(literal(v) for v in value) + "]"
    return "'" + str(value).replace("'", "''") + "'"
