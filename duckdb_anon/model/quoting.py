"""Names and values as SQL text."""

from __future__ import annotations


def ident(name: str) -> str:
    """Quote a column or table name.

    >>> print(ident('a "b" c'))
    "a ""b"" c"
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> str:
    """Quote a value: text, number, boolean, None or a list of those.

    >>> literal("it's"), literal([1, None])
    ("'it''s'", '[1, NULL]')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(v) for v in value) + "]"
    return "'" + str(value).replace("'", "''") + "'"
