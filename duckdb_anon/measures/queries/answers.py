"""Exact answers of a workload on a table of rows, all queries at once.

Each query is one bit. The bits of a row are the AND, over the attributes, of the bits its code has: a table
lookup and a few machine words a row, whatever the number of queries. Only then are the bits spread out and
summed with the rows' weights. Identical rows are added up first.

Cost: O(rows * attributes * n / 64) for the bits and O(distinct rows * n) for the sums.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 4096


def packed(matches: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Pack queries into bits, shape (domain + 1, n / 8); the extra last row (code -1) matches nothing."""
    bits = np.packbits(matches.T, axis=1)
    return np.vstack([bits, np.zeros((1, bits.shape[1]), dtype=np.uint8)])
