"""The digest of a release's rows: whether a table still holds the rows that its description was written for.

The digest is the SHA-256 of the column names and types and of the sorted hashes (SHA-256, 128 bits kept) of all rows.
It is the same for the same rows in any order, on every version of DuckDB, in every session, and after a round trip
through Parquet: ENUM counts as VARCHAR, arrays of fixed size as lists, timestamps of seconds and milliseconds as
TIMESTAMP. It differs after any change of a cell, for a duplicated, missing or added row, and for a renamed, retyped,
added or moved column. HUGEINT, BIT and TIME WITH TIME ZONE, which Parquet changes, differ after the round trip.

A description also has a checksum by DuckDB's own hash. Where that is the same, nothing else is compared when a
query is planned: one plain scan. DuckDB may change its hash, and it resists no forger, so a signature is of the digest.
Cost of the digest: one pass that writes each row as text, and one sort of 16 bytes a row; of more than eight million
rows, DuckDB keeps these within its memory limit.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache

import duckdb
import numpy as np
import pyarrow as pa

from duckdb_anon.engine.arrow import batches
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.release_formats.duckdb_types import (
    bag_type,
    decimal_type,
    is_boolean,
    is_integer,
    is_moment,
    is_nested,
    is_timestamp,
    is_zoned,
    list_type,
    struct_fields,
    without_enums,
)

_ROW = "S16"
_ROWS_AT_ONCE = 8_000_000
_ARRAY = re.compile(r"\[\d+\]")
_COARSE_TIMESTAMP = re.compile(r"\bTIMESTAMP_M?S\b", re.IGNORECASE)
_digest_agrees: dict[tuple[str, str], bool] = {}
"""Whether rows of a checksum have a digest, by both, where another version of DuckDB wrote the checksum."""
_MOST_REMEMBERED = 1000


def release_digest(con: duckdb.DuckDBPyConnection, source: str) -> str:
    """Digest of the rows of a table.

    >>> con = duckdb.connect()
    >>> digest = release_digest(con, "(values (1, 'a'), (2, NULL)) t(n, s)")
    >>> digest == release_digest(con, "(values (2, NULL), (1, 'a')) t(n, s)")
    True
    >>> digest == release_digest(con, "(values (1, 'a'), (2, 'NULL')) t(n, s)")
    False
    """
    columns = column_types(con, source)
    found = hashlib.sha256(json.dumps(list(columns.items()), ensure_ascii=True).encode())
    hashes, (rows,) = (
        f"select sha256({row_text(columns)}) as h from {source}",
        con.execute(f"select count(*) from {source}").fetchall()[0],
    )
    ranges = rows // _ROWS_AT_ONCE + 1
    if ranges == 1:
        found.update(_sorted(con, hashes))
        return found.hexdigest()
    # hashes are kept by DuckDB, which may spill them, and sorted range by range
    con.execute(f"create or replace temp table _anon_hashes as select unhex(left(h, 32)) as h from ({hashes})")
    try:
        ends = [f"'\\x{k * 256 // ranges:02X}'::blob" for k in range(ranges)]
        for low, high in zip(ends, [*ends[1:], "null"], strict=True):
            found.update(
                _sorted(con, f"select hex(h) from temp._anon_hashes where h >= {low} and coalesce(h < {high}, true)")
            )
    finally:
        con.execute("drop table temp._anon_hashes")
    return found.hexdigest()


def _sorted(con: duckdb.DuckDBPyConnection, query: str) -> bytes:
    """The hashes of a query, written in hexadecimal, in their order."""
    blocks = [np.empty(0, dtype=_ROW)]
    for block in batches(con, query):
        if len(block):
            written = block.column(0).cast(pa.string())
            size = len(written[0].as_py())
            hashes = bytes.fromhex(written.buffers()[2][: size * len(block)].to_pybytes().decode())
            blocks.append(np.frombuffer(hashes, dtype=f"S{size // 2}").astype(_ROW))
    rows = np.concatenate(blocks)
    rows.sort()
    return rows.tobytes()


def row_text(columns: Mapping[str, str]) -> str:
    """SQL of a text of a row, which differs where a cell differs, on every version of DuckDB."""
    return f"concat({', '.join(_text(ident(name), kind) for name, kind in columns.items())})"


def row_checksum(con: duckdb.DuckDBPyConnection, source: str, columns: Mapping[str, str] | None = None) -> str:
    """Number of rows and the sum of DuckDB's hashes of names, types and rows, as a text without spaces.

    `columns`: names and types, where they are known.
    """
    types = column_types(con, source) if columns is None else _coarse(columns)
    checksum: str = con.execute(checksum_sql(types, source)).fetchall()[0][0]
    return checksum


def checksum_sql(columns: Mapping[str, str], source: str) -> str:
    """SELECT of the checksum of a source with some columns."""
    return f"select count(*) || ':' || coalesce(sum(hash({_row(tuple(columns.items()))})), 0) from {source}"


@lru_cache(maxsize=64)
def _row(columns: tuple[tuple[str, str], ...]) -> str:
    """What is hashed of a row; a release is asked about often."""
    hashed = [part for name, kind in columns for part in _hashed(ident(name), kind)]
    return ", ".join([literal(json.dumps(list(columns))), *hashed])


def holds_rows_of(
    con: duckdb.DuckDBPyConnection, source: str, digest: str, checksum: str, columns: Mapping[str, str] | None = None
) -> bool:
    """Whether a table has the rows of a digest; `columns` are its names and types, where they are known."""
    now = row_checksum(con, source, columns)
    if now == checksum:
        return True
    if (digest, now) not in _digest_agrees:
        if len(_digest_agrees) >= _MOST_REMEMBERED:
            _digest_agrees.clear()
        _digest_agrees[digest, now] = release_digest(con, source) == digest
    return _digest_agrees[digest, now]


def column_types(con: duckdb.DuckDBPyConnection, source: str) -> Mapping[str, str]:
    """Names and types of columns, with one name for types that a Parquet file does not distinguish."""
    return _coarse({name: kind for name, kind, *_ in con.execute(f"describe select * from {source}").fetchall()})


def _coarse(columns: Mapping[str, str]) -> Mapping[str, str]:
    return {
        name: _COARSE_TIMESTAMP.sub("TIMESTAMP", _ARRAY.sub("[]", without_enums(kind)))
        for name, kind in columns.items()
    }


def _text(value: str, kind: str) -> str:
    """SQL of a text of a value: texts of different values differ, and none is the beginning of another one."""
    fields, element = struct_fields(kind), list_type(kind)
    if fields and all(inner for _, inner in fields):
        inside = ", ".join(_text(f"({value}).{ident(name)}", inner) for name, inner in fields)
        return f"case when {value} is null then '-' else concat('(', {inside}) end"
    if kind in ("DOUBLE", "FLOAT"):  # some versions write the sign of a NaN
        return f"coalesce(case when isnan({value}) then 'nan' else {value}::varchar end, '-') || ','"
    if is_timestamp(kind) and is_zoned(kind):  # as text it depends on the session's time zone
        return f"coalesce(epoch_us({value})::varchar, {value}::varchar, '-') || ','"
    if _is_plain(element or kind) or is_moment(kind):
        return f"coalesce({value}::varchar, '-') || ','"
    # versions quote texts inside lists and maps differently, but not as JSON
    text = f"to_json({value})::varchar" if is_nested(kind) and kind != "INTERVAL" else f"{value}::varchar"
    return f"coalesce(strlen({text}) || ':' || {text}, '-')"


def _hashed(value: str, kind: str) -> list[str]:
    """What of a value is hashed: DuckDB's hash takes a NULL list for an empty one, and a STRUCT for what is in it."""
    fields, element = struct_fields(kind), list_type(kind)
    if fields and all(inner for _, inner in fields):
        inside = [part for name, inner in fields for part in _hashed(f"({value}).{ident(name)}", inner)]
        return [f"{value} is null", *inside]
    if not is_nested(kind):
        return [value]
    if (element is not None and not is_nested(element)) or bag_type(kind) is not None:
        return [value, f"cardinality({value})" if element is None else f"len({value})"]
    return [f"to_json({value})::varchar"]


def _is_plain(kind: str) -> bool:
    """Whether values of a type, and lists of them, are written with digits, signs and fixed words alone."""
    return is_integer(kind) or decimal_type(kind) is not None or is_boolean(kind)
