"""Anatomize as the paper writes it: one bucket after the other, from the currently largest value lists."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Hashable, Sequence


def anatomize(values: Sequence[Hashable], least: int, seed: int) -> list[int]:
    """Bucket of each record; the table must be eligible."""
    pick = random.Random(seed)
    lists: defaultdict[Hashable, list[int]] = defaultdict(list)
    for row, value in enumerate(values):
        lists[value].append(row)
    buckets: list[list[int]] = []
    while len(lists) >= least:
        largest = sorted(lists, key=lambda v: (-len(lists[v]), pick.random()))[:least]
        bucket = [lists[v].pop(pick.randrange(len(lists[v]))) for v in largest]
        lists = defaultdict(list, {v: rows for v, rows in lists.items() if rows})
        buckets.append(bucket)
    for value, rows in lists.items():
        for row in rows:
            fits = [b for b in buckets if value not in {values[r] for r in b}]
            pick.choice(fits).append(row)
    result = [-1] * len(values)
    for number, bucket in enumerate(buckets):
        for row in bucket:
            result[row] = number
    return result
