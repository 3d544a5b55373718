"""The privacy parameter delta of MuCo (Li et al. 2020, section 3), read exactly.

`delta` reaches the kernel as a float, a Decimal or a Fraction. A float such as 0.1666666667 is meant as
1/6, and the difference decides whether 6 records are enough, so reciprocals of integers are recognised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.errors import ParameterError, RequirementError

_RECIPROCAL_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Delta:
    """A delta in (0, 1].

    Attributes:
        value: delta as a float, exactly 1/K where delta is within 1e-9 of 1/K for a whole K.
        smallest_group: ceil(1/delta), the fewest records that can hide one another (Property 1 of the
            paper: a group of m records has a random output table iff delta >= 1/m).
    """

    value: float
    smallest_group: int

    @classmethod
    def of(cls, delta: Fraction | Decimal | float) -> Delta:
        """Read `delta`.

        Raises:
            ParameterError: delta is not in (0, 1].

        >>> Delta.of(0.1666666667).smallest_group, Delta.of(0.3).smallest_group
        (6, 4)
        """
        given = float(delta)
        if not 0.0 < given <= 1.0:
            raise ParameterError(f"muco: delta is {delta}; it must be above 0 and at most 1")
        inverse = 1.0 / given
        whole = round(inverse)
        if abs(given - 1.0 / whole) <= _RECIPROCAL_TOLERANCE:
            return cls(1.0 / whole, whole)
        return cls(given, math.ceil(inverse))

    def require(self, group_sizes: IntArray) -> None:
        """Raise RequirementError unless every nonempty group has at least `smallest_group` records."""
        present = group_sizes[group_sizes > 0]
        smallest = int(np.min(present)) if len(present) else self.smallest_group
        if smallest < self.smallest_group:
            raise RequirementError(
                f"muco: delta {self.value:.6g} needs groups of at least {self.smallest_group} records, but "
                f"one has {smallest}; the smallest delta these groups can meet is 1/{smallest}: raise delta "
                "or l"
            )
