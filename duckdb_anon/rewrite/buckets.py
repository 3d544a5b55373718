"""Buckets: exact rows, and in each bucket a MAP from sensitive value to count (Xiao and Tao 2006, Anatomy).

Inside a bucket the sensitive value of a row is any of the bucket's, as likely as its count and independent of
the row's other columns.
"""

from __future__ import annotations

from duckdb_anon.rewrite.lists import BagPart
from duckdb_anon.rewrite.reading import Reading, field_of_row
from duckdb_anon.rewrite.schema import bag_type


def claim(reading: Reading) -> None:
    """Claim `bucket` and the MAP columns."""
    bags = [
        name
        for name, kind in reading.unclaimed.items()
        if bag_type(kind) is not None and reading.original_type(name) and not bag_type(reading.original_type(name))
    ]
    if not bags:
        return
    bucketed = reading.has("bucket")
    for name in bags:
        column = field_of_row(name)
        key = field_of_row("bucket") if bucketed else column
        reading.parts.append(BagPart(f"_{name.lower()}", (name.lower(),), key, reading.release, column=column))
        del reading.unclaimed[name]
    reading.take("bucket")
