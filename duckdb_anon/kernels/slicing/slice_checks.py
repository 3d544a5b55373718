"""A finished sliced table: its last check and its cells.

Whatever produced the buckets and the permutations, nothing is released before this pass over the result:
every column is a permutation of its bucket's records, every generalized value covers the value it replaces,
and the sensitive values of every bucket are diverse. Cost: a few passes over the slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from duckdb_anon.kernels.partition.sort_count import count_cells
from duckdb_anon.kernels.slicing.bucket_permutation import is_bucket_permutation
from duckdb_anon.kernels.slicing.covers import Cover, covers_codes
from duckdb_anon.kernels.slicing.slice_layout import Grouping
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.release_formats import BUCKET
from duckdb_anon.model.released_columns import ROWS, Cells, Source, Struct, Whole

_TOLERANCE = 1e-9


def check_columns(function: str, orders: Sequence[IntArray], bucket_of_record: IntArray) -> None:
    """Raise unless every column lists each record once, inside its own bucket.

    Args:
        function: SQL function, for messages.
        orders: row that gives each released row its value, by column.
        bucket_of_record: bucket of each record.
    """
    if not all(is_bucket_permutation(order, bucket_of_record) for order in orders):
        raise RequirementError(f"{function}: a column is not a permutation inside its buckets; nothing is released")


def check_diversity(function: str, bucket: IntArray, part: IntArray, sensitive: CodeArray, l: float) -> None:  # noqa: E741
    """Raise unless every sensitive value has a share of at most 1/l in each (bucket, last column part).

    Args:
        function: SQL function, for messages.
        bucket: bucket of each record.
        part: part of the sensitive column without the sensitive value of each record; zeros if it is alone.
        sensitive: sensitive code of each record.
        l: the l asked for.
    """
    parts = int(part.max(initial=0)) + 1
    _, group = np.unique(bucket * parts + part, return_inverse=True)
    owner, _, count = count_cells(group, sensitive, int(group.max()) + 1, int(sensitive.max()) + 1)
    worst = float((count / np.bincount(group)[owner]).max())
    if worst * l > 1 + _TOLERANCE:
        raise RequirementError(
            f"{function}: the finished table links a record to a sensitive value with probability {worst:.4g}, "
            f"more than 1/l = {1 / l:.4g}; nothing is released"
        )


def check_covers(function: str, covers: Sequence[Cover], codes: Sequence[CodeArray]) -> None:
    """Raise unless every published value stands, among others, for the value it replaces.

    Args:
        function: SQL function, for messages.
        covers: published values by attribute.
        codes: true codes by attribute.
    """
    if not all(bool(covers_codes(cover, own).all()) for cover, own in zip(covers, codes, strict=True)):
        raise RequirementError(f"{function}: a generalized value misses its own value; nothing is released")


def check_parts(function: str, covers: Sequence[Cover], bucket: IntArray, k: int) -> None:
    """Raise unless each printed combination of a column occurs k times or more in its bucket.

    Args:
        function: SQL function, for messages.
        covers: printed values of the column's attributes.
        bucket: bucket of each slot.
        k: the k asked for.
    """
    printed = np.stack([bucket, *(cover.index for cover in covers)])
    fewest = int(np.unique(printed, axis=1, return_counts=True)[1].min())
    if fewest < k:
        raise RequirementError(
            f"{function}: a generalized cell has a part of {fewest} rows, fewer than k := {k}; nothing is released"
        )


def sliced_cells(
    grouping: Grouping,
    bucket: IntArray,
    rows: Mapping[str, IntArray],
    covers: Mapping[str, Cells],
    kept: IntArray,
    rng: np.random.Generator,
) -> dict[str, Cells]:
    """Cells of a sliced release; buckets are numbered at random, for their own numbers follow the values.

    Args:
        grouping: which attributes share a column.
        bucket: bucket of each slot.
        rows: source row of each slot by attribute.
        covers: cells of generalized attributes by name; the others print the value of their source row.
        kept: source row of each slot for insensitive columns and `row_id`, permuted like a column of its own.
        rng: numbers the buckets.
    """
    number = rng.permutation(int(bucket.max(initial=-1)) + 1)
    cells: dict[str, Cells] = {BUCKET.key: Whole(number[bucket])}
    for name, column in grouping.named().items():
        cells[name] = Struct({a: covers[a] if a in covers else Source(rows[a]) for a in column})
    cells[ROWS] = Source(kept)
    return cells
