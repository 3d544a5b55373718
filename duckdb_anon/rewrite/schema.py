"""What a rewrite knows of a table: how SQL names it, its columns with their DuckDB types, their roles.

Nothing here looks at data: a release explains itself by the types of its columns, so an estimator can be
written before a single row is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Scale = Literal["discrete", "continuous", "nominal"]
Bounds = Literal["none", "hard", "sure", "likely"]
"""Which low and high a rewritten query gives: none; hard bounds; hard bounds where there are any, else 95% intervals;
95% intervals where there are any, else hard bounds."""

_INTEGERS = frozenset(
    "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT BIGNUM".split()
)
_DECIMAL = re.compile(r"DECIMAL\(\d+,\s*(\d+)\)", re.IGNORECASE)
_BOX = re.compile(r'STRUCT\(\s*"?lower"?\s+(.+?),\s*"?upper"?\s+(.+)\)', re.IGNORECASE | re.DOTALL)
_BAG = re.compile(r"MAP\((.+),\s*U?BIGINT\)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class TableInfo:
    """A table as the planner sees it.

    Attributes:
        sql: text that can follow FROM.
        columns: (name, DuckDB type) in table order; empty when the planner cannot see the table.
        roles: column name to role ('quasi', 'sensitive', ...); only the original's are used.
        hierarchies: column name to its hierarchy table (first column the leaf, last the root).
        given: the name the user wrote, by which queries call the table; `sql` when empty.
        kinds: column name to 'ordered' | 'nominal' | 'hierarchy', where a role says more than the type.
    """

    sql: str
    columns: tuple[tuple[str, str], ...]
    roles: Mapping[str, str] = field(default_factory=dict)
    hierarchies: Mapping[str, TableInfo] = field(default_factory=dict)
    given: str = ""
    kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name queries use."""
        return self.given or self.sql

    @property
    def types(self) -> dict[str, str]:
        """Column name in lower case to type."""
        return {column.lower(): kind for column, kind in self.columns}

    def spelled(self, column: str) -> str:
        """Give a column's own spelling."""
        return next((name for name, _ in self.columns if name.lower() == column.lower()), column)


def scale_of(duckdb_type: str) -> Scale:
    """Tell how the values of a type fill an interval: counted, measured, or not at all.

    >>> scale_of('INTEGER'), scale_of('DATE'), scale_of('DOUBLE'), scale_of('VARCHAR')
    ('discrete', 'discrete', 'continuous', 'nominal')
    """
    upper = duckdb_type.upper()
    decimal = _DECIMAL.fullmatch(upper)
    if upper in _INTEGERS or upper == "DATE" or (decimal and int(decimal.group(1)) == 0):
        return "discrete"
    if decimal or upper in ("FLOAT", "DOUBLE") or upper.startswith("TIME"):
        return "continuous"
    return "nominal"


def box_type(duckdb_type: str) -> str | None:
    """Give T of STRUCT(lower T, upper T), or None for any other type.

    >>> box_type('STRUCT("lower" INTEGER, "upper" INTEGER)'), box_type('INTEGER')
    ('INTEGER', None)
    """
    found = _BOX.fullmatch(duckdb_type.strip())
    return found.group(1).strip() if found and found.group(1).strip() == found.group(2).strip() else None


def list_type(duckdb_type: str) -> str | None:
    """Give T of T[], or None for any other type."""
    text = duckdb_type.strip()
    return text[:-2] if text.endswith("[]") else None


def bag_type(duckdb_type: str) -> str | None:
    """Give T of MAP(T, BIGINT), or None for any other type."""
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
