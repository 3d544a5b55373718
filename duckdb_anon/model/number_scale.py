"""The number line of an ordered column's own type: what a kernel reckons on when it makes new values.

`Attribute.positions` serves distances, as floats. A new value of the column's type (a mean, a date moved by noise)
must be exact: `Scale.numbers` counts whole steps of the type. A step is 1 for whole numbers, one unit in the last
place for decimals (0.01 for DECIMAL(9,2)), a day for dates, and for timestamps and times what their type counts
(second, millisecond, microsecond, nanosecond). FLOAT and DOUBLE have no steps: their numbers are the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64] | NDArray[np.float64]
Line = Literal["real", "integer", "decimal", "date", "time", "timestamp"]


@dataclass(frozen=True)
class Scale:
    """Numbers of the finite values of an ordered attribute, by code, and how new ones become values.

    Exact for every type as long as the values of the column lie within 2^63 steps of each other; where they do not
    (possible for DECIMAL of 19 digits and more, UBIGINT and HUGEINT) the attribute has no scale.
    """

    line: Line  # what kind of type it is; 'real' numbers are float64, all others int64
    numbers: Numbers  # number of each code below `Attribute.special_from`, strictly rising: steps from `origin`
    # the value that number 0 stands for, in steps from 0 (or from 1970-01-01, or midnight). It is 0 unless values need
    # more than 63 bits.
    origin: int = 0
    digits: int = 0  # decimal places of a 'decimal'
    unit: str = ""  # what a step of a 'timestamp' or 'time' is: 's', 'ms', 'us' or 'ns'
    zoned: bool = False  # whether a timestamp is one with time zone
    low: float = -np.inf  # least and greatest number that the type can hold (at most what fits an int64)
    high: float = np.inf

    @property
    def step(self) -> float:
        """One step in units of `Attribute.positions`: 0.01 for two decimal places, else 1."""
        return float(10.0**-self.digits)

    def fitted(self, numbers: NDArray[Any]) -> Numbers:
        """Numbers of the type next to the given ones: rounded half to even, and moved to its ends beyond them.

        >>> Scale('integer', np.array([0, 9]), low=-128, high=127).fitted(np.array([2.5, 7.2, 400.0])).tolist()
        [2, 7, 127]
        """
        if self.line == "real":
            finite = np.isfinite(numbers)
            return np.where(finite, np.clip(numbers, self.low, self.high), numbers).astype(np.float64)
        if np.issubdtype(numbers.dtype, np.floating):
            if not np.isfinite(numbers).all():
                raise ValueError("a number is not finite")
            numbers = np.rint(numbers)
            # float64 cannot tell the greatest int64 from the number above it
            top = numbers >= 2.0**63
            numbers = np.where(top, 0.0, np.maximum(numbers, -(2.0**63))).astype(np.int64)
            numbers[top] = np.iinfo(np.int64).max
        return np.clip(numbers.astype(np.int64), int(self.low), int(self.high))

    def positions(self, numbers: NDArray[Any]) -> NDArray[np.float64]:
        """Places of numbers on the line of `Attribute.positions`, to 53 bits."""
        return (numbers.astype(np.float64) + float(self.origin)) / 10.0**self.digits
