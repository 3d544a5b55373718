"""Fake tuples: rows of nobody, hidden among the others.

Hasan, Jiang, Chen and Wang (2018, section 4.1.1) add "n fake tuples with the same QI values as in the original table"
whose sensitive values follow the table's distribution. Whether n is a total or counts per record is not said; both are
offered. The insensitive values of a fake are those of a random record of its bucket, not of the row it copies: a nearly
unique value that occurs twice would reveal whom the fake copies. It would still reveal that the bucket has a fake, so
`merging` refuses nearly unique columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from duckdb_anon.model.coded_table import Attribute, IntArray


class Records(NamedTuple):
    """Records to be released, as source rows."""

    qi_row: IntArray  # source row that gives each record its quasi-identifiers
    sensitive_row: IntArray  # source row that gives each record its sensitive value
    real: int  # number of real records; the fakes follow them


def with_fakes(rows: int, fake: int, per_record: bool, rng: np.random.Generator) -> Records:
    """Add fake records: `fake` copies of every row, or in total of rows drawn with replacement."""
    real = np.arange(rows, dtype=np.int64)
    copied = np.repeat(real, fake) if per_record else rng.integers(0, rows, fake)
    sensitive = rng.integers(0, rows, len(copied))
    return Records(np.concatenate([real, copied]), np.concatenate([real, sensitive]), rows)


def insensitive_rows(records: Records, bucket: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the source row of each record's insensitive values; -1 (NULL) for a fake among fakes only."""
    real, fakes = bucket[: records.real], bucket[records.real :]
    count = np.bincount(real, minlength=int(bucket.max(initial=-1)) + 1)
    order = np.argsort(real, kind="stable")
    first = np.cumsum(count) - count
    drawn = first[fakes] + np.floor(rng.random(len(fakes)) * count[fakes]).astype(np.int64)
    row_of_fake = np.where(count[fakes] > 0, order[np.minimum(drawn, len(order) - 1)], -1)
    return np.concatenate([records.qi_row[: records.real], row_of_fake]).astype(np.int64)


def of_records(attribute: Attribute, rows: IntArray) -> Attribute:
    """Return the attribute with one code per record, taken from source rows; `first_row` still means source rows."""
    return replace(attribute, codes=attribute.codes[rows])
