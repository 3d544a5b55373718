"""Telling sets apart by one 64-bit word: the sum of fixed pseudo-random words of their members.

Equal sets have equal words; different ones collide with probability 2^-64 a pair, which costs a check its
success, never a guarantee, because results are re-checked on the members themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from duckdb_anon.model.coded_table import IntArray

Words = NDArray[np.uint64]
BoolArray = NDArray[np.bool_]


def scrambled(words: Words) -> Words:
    """Mix the bits of each word (the finalizer of splitmix64), so that sums of words tell sets apart."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def fixed_words(count: int, salt: int) -> Words:
    """Return the word of each number below `count`; another `salt`, other words."""
    step = np.uint64(0x9E3779B97F4A7C15)
    return scrambled((np.arange(1, count + 1, dtype=np.uint64) + np.uint64(salt << 32)) * step)


def starts(*columns: NDArray[Any]) -> BoolArray:
    """Return true at the first entry and where any column differs from the entry before.

    >>> starts(np.array([4, 4, 7])).tolist()
    [True, False, True]
    """
    fresh = np.ones(len(columns[0]), dtype=bool)
    fresh[1:] = False
    for column in columns:
        fresh[1:] |= column[1:] != column[:-1]
    return fresh


def rank_in_run(sorted_keys: NDArray[Any]) -> IntArray:
    """Return the place of each entry among the equal keys around it.

    >>> rank_in_run(np.array([4, 4, 7])).tolist()
    [0, 1, 0]
    """
    first = np.flatnonzero(starts(sorted_keys))
    places: IntArray = np.arange(len(sorted_keys)) - np.repeat(first, np.diff(np.r_[first, len(sorted_keys)]))
    return places


def numbered(keys: Words) -> IntArray:
    """Number the distinct keys in the order in which they appear.

    Arrow's hash table does it several times faster than a sort.

    >>> numbered(np.array([9, 5, 9], dtype=np.uint64)).tolist()
    [0, 1, 0]
    """
    numbers: IntArray = pa.array(keys).dictionary_encode().indices.to_numpy().astype(np.int64)
    return numbers


def numbered_if_shared(keys: Words, least: int) -> tuple[IntArray, int]:
    """Number the keys that occur at least `least` times, -1 for the others; also return how many there are.

    >>> numbered_if_shared(np.array([9, 5, 9], dtype=np.uint64), 2)[0].tolist()
    [0, -1, 0]
    """
    number = np.full(len(keys), -1, dtype=np.int64)
    # Most keys are rare: a count by 18 of their bits rules them out before they are hashed.
    coarse = (keys >> np.uint64(46)).astype(np.int64)
    places = np.flatnonzero(np.bincount(coarse)[coarse] >= least)
    found = numbered(keys[places])
    frequent = np.bincount(found) >= least
    number[places] = np.where(frequent, np.cumsum(frequent) - 1, -1)[found]
    return number, int(frequent.sum())
