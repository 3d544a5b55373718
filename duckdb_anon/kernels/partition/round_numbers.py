"""Round numbers of a column's own type: multiples of 1, 2 and 5 times powers of ten, whole years, months, hours.

A ladder of steps, coarse to fine, each with the two numbers of its grid next to any number. Cost: one pass over the
numbers a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.number_scale import Numbers, Scale

_MONTHS = (12_000, 6_000, 1_200, 600, 240, 120, 60, 24, 12, 6, 3, 1)
_SECONDS = (43_200, 21_600, 3_600, 1_800, 900, 300, 60, 30, 10, 5, 1)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FINEST = 30
"""Powers of ten below the largest number at which floats are told apart no further."""
_LARGEST = 2.0**62
_FARTHEST_MONTH = 60_000_000


@dataclass(frozen=True)
class Grid:
    """Every number that is a whole multiple of one step."""

    scale: Scale  # the type
    step: float  # length of a step on the scale, or in months
    decimals: int = 0  # decimal places of a step of a 'real' scale
    months: bool = False  # whether steps are months of the calendar

    @property
    def length(self) -> float:
        """Length of a step on the scale; of months, that of an average one."""
        per_day = 1 if self.scale.line == "date" else 86_400 * _PER_SECOND.get(self.scale.unit, 1)
        return self.step * 30.44 * per_day if self.months else self.step

    def above(self, numbers: Numbers) -> Numbers:
        """The least multiple that is no smaller than each number, or the greatest number of the type."""
        return self._moved(numbers, 1)

    def below(self, numbers: Numbers) -> Numbers:
        """The greatest multiple that is no greater than each number, or the least number of the type.

        >>> Grid(Scale('integer', np.array([0]), low=-128, high=127), 50).below(np.array([-7, 49, -120])).tolist()
        [-50, 0, -128]
        """
        return self._moved(numbers, -1)

    def steps_beyond(self, start: Any, count: int, sign: int) -> Numbers:
        """The multiple `count` steps above (sign 1) or below (-1) a multiple, or the end of the type."""
        index = self._index(np.asarray([start]))
        if self.scale.line == "real":
            return self._number(index + float(sign * count))
        # Python's integers have no end; what is beyond the type's is far beyond them on every scale
        far = _FARTHEST_MONTH if self.months else 2**63 - 1
        return self._number(np.array([min(max(int(index[0]) + sign * count, -far), far)]))

    def _moved(self, numbers: Numbers, sign: int) -> Numbers:
        index = self._index(numbers)
        found = self._number(index)
        beyond = (found < numbers) if sign > 0 else (found > numbers)
        found = np.where(beyond, self._number(index + sign), found)
        # a float next to a multiple may be rounded past it
        return np.maximum(found, numbers) if sign > 0 else np.minimum(found, numbers)

    def _index(self, numbers: NDArray[Any]) -> NDArray[Any]:
        if self.months:
            whole: NDArray[Any] = (self._month(numbers) + 1970 * 12) // int(self.step)
            return whole
        if self.scale.line == "real":
            return np.floor(numbers / self.step)
        return numbers // int(self.step)

    def _number(self, index: NDArray[Any]) -> Numbers:
        low, high = self.scale.low, self.scale.high
        if self.scale.line == "real":
            spelled = np.round(index * self.step, self.decimals) if abs(self.decimals) < 300 else index * self.step
            return np.clip(spelled, low, high)
        if self.months:
            months = np.clip(index * int(self.step) - 1970 * 12, -_FARTHEST_MONTH, _FARTHEST_MONTH)
            days = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
            return self._fitting(days, 1 if self.scale.line == "date" else 86_400 * _PER_SECOND[self.scale.unit])
        return self._fitting(index, int(self.step))

    def _fitting(self, index: NDArray[Any], step: int) -> Numbers:
        """Multiples of a step, moved to the ends of the type where they leave it."""
        far = index.astype(np.float64) * step
        inside = (far > max(self.scale.low, -_LARGEST)) & (far < min(self.scale.high, _LARGEST))
        ends = np.where(far < 0, int(self.scale.low), int(self.scale.high))
        return np.where(inside, np.where(inside, index, 0) * step, ends)

    def _month(self, numbers: Numbers) -> NDArray[np.int64]:
        per_day = 1 if self.scale.line == "date" else 86_400 * _PER_SECOND[self.scale.unit]
        days = numbers // per_day
        return days.astype(np.int64).astype("M8[D]").astype("M8[M]").astype(np.int64)


def grids(scale: Scale, largest: float) -> Iterator[Grid]:
    """Grids from coarse to fine.

    >>> [g.step for g in grids(Scale('integer', np.array([0])), 120)][:5]
    [5000, 2000, 1000, 500, 200]
    """
    if scale.line in ("date", "timestamp"):
        yield from (Grid(scale, months, months=True) for months in _MONTHS)
    if scale.line == "date":
        yield Grid(scale, 1)
        return
    if scale.line in ("time", "timestamp"):
        ticks = _PER_SECOND[scale.unit]
        yield from (Grid(scale, seconds * ticks) for seconds in (86_400, *_SECONDS))
        while ticks > 1:
            ticks //= 10
            yield from (Grid(scale, part * ticks) for part in (5, 2, 1))
        return
    power = int(np.floor(np.log10(max(largest, 1e-300)))) + 1
    if scale.line != "real":
        yield from (Grid(scale, part * 10**p) for p in range(min(power, 18), -1, -1) for part in (5, 2, 1) if p < 18)
        return
    for p in range(min(power, 307), max(power - _FINEST, -300), -1):
        yield from (Grid(scale, float(f"{part}e{p}"), -p) for part in (5, 2, 1))
