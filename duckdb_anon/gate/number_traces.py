"""Whether numbers are those of identifiers, times a constant, plus a constant, or cut from a hash.

Two sets of numbers are compared by containment against chance: at least 90% of the released numbers are keys, and that
is six standard deviations more than the share of possible numbers that are keys would give. Numbers from 1 to n leave
no room for chance, so they have to be nearly all keys.
Cost: a few searches in the sorted keys; lines are tried on 200 numbers first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]

_FEWEST, _CONTAINED, _DEVIATIONS = 10, 0.9, 6
_FEWEST_OF_DENSE, _BEYOND, _AT_RANDOM = 40, 0.1, 1e-3
_ENDS, _TRIED = 10, 200
_SIZES = (*(1 << bits for bits in (31, 32, 63)), *(10**digits for digits in range(5, 19)))
_HALF = np.uint64(1 << 63)
_LINE = "times or plus a constant"


@dataclass(frozen=True)
class Keys:
    """Identifiers as numbers (dates in days since 1970, NaN for none), their digits backwards, and DuckDB's hashes."""

    numbers: Numbers
    backwards: Numbers
    hashes: Hashes

    @cached_property
    def sorted(self) -> Numbers:
        """The different numbers."""
        return _sorted(self.numbers)

    def of(self, rows: npt.NDArray[np.int64]) -> Keys:
        """Those of some rows."""
        return Keys(self.numbers[rows], self.backwards[rows], self.hashes[rows])

    def cuts(self) -> Iterator[tuple[str, Numbers]]:
        """Numbers that the digits or the hashes are cut to: backwards, with a sign, without some bits or digits."""
        yield "reversed", self.backwards
        half, signed = self.hashes >> np.uint64(1), (self.hashes ^ _HALF).view(np.int64)
        for cut in (self.hashes.view(np.int64), signed, half, self.hashes >> np.uint64(32)):
            yield "hash", cut.astype(np.float64)
        for size in _SIZES:
            yield "hash, remainder", (self.hashes % np.uint64(size)).astype(np.float64)


def beyond_chance(hits: int, tried: int, share: float) -> bool:
    """Whether nearly all are found, and more than there would be of which `share` is found by chance."""
    deviation = (tried * share * max(0.0, 1 - share)) ** 0.5
    enough = hits >= _FEWEST and hits >= _CONTAINED * tried
    return enough and deviation > 0 and hits > tried * share + _DEVIATIONS * deviation


def by_sets(values: Numbers, keys: Keys, *, unique: bool) -> str | None:
    """How sorted numbers follow from keys; None for no way.

    Where keys leave no room for chance, half of them have to be there unchanged, or nearly all on a line and `unique`,
    one for each record.
    """
    if contained(values, keys.sorted, covered=0.5):
        return "unchanged"
    some = values[np.linspace(0, len(values) - 1, _TRIED).astype(int)]
    for how, cut in keys.cuts():
        place = np.searchsorted(some, cut).clip(0, _TRIED - 1)
        if len(np.unique(some[place][some[place] == cut])) >= _CONTAINED * len(np.unique(some)):
            if contained(values, _sorted(cut)):
                return how
    if len(keys.sorted) < _FEWEST:
        return None
    for slope, start in _lines(values, keys.sorted):
        if np.count_nonzero(_near((some - start) / slope, keys.sorted)) >= _CONTAINED * _TRIED:
            if contained(np.sort((values - start) / slope), keys.sorted, _CONTAINED if unique else None):
                return _LINE
    return None


def by_record(numbers: Numbers, keys: Keys) -> str | None:
    """How the numbers of records follow from their own keys, in the same order; None for no way."""
    for how, cut in keys.cuts():
        if _most(numbers == cut, numbers):
            return how
    there = np.isfinite(keys.numbers)
    found, own = numbers[there], keys.numbers[there]
    for i, j in np.random.default_rng(0).integers(len(own), size=(_ENDS, 2)) if len(own) else ():
        if own[i] != own[j] and found[i] != found[j]:
            slope = (found[i] - found[j]) / (own[i] - own[j])
            if _most(np.abs((found - found[i]) / slope + own[i] - own) <= _tolerance(own), found):
                return _LINE
    return None


def _most(follows: npt.NDArray[np.bool_], numbers: Numbers) -> bool:
    return bool(np.count_nonzero(follows) >= len(numbers) / 2) and len(np.unique(numbers[follows])) >= _FEWEST


def contained(numbers: Numbers, keys: Numbers, covered: float | None = None) -> bool:
    """Whether sorted numbers are keys, which are sorted too, by no chance.

    `covered`: the share of all keys that is enough, where it reaches from end to end as a random choice of keys does.
    """
    hits = np.count_nonzero(_near(numbers, keys))
    if hits < _FEWEST or hits < _CONTAINED * len(numbers):
        return False
    if covered is not None and hits >= max(_FEWEST_OF_DENSE, covered * len(keys)):
        below, above = np.searchsorted(keys, numbers[0]), len(keys) - np.searchsorted(keys, numbers[-1], "right")
        missed = below + above
        if missed <= _BEYOND * len(keys) and (1 - hits / (len(keys) - missed)) ** max(below, above) >= _AT_RANDOM:
            return True
    low, high = np.quantile(numbers, (0.05, 0.95))
    inside = keys[(keys >= low) & (keys <= high)]
    possible = (high - low) / np.diff(inside).min() + 1 if len(inside) > 1 else 1
    return beyond_chance(int(hits), len(numbers), len(inside) / possible)


def _lines(numbers: Numbers, keys: Numbers) -> list[tuple[float, float]]:
    low, high, first, last = numbers[0], numbers[-1], keys[:_ENDS], keys[-_ENDS:]
    found = [(1.0, low - key) for key in first] + [(-1.0, low + key) for key in last]
    found += [(low / key, 0.0) for key in first if key] + [(high / key, 0.0) for key in last if key]
    for one in first[:4]:
        for other in last[-4:]:
            slope = (high - low) / (other - one) if other > one else 0.0
            found += [(slope, low - slope * one), (-slope, high + slope * one)]
    return [(slope, start) for slope, start in found if slope]


def _near(numbers: Numbers, keys: Numbers) -> npt.NDArray[np.bool_]:
    """Which numbers are keys, but for rounding."""
    if len(keys) < 2:
        return np.zeros(len(numbers), dtype=np.bool_)
    after = np.searchsorted(keys, numbers).clip(1, len(keys) - 1)
    distance = np.minimum(np.abs(keys[after] - numbers), np.abs(keys[after - 1] - numbers))
    close: npt.NDArray[np.bool_] = distance <= _tolerance(keys)
    return close


def _tolerance(keys: Numbers) -> float:
    return float(max(1e-6, 8 * np.finfo(float).eps * np.abs(keys).max()))


def _sorted(numbers: Numbers) -> Numbers:
    return np.unique(numbers[np.isfinite(numbers)])
