"""Choosing an option for every person so that each chosen option keeps at least k persons.

Every person starts at the option that saves it most. Options with too few persons are closed, the smallest
first: the number required rises from 1 to k in steps, and the persons of a closed option move on to the best
one still open to them. A person without an open option stays as it is published now; where fewer than k
persons of a bucket stay, others are called back (the balancing of Partition, He & Naughton 2009).

Departure from He & Naughton, who expand one node for the whole bucket and dissolve its small parts: each
person chooses its own node, which loses less. Cost: one sort of the pairs, then linear in the moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.set_valued.hashing import rank_in_run, starts
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray

STEPS = 24
"""Steps in which the number of persons an open option must have rises to k."""


@dataclass(frozen=True)
class Options:
    """Pairs of a person and an option, persons ascending.

    Attributes:
        person: person of each pair.
        option: number of the option; at least k pairs have it.
        gain: what the option saves the person, above 0.
        count: how many options there are.
    """

    person: CodeArray
    option: IntArray
    gain: FloatArray
    count: int


def settle(options: Options, bucket: IntArray, active: IntArray, k: int) -> IntArray:
    """Choose a pair of `options` for each person.

    Args:
        options: pairs of a person and an option.
        bucket: bucket of every person.
        active: the persons of the buckets in question, ascending; some may have no option.
        k: least number of persons an option, or the rest of a bucket, may have.

    Returns:
        For each person of `active` the chosen pair, or -1 to stay. The persons who choose one option are none
        or at least k, and so are the persons of a bucket who stay.
    """
    place = np.full(len(bucket), -1, dtype=np.int64)
    place[active] = np.arange(len(active))
    person = place[options.person]
    order = _preferences(options, person)
    # `order` only moves pairs within their person, so `person` is still right for it
    chosen = _close_small(options.option[order], person, len(active), k)
    chosen = np.where(chosen >= 0, order[chosen], -1)
    owner = bucket[active]
    staying = np.bincount(owner[chosen < 0], minlength=int(owner.max(initial=0)) + 1)
    leaving = np.bincount(owner[chosen >= 0], minlength=len(staying))
    lacking = np.where((staying > 0) & (staying < k) & (leaving > 0), k - staying, 0)
    return _call_back(options, chosen, owner, lacking, k) if lacking.any() else chosen


def _preferences(options: Options, person: IntArray) -> IntArray:
    """Order the pairs by person, then by falling gain (to 24 bits or less), then as they come."""
    # One integer sorts all: person, complement of the gain (bits of floats rise with their value), place.
    place = rank_in_run(person)
    low = max(1, int(place.max(initial=0)).bit_length())
    bits = (np.uint64(0x7FFFFFFF) - options.gain.astype(np.float32).view(np.uint32)) >> np.uint64(max(0, low - 8))
    high = np.uint64(31 - max(0, low - 8) + low)
    key = np.sort((person.astype(np.uint64) << high) | (bits << np.uint64(low)) | place.astype(np.uint64))
    order: IntArray = (key & np.uint64((1 << low) - 1)).astype(np.int64) + np.arange(len(place)) - place
    return order


def _close_small(option: IntArray, person: IntArray, persons: int, k: int) -> IntArray:
    """Return the pair each person ends at, pairs being in order of preference; -1 for none."""
    bounds = np.searchsorted(person, np.arange(persons + 1))
    here, end = bounds[:-1].copy(), bounds[1:]
    here[here == end] = -1
    closed = np.zeros(int(option.max(initial=-1)) + 1, dtype=bool)
    steps = [*np.unique(np.geomspace(1, k, STEPS).astype(int)).tolist(), k]
    while steps:
        settled = np.flatnonzero(here >= 0)
        kept = np.bincount(option[here[settled]], minlength=len(closed))
        small = (kept > 0) & (kept < steps[0])
        if len(steps) > 1 or not small.any():
            steps.pop(0)
        closed |= small
        moving = settled[small[option[here[settled]]]]
        while len(moving):
            here[moving] += 1
            over = here[moving] == end[moving]
            here[moving[over]] = -1
            moving = moving[~over]
            moving = moving[closed[option[here[moving]]]]
    return here


def _call_back(options: Options, chosen: IntArray, owner: IntArray, lacking: IntArray, k: int) -> IntArray:
    """Let persons stay until each bucket that lacks some has k: first those who lose least by it.

    No option goes below k by this; where a bucket's options cannot spare enough, the one that saves least in
    all is given up, and its persons stay.
    """
    able = np.flatnonzero((chosen >= 0) & (lacking[owner] > 0))
    option, gain = options.option[chosen[able]], options.gain[chosen[able]]
    size = np.bincount(option, minlength=options.count)
    by_option = np.lexsort((gain, option))
    spare = by_option[rank_in_run(option[by_option]) < (size - k)[option[by_option]]]
    spare = spare[np.lexsort((spare, gain[spare], owner[able[spare]]))]
    spare = spare[rank_in_run(owner[able[spare]]) < lacking[owner[able[spare]]]]
    stays = np.zeros(len(able), dtype=bool)
    stays[spare] = True
    short = lacking > np.bincount(owner[able[spare]], minlength=len(lacking))
    rest = np.flatnonzero(~stays & short[owner[able]])
    if len(rest):
        total = np.bincount(option[rest], gain[rest], minlength=options.count)
        used, example = np.unique(option[rest], return_index=True)
        home = owner[able[rest[example]]]
        ranked = np.lexsort((used, total[used], home))
        given_up = np.zeros(options.count, dtype=bool)
        given_up[used[ranked[starts(home[ranked])]]] = True
        stays |= given_up[option]
    result = chosen.copy()
    result[able[stays]] = -1
    return result
