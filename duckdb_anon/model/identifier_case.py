"""Names as DuckDB compares them: letters A to Z without their case, all others as they are."""

from __future__ import annotations

_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_FOLDING = str.maketrans(_UPPER, _LOWER)


def fold(name: str) -> str:
    """A name of a table or column, as DuckDB compares it with others.

    >>> fold("Age"), fold("Ä B")
    ('age', 'Ä b')
    """
    return name.lower() if name.isascii() else name.translate(_FOLDING)


def folded_sql(name: str) -> str:
    """SQL text of the same, of a text.

    >>> import duckdb
    >>> duckdb.execute("select " + folded_sql("'Ä B'")).fetchone()
    ('Ä b',)
    """
    return f"translate({name}, '{_UPPER}', '{_LOWER}')"
