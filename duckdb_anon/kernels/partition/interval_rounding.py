"""Ends of intervals that reveal no single record: each is shared by k rows, or is a round number beyond them.

A tight box prints the smallest and largest value of its group, which may be those of one individual. Here every end is
moved outwards, so that the box still covers its rows. The values of the column are dealt, in order, into classes of at
least k rows (persons, where persons count). An upper end moves to the greatest value of its class if k rows have that
value, otherwise to the roundest number between it and the greatest value of the next class. The last class has no next
one: its end is the first that covers the greatest value, from the value that k rows reach or exceed on, rounded to a
tenth of the range between it and its counterpart at the other end, in 0, 1, 2, 5, 10, 20, ... such steps; but 0 rather
than a number of the other sign. Lower ends mirror this. So a published end stands for k rows at least. A box of a
single value stays one. Round numbers are multiples of 1, 2 and 5 times powers of ten, whole years, months, hours, by
the type of the column; columns whose type has no exact arithmetic have shared values for ends, or none.
Cost: a sort of the rows an attribute, then linear in its values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.thread_pool import parallel_map
from duckdb_anon.model.coded_table import Attribute, CodeArray, CodedTable, IntArray
from duckdb_anon.model.function_specs import Params
from duckdb_anon.model.number_scale import Numbers, Scale
from duckdb_anon.model.released_columns import Cells, Interval

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
            steps: NDArray[Any] = (self._month(numbers) + 1970 * 12) // int(self.step)
            return steps
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


_POWERS = 40
Some = TypeVar("Some", bound=Cells)


def with_edges(
    table: CodedTable, cells: Mapping[str, Some], params: Params, person: CodeArray | None = None
) -> dict[str, Some]:
    """Return the cells with the ends of their intervals as `edges` asks for.

    `cells`: tight boxes by quasi-identifier; sets and nodes are left as they are.
    """
    result = dict(cells)
    if params["edges"] == "tight":
        return result
    least = max(2, params.get("k") or 0, math.ceil(params.get("l") or 0))
    intervals = [a for a in table.qi if isinstance(result.get(a.name), Interval)]
    moved = parallel_map(lambda a: rounded(a, result[a.name], least, person), intervals)  # type: ignore[arg-type]
    result.update(zip((a.name for a in intervals), moved, strict=True))  # type: ignore[arg-type]
    return result


def rounded(attribute: Attribute, box: Interval, least: int, person: CodeArray | None = None) -> Interval:
    """Return intervals that cover the given ones, with ends that `least` rows share or that are round numbers.

    Args:
        attribute: ordered, n codes.
        box: tight intervals of it.
        least: rows, or persons, that an end stands for.

    >>> ages = np.array([30, 30, 31, 123]); codes = np.array([0, 0, 1, 2], dtype=np.int32)
    >>> scale = Scale('integer', ages[1:], low=0, high=255)
    >>> age = Attribute('age', 'ordered', codes, ages[1:] * 1.0, 3, -1, np.arange(3), scale=scale)
    >>> box = rounded(age, Interval('age', codes[:1], codes[3:], np.zeros(4, dtype=np.int64)), 2)
    >>> box.lower.tolist(), box.upper.tolist(), box.new.tolist()
    ([0], [3], [131])
    """
    finite = attribute.special_from
    moved = (box.lower >= 0) & (box.lower < finite) & (box.lower != box.upper)
    if not moved.any():
        return box
    # of a part of a table the whole's rows share ends; whose they are only the part's own rows tell
    rows = attribute.counts if person is None else np.bincount(attribute.codes, minlength=attribute.domain)
    start = np.append(0, np.cumsum(rows[:finite])).astype(np.int64)
    if person is None:
        persons_by_value = np.zeros(0, dtype=np.int64)
    else:
        persons_by_value = person[np.argsort(attribute.codes, kind="stable")[: start[-1]]].astype(np.int64)
    line = _Line.of(persons_by_value, start, least)
    if attribute.scale is None:
        return _shared_only(box, moved, line.shared)
    ends = np.stack([_ends(attribute.scale, line, sign) for sign in (-1, 1)])
    codes, new = _coded(attribute.scale.numbers, attribute.domain, ends)
    lower, upper = box.lower.copy(), box.upper.copy()
    lower[moved], upper[moved] = codes[0][lower[moved]], codes[1][upper[moved]]
    return replace(box, lower=lower, upper=upper, new=new)


class _Line(NamedTuple):
    """The finite values of a column in order, shape (values,), and what many rows say of them."""

    rising: IntArray  # class of each value, dealt from the smallest on: 0, 1,
    falling: IntArray  # class of each value, dealt from the largest on
    shared: NDArray[np.bool_]  # whether enough rows have each value
    # the least value at which enough rows lie at or below it, and the greatest with enough at or above
    reached: tuple[int, int]

    @staticmethod
    def of(persons_by_value: IntArray, start: IntArray, least: int) -> _Line:
        """Deal values; value v is that of rows whose[start[v]:start[v + 1]], given by their persons.

        Where every row is a person, `persons_by_value` is empty.
        """
        persons = int(persons_by_value.max(initial=-1)) + 1
        rising, falling, shared = (np.zeros(len(start) - 1, dtype=np.int64) for _ in range(3))
        reached = [
            int(_deal(persons_by_value, start, least, order, np.full(persons, -1, dtype=np.int64), classes))
            for order, classes in ((1, rising), (-1, falling), (0, shared))
        ]
        return _Line(rising, falling, shared.astype(bool), (reached[0], reached[1]))


@compiled
def _deal(
    persons_by_value: IntArray, start: IntArray, least: int, order: int, seen: IntArray, class_of_value: IntArray
) -> int:
    """Number classes of `least` persons, too few at the end joining the last class; return the end of the first one.

    From the smallest value on (order 1) or the largest (-1); order 0 says instead whether each value alone has `least`.
    """
    values = len(class_of_value)
    first = 0 if order < 0 else values - 1
    number, count = 0, 0
    for position in range(values):
        value = values - 1 - position if order < 0 else position
        stamp = value if order == 0 else number
        count = 0 if order == 0 else count
        if len(persons_by_value) == 0:
            count += start[value + 1] - start[value]
        else:
            for i in range(start[value], start[value + 1]):
                if seen[persons_by_value[i]] != stamp:
                    seen[persons_by_value[i]] = stamp
                    count += 1
        class_of_value[value] = int(count >= least) if order == 0 else number
        if order != 0 and count >= least:
            first = value if number == 0 else first
            number += 1
            count = 0
    if order != 0 and count > 0 and number > 0:
        for value in range(values):
            if class_of_value[value] == number:
                class_of_value[value] = number - 1
    return first


def _ends(scale: Scale, line: _Line, sign: int) -> Numbers:
    """Published upper (sign 1) or lower end (-1) of intervals that end at each value."""
    numbers = scale.numbers[::sign]
    classes = line.rising if sign > 0 else line.falling[::-1]
    last = np.flatnonzero(np.diff(classes, append=-1))
    ends = numbers[last]
    # the value that enough rows reach or exceed, and its like at the other end of the line
    other, inner = (scale.numbers[position] for position in line.reached[::sign])
    open_ended = ~line.shared[::sign][last]
    ladder = list(grids(scale, float(np.abs(numbers.astype(np.float64)).max())))
    if open_ended[-1]:
        ends[-1] = _beyond(ladder, inner, other, ends[-1], sign)
        if (
            scale.line in ("real", "integer", "decimal")
            and scale.origin == 0
            and (numbers[-1] <= 0 if sign > 0 else numbers[-1] >= 0)
        ):
            ends[-1] = ends[-1].clip(max=0) if sign > 0 else ends[-1].clip(min=0)
        open_ended[-1] = False
    reach = numbers[last][1:].copy()
    reach[-1:] = inner
    which = np.flatnonzero(open_ended)
    for grid in ladder:
        if not len(which):
            break
        found = grid.above(ends[which]) if sign > 0 else grid.below(ends[which])
        near = found <= reach[which] if sign > 0 else found >= reach[which]
        ends[which[near]] = found[near]
        which = which[~near]
    published: Numbers = ends[classes][::sign]
    return published


def _beyond(ladder: Sequence[Grid], inner: Any, other: Any, extreme: Any, sign: int) -> Any:
    """The end of the outermost class, from the value that many reach and 1-2-5 steps beyond it."""
    width = abs(float(inner) - float(other)) / 10
    grid = next((g for g in ladder if g.length <= width), ladder[-1])
    start_value = np.asarray([inner])
    start = (grid.above(start_value) if sign > 0 else grid.below(start_value))[0]
    for count in chain([0], (part * 10**p for p in range(_POWERS) for part in (1, 2, 5))):
        end = grid.steps_beyond(start, count, sign)[0]
        if end >= extreme if sign > 0 else end <= extreme:
            return end
    return extreme


def _coded(values: Numbers, domain: int, ends: NDArray[Any]) -> tuple[CodeArray, Numbers]:
    """Codes of published ends, shape of `ends`, those no row has being `domain` and on; and the numbers of these."""
    position = np.minimum(np.searchsorted(values, ends), len(values) - 1)
    is_new = values[position] != ends
    new, number = np.unique(ends[is_new], return_inverse=True)
    codes = position.astype(np.int32)
    codes[is_new] = domain + number
    return codes, new


def _shared_only(box: Interval, moved: NDArray[np.bool_], shared: NDArray[np.bool_]) -> Interval:
    """Intervals that end at shared values; the whole line where there is none on one side."""
    places = np.arange(len(shared))
    up = np.minimum.accumulate(np.where(shared, places, len(shared))[::-1])[::-1]
    down = np.maximum.accumulate(np.where(shared, places, -1))
    lower, upper = box.lower.copy(), box.upper.copy()
    lower[moved], upper[moved] = down[lower[moved]], up[upper[moved]]
    open_ended = moved & ((lower < 0) | (upper == len(shared)))
    lower[open_ended], upper[open_ended] = -1, -1
    return replace(box, lower=lower, upper=upper)
