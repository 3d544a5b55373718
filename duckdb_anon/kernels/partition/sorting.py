"""Sorting a few codes in place, for compiled functions. Cost: n^1.3 comparisons (Shell 1959, gaps of Knuth 1973)."""

from __future__ import annotations

from duckdb_anon.kernels.jit import compiled_in_place
from duckdb_anon.model.coded_table import IntArray


@compiled_in_place
def sort_codes(codes: IntArray, size: int) -> None:
    """Sort the first `size` codes, ascending."""
    gap = 1
    while gap < size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            code = codes[i]
            j = i
            while j >= gap and codes[j - gap] > code:
                codes[j] = codes[j - gap]
                j -= gap
            codes[j] = code
        gap //= 3
