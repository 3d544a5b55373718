"""How much memory a call takes, before it takes it.

Counted on the finished kernels: beside DuckDB's copy of the columns a call holds, for each row and column, the value
as it comes, its code, and what cuts and draws need of both; several copies of long texts; and the lists that buckets
are counted in. Cost: none.
"""

from __future__ import annotations

import ctypes
import re
import sys

import pyarrow as pa

from duckdb_anon.model.errors import ParameterError

_BASE, _ROW, _CELL = 30_000_000, 100, 42
"""Bytes of a call, of a row and of a value in it."""
INLINED, _COPIES, _COUNTS, _WIDE, _DIFFERENT = 12, 9, 230, 240, 220
"""Bytes of text that a column's share covers, as DuckDB keeps those beside their lengths; copies of what is longer: the
source, the feed, the values, the rows as drawn off, the table that is made; what the counts of a bucket take a row, in
lists and in maps; what a number of eight bytes or more takes beside those that are narrowed; and what a value
that hardly another row has takes in dictionaries."""
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def give_back() -> None:
    """Give what was freed back to the system: DuckDB, whose turn is next, allocates by itself and cannot reuse it."""
    pa.default_memory_pool().release_unused()
    # glibc keeps arrays of many megabytes once some were freed
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def needed(
    rows: int, columns: int, text: float = 0.0, counted: bool = False, different: int = 0, wide: int = 0,
    listed: float = 0.0,
) -> int:  # fmt: skip
    """Bytes that a method takes on a table in one call.

    Args:
        rows: rows of the table.
        columns: quasi-identifiers, sensitive columns and the person.
        text: bytes of text in a row, all of its columns together.
        counted: whether cells are counts of the values of a bucket, as anatomy's are.
        different: coded columns whose values hardly repeat.
        wide: coded columns of numbers kept in eight bytes or more, and insensitive ones of anything but texts.
        listed: bytes of the values that a released row may list.

    >>> needed(1_000_000, 8), needed(1_000_000, 8, text=300), needed(1_000_000, 8, counted=True)
    (466000000, 2302000000, 696000000)
    """
    return _BASE + int(rows * _of_row(columns, text, counted, different, wide, listed))


def rows_within(
    memory: int, columns: int, text: float = 0.0, counted: bool = False, different: int = 0, wide: int = 0,
    listed: float = 0.0,
) -> int:  # fmt: skip
    """Rows that a call works on in so many bytes, beside what a process takes anyway.

    Args:
        memory: bytes.
        columns: as for `needed`, the rest too.
        text: bytes of text in a row.
        counted: whether cells are counts.
        different: columns whose values hardly repeat.
        wide: columns of wide numbers.
        listed: bytes of listed values.
    """
    return int(memory // _of_row(columns, text, counted, different, wide, listed))


def _of_row(columns: int, text: float, counted: bool, different: int, wide: int, listed: float) -> float:
    beyond = max(0.0, text - INLINED * columns)
    own = _ROW + _CELL * columns + _WIDE * wide + _COPIES * beyond + _DIFFERENT * different + listed
    return own + (_COUNTS if counted else 0)


def size_of(function: str, text: str | int) -> int:
    """Read an amount of memory.

    Raises:
        ParameterError: it is none.

    >>> size_of("release", "2GB"), size_of("release", "1.5 GiB")
    (2000000000, 1610612736)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B?)\s*", str(text).upper())
    unit = _UNITS.get(found.group(2)) if found else None
    if found is None or unit is None:
        raise ParameterError(f"{function}: memory := {text!r} is no amount of memory; say '2GB' or '800MB'")
    return int(float(found.group(1)) * unit)


def written(size: float) -> str:
    """An amount of memory as people say it.

    >>> written(2_340_000_000), written(81_000_000)
    ('2.3 GB', '81 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(1, round(size / 1e6))} MB"
