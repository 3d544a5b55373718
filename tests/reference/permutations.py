"""Every way to put the permuted columns of a small bucket back together, and what a query's total is in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np


def totals(columns: Sequence[Sequence[Any]], amount: Callable[..., float]) -> np.ndarray:
    """Total over the rows of one bucket of `amount`, in every assignment of the columns' cells to the rows.

    The first column stays as it is: permuting all of them only numbers the rows anew.
    """
    first, *others = columns
    assigned = product(*(permutations(column) for column in others))
    return np.array([sum(amount(*row) for row in zip(first, *columns, strict=True)) for columns in assigned])
