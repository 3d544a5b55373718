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

_ROW, _CELL = 60, 42
_INLINED, _COPIES, _COUNTS = 12, 5, 230
"""Bytes of text that a column's share covers, as DuckDB keeps those beside their lengths; copies of what is longer: the
source, the feed, the values, the rows as drawn off, the table that is made; and what the counts of a bucket take a row,
in lists and in maps."""
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def give_back() -> None:
    """Give what was freed back to the system: DuckDB, whose turn is next, allocates by itself and cannot reuse it."""
    pa.default_memory_pool().release_unused()
    # glibc keeps arrays of many megabytes once some were freed
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def needed(rows: int, columns: int, text: float = 0.0, counted: bool = False) -> int:
    """Bytes that a method takes on a table in one call.

    Args:
        rows: rows of the table.
        columns: quasi-identifiers, sensitive columns and the person.
        text: bytes of text in a row, all of its columns together.
        counted: whether cells are counts of the values of a bucket, as anatomy's are.

    >>> needed(1_000_000, 8), needed(1_000_000, 8, text=300), needed(1_000_000, 8, counted=True)
    (396000000, 1416000000, 626000000)
    """
    return int(rows * _of_row(columns, text, counted))


def rows_within(memory: int, columns: int, text: float = 0.0, counted: bool = False) -> int:
    """Rows that a call works on in so many bytes.

    Args:
        memory: bytes.
        columns: as for `needed`, the rest too.
        text: bytes of text in a row.
        counted: whether cells are counts.
    """
    return int(memory // _of_row(columns, text, counted))


def _of_row(columns: int, text: float, counted: bool) -> float:
    beyond = max(0.0, text - _INLINED * columns)
    return _ROW + _CELL * columns + _COPIES * beyond + (_COUNTS if counted else 0)


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
