"""Sliced: one STRUCT column per attribute group, each permuted on its own inside its bucket.

Made by slicing (Li, Li, Zhang and Molloy 2012) and merging (Hasan et al. 2018). Within a bucket the groups
are independent: the estimate is the bucket's size times the product of the shares, not a count of printed
rows. Generalized fields overlap uniformly inside their cell. Merging may have added fake rows that nothing in
the release tells from real ones, so there are no hard bounds.
"""

from __future__ import annotations

from duckdb_anon.rewrite.boxes import part_of
from duckdb_anon.rewrite.lists import ColumnPart
from duckdb_anon.rewrite.parts import Part
from duckdb_anon.rewrite.reading import Reading, field_of_row
from duckdb_anon.rewrite.schema import struct_fields


def claim(reading: Reading) -> None:
    """Claim `bucket` and the STRUCT columns made of the original's columns."""
    if not reading.has("bucket"):
        return
    columns = {
        name: fields
        for name, kind in reading.unclaimed.items()
        if (fields := struct_fields(kind)) and reading.original_type(name) != kind and _of_original(reading, fields)
    }
    if not columns:
        return
    for name, fields in columns.items():
        exact: dict[str, str] = {}
        inner: dict[str, Part] = {}
        for column, kind in fields:
            sql = field_of_row(name, column)
            part = part_of(reading, column, kind, sql)
            if part is None:
                exact[column.lower()] = sql
            else:
                inner[column.lower()] = part
        covered = tuple(column.lower() for column, _ in fields)
        reading.parts.append(
            ColumnPart(f"_{name.lower()}", covered, field_of_row("bucket"), reading.release, fields=exact, inner=inner)
        )
        del reading.unclaimed[name]
    reading.take("bucket")
    reading.bounded = False


def _of_original(reading: Reading, fields: tuple[tuple[str, str], ...]) -> bool:
    return all(reading.original_type(column) for column, _ in fields)
