"""Permuting each column of a bucketed table inside its buckets, and the last checks of a sliced table.

Slot i of the released table takes record `order[i]`; slots are listed bucket by bucket. Every column gets an
independent uniform permutation of each bucket's records (Li et al. 2012, section 3), so within a bucket the link
between columns is broken while the values of each column stay. `swapped` then exchanges cells of rows that violate a
rule (Hasan, Jiang, Luo, Li and Chen 2016, of which only the abstract was available: a reading). Nothing is released
before every column is found to be a permutation of its bucket's records and the sensitive values of every bucket to be
diverse. Cost: one stable sort per column, O(n log n), a few passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import BoolArray
from duckdb_anon.kernels.partition.sort_count import count_cells, run_starts
from duckdb_anon.kernels.row_keys import compact
from duckdb_anon.model.coded_table import CodeArray, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_formats import BUCKET
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Source, Struct, Whole

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Grouping:
    """Which attributes share a column."""

    # names of the quasi-identifiers of each column that does not have the sensitive attribute
    qi: tuple[tuple[str, ...], ...]
    partners: tuple[str, ...]  # quasi-identifiers that share the sensitive attribute's column
    sensitive: str  # name of the sensitive attribute

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """All columns, the sensitive one last, the sensitive attribute last in it."""
        return (*self.qi, (*self.partners, self.sensitive))

    def named(self) -> dict[str, tuple[str, ...]]:
        """Released column name to its attributes; names are the attributes joined by '_'."""
        names: dict[str, tuple[str, ...]] = {}
        for column in self.columns:
            name = "_".join(column)
            while name in names:
                name += "_"
            names[name] = column
        return names


def shuffled_slots(bucket_of_record: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the record of each slot after one uniform permutation inside every bucket, buckets ascending."""
    tick()
    mixed = rng.permutation(len(bucket_of_record))
    return mixed[np.argsort(bucket_of_record[mixed], kind="stable")].astype(np.int64, copy=False)


def is_bucket_permutation(order: IntArray, bucket_of_record: IntArray) -> bool:
    """Whether `order` lists every record once and each inside its bucket's slots."""
    tick()
    n = len(bucket_of_record)
    if len(order) != n or (n and (order.min() < 0 or order.max() >= n)):
        return False
    once = bool(np.all(np.bincount(order, minlength=n) == 1)) if n else True
    return once and bool(np.all(bucket_of_record[order] == np.sort(bucket_of_record)))


def swapped(
    orders: Sequence[IntArray],
    bucket: IntArray,
    violates: Callable[[Sequence[IntArray]], BoolArray],
    rounds: int,
    rng: np.random.Generator,
) -> list[IntArray]:
    """Swap cells for a number of rounds, or until no row violates a rule.

    Each row that violates a rule exchanges its cell of one column with a random row of its bucket, unless of the two
    rows more violate a rule then. Columns stay permutations of the bucket's records.

    Args:
        orders: record of each slot, column by column, the sensitive one last, each of shape (n,).
        violates: whether rows made of the given records, column by column, violate a rule.
        rounds: largest number of rounds.

    Returns:
        Record of each slot, column by column.
    """
    orders = [order.copy() for order in orders]
    violating = violates(orders) if rounds else np.zeros(len(bucket), dtype=bool)
    for number in range(rounds):
        if not violating.any():
            break
        left, right = _pairs(np.flatnonzero(violating), bucket, rng)
        lowest = len(orders) - 1 if number % 2 == 0 else 0  # most rules name the sensitive value, the last column
        column = np.tile(rng.integers(lowest, len(orders), len(left)), 2)
        slots, others = np.concatenate([left, right]), np.concatenate([right, left])
        trial = [np.where(column == c, order[others], order[slots]) for c, order in enumerate(orders)]
        after = violates(trial)
        gain = violating[slots].astype(np.int64) - after
        # the two slots of a pair lie half the array apart; an exchange that helps neither may make room for another
        helps = gain + np.roll(gain, len(left)) >= 0
        for order, cells in zip(orders, trial, strict=True):
            order[slots[helps]] = cells[helps]
        violating[slots[helps]] = after[helps]
    return orders


def _pairs(violating: IntArray, bucket: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Pair violating slots with random other slots of their buckets; no slot is in two pairs."""
    violating = rng.permutation(violating)
    first = run_starts(bucket)
    size = np.diff(np.append(first, len(bucket)))
    bucket_of = np.searchsorted(first, violating, side="right") - 1
    step = 1 + (rng.random(len(bucket_of)) * (size[bucket_of] - 1)).astype(np.int64)
    partner = first[bucket_of] + (violating - first[bucket_of] + step) % size[bucket_of]
    pairs = np.stack([violating, partner], axis=1)
    fresh = np.zeros(pairs.size, dtype=bool)
    fresh[np.unique(pairs.ravel(), return_index=True)[1]] = True
    disjoint = pairs[fresh.reshape(-1, 2).all(axis=1)]
    return disjoint[:, 0], disjoint[:, 1]


def check_columns(function: str, orders: Sequence[IntArray], bucket_of_record: IntArray) -> None:
    """Raise unless every column lists each record once, inside its bucket."""
    if not all(is_bucket_permutation(order, bucket_of_record) for order in orders):
        raise RequirementError(f"{function}: a column is not a permutation inside its buckets; nothing is released")


def check_diversity(function: str, bucket: IntArray, part: IntArray, sensitive: CodeArray, l: float) -> None:  # noqa: E741
    """Raise unless every sensitive value has a share of at most 1/l in each (bucket, last column part).

    `part`: combination of the attributes that share the sensitive column, of each record; zeros if it is alone.
    """
    group = compact(bucket * (int(part.max(initial=0)) + 1) + part)
    owner, _, count = count_cells(group, sensitive, int(group.max()) + 1, int(sensitive.max()) + 1)
    worst = float((count / np.bincount(group)[owner]).max())
    if worst * l > 1 + _TOLERANCE:
        raise RequirementError(
            f"{function}: the finished table links a record to a sensitive value with probability {worst:.4g}, "
            f"more than 1/l = {1 / l:.4g}; nothing is released"
        )


def sliced_cells(
    grouping: Grouping,
    bucket: IntArray,
    codes: Mapping[str, CodeArray],
    insensitive: IntArray,
    rng: np.random.Generator,
) -> dict[str, Cells]:
    """Return the columns of a sliced release; buckets are numbered at random, for their order follows the values.

    `codes`: code of each slot by attribute; `insensitive`: source row of each slot for insensitive columns and
    `row_id`, permuted like a separate column.
    """
    number = rng.permutation(int(bucket.max(initial=-1)) + 1)
    cells: dict[str, Cells] = {BUCKET.key: Whole(number[bucket])}
    for name, column in grouping.named().items():
        cells[name] = Struct({a: Coded(a, codes[a]) for a in column})
    cells[ROWS] = Source(insensitive)
    return cells
