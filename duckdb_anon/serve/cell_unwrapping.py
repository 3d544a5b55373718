"""The plain values that the cells of a release hold, however they are wrapped, and what of a table they repeat.

A copy is a copy under another type: an interval that begins where it ends, a list of one, a field of a STRUCT, a number
as text or with noise in its fifth digit. Here each is unwrapped to SQL that yields the value, and a key under which the
value and the original's own are equal. Cost: none, these are texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from duckdb_anon.engine.column_roles import role_of
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.release_formats.duckdb_types import (
    box_type,
    is_channels,
    is_integer,
    is_moment,
    is_nested,
    is_number,
    is_text,
    is_timestamp,
    list_type,
    struct_fields,
)  # fmt: skip


@dataclass(frozen=True)
class CandidateTable:
    """A table of the source: SQL that follows FROM, name, comment, columns with type and comment."""

    sql: str
    name: str
    comment: str
    columns: Mapping[str, tuple[str, str | None]]

    def role(self, column: str) -> str:
        """Role of a column by its comment, '' for none."""
        return role_of(self.columns[column][1])

    def values(self) -> list[HeldValue]:
        """The plain values inside the cells of each row; none for counts."""
        found: list[HeldValue] = []
        for column, (kind, _) in self.columns.items():
            found += _unwrapped(HeldValue(column, column, ident(column), kind, self.role(column)))
        return found


@dataclass(frozen=True)
class HeldValue:
    """A plain value inside a cell.

    Attributes:
        name: the attribute it is of: the column's, or the field's that holds it.
        column: the column of the release.
        sql: the value, over a row of the table; NULL where the cell holds several.
        kind: its type.
        role: of the column, '' for none.
        single: SQL that tells whether the cell holds this value and no other.
    """

    name: str
    column: str
    sql: str
    kind: str
    role: str
    single: str = "true"

    def key(self, other: str) -> str:
        """SQL equal for values that are the same beside a column of type `other`."""
        return key_of(self.sql, self.kind, other)


def _unwrapped(cell: HeldValue) -> Iterator[HeldValue]:
    x, kind = cell.sql, cell.kind
    boxed, element = box_type(kind), list_type(kind)
    if boxed is not None:
        single = f"coalesce({x}.lower = {x}.upper, {x} is null)"
        yield HeldValue(
            cell.name, cell.column, f"case when {single} then {x}.lower end", boxed, cell.role,
            f"{cell.single} and {single}",
        )  # fmt: skip
    elif element is not None:
        single = f"coalesce(len({x}) = 1, true)"
        inside = HeldValue(
            cell.name, cell.column, f"case when {single} then {x}[1] end", element, cell.role,
            f"{cell.single} and {single}",
        )  # fmt: skip
        yield from _unwrapped(inside)
    elif fields := struct_fields(kind):
        if not is_channels(kind):
            for name, inner in fields:
                yield from _unwrapped(
                    HeldValue(name, cell.column, f"({x}).{ident(name)}", inner, cell.role, cell.single)
                )
    elif not is_nested(kind) or kind.upper() == "INTERVAL":
        yield cell


def key_of(value: str, kind: str, other: str) -> str:
    """SQL equal for values of two types that are the same, or nearly.

    Args:
        value: SQL of the value.
        kind: its type.
        other: type of what it is held against.

    >>> key_of("a", "INTEGER", "BIGINT"), key_of("a", "VARCHAR", "VARCHAR")
    ('(a)::hugeint', 'lower(trim((a)::varchar))')
    >>> key_of("a", "TIMESTAMPTZ_NS", "TIMESTAMP"), key_of("a", "TIME_NS", "TIME")
    ('try_cast((a)::timestamptz as timestamp)::varchar', 'try_cast(a as time)::varchar')
    """
    if is_integer(kind) and is_integer(other):
        return f"({value})::hugeint"
    if is_moment(kind) and is_moment(other):
        if kind == other:
            return f"lower(({value})::varchar)"
        common = "timestamp" if is_timestamp(kind) or kind.upper() == "DATE" else "time"
        return f"try_cast({_of_microseconds(value, kind)} as {common})::varchar"
    if (is_number(kind) or is_number(other)) and all(is_number(k) or is_text(k) for k in (kind, other)):
        number = f"try_cast({value} as double)"
        # four digits: noise that nobody can see leaves a value what it was
        near = f"round({number}, (3 - floor(log10(abs({number}))))::integer)"
        return f"case when isfinite({number}) and abs({number}) between 1e-9 and 1e15 then {near} else {number} end"
    return f"lower(trim(({value})::varchar))"


def _of_microseconds(x: str, kind: str) -> str:
    """A moment as a type that DuckDB casts and reckons with: it does neither with TIMESTAMPTZ_NS."""
    return f"({x})::timestamptz" if kind.upper() == "TIMESTAMPTZ_NS" else x


def numbers_in(value: HeldValue) -> list[str]:
    """SQL of the numbers that a value may be read as: what a row number can be dressed up as."""
    x, kind = value.sql, value.kind.upper()
    if is_number(kind) or kind == "BIGNUM":
        return [f"try_cast({x} as double)"]
    if is_moment(kind) or kind == "INTERVAL":
        return [f"epoch({_of_microseconds(x, kind)})"] if kind != "TIME WITH TIME ZONE" else []
    if kind in ("BOOLEAN", "BIT"):
        return []
    text = f"({x})::varchar"
    digits: Callable[[str], str] = "regexp_replace({}, '[^0-9]', '', 'g')".format
    hexes = f"right(regexp_replace({text}, '[^0-9A-Fa-f]', '', 'g'), 15)"
    return [f"try_cast({digits(text)} as double)", f"try_cast('0x' || {hexes} as hugeint)::double"]
