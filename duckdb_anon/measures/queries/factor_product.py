"""Products of independent parts, for many rows and all queries of a workload at once.

Parts whose cells are plain values answer with one bit a query: their product is the AND of a few machine
words a row. Only the other parts need a number for each row and query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.queries.workload import BoolArray, Workload
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.progress import tick

BLOCK = 4096
_MOST_SHARES = 16_000_000


@dataclass(frozen=True)
class ProductPart:
    """One independent part of the rows of a release.

    Attributes:
        shares: a workload to the share of each cell its queries ask for, shape (cells, n).
        cell_of_row: number of the cell each row holds.
        cells: number of cells.
        requested: for cells that are plain values: a workload to whether each query asks for each, (n, cells).
    """

    shares: Callable[[Workload], FloatArray]
    cell_of_row: IntArray
    cells: int
    requested: Callable[[Workload], BoolArray] | None = None


def summed(workload: Workload, parts: Sequence[ProductPart], weights: FloatArray) -> FloatArray:
    """Sum weight times the product of shares over all rows, for each query; shape (n,).

    Equal rows are added up first; queries go in batches that bound the memory of the shares.

    Args:
        workload: the queries.
        parts: cells of each column and what they say of each query.
        weights: rows each row stands for.
    """
    group, first = keys_of([part.cell_of_row for part in parts])
    sums = np.bincount(group, weights, minlength=len(first))
    answers = np.zeros(workload.n)
    wide = max((part.cells for part in parts if part.requested is None), default=1)
    batch = max(16, _MOST_SHARES // max(wide, 1))
    for start in range(0, workload.n, batch):
        which = slice(start, start + batch)
        product = Product(some(workload, which), parts)
        for at in range(0, len(first), BLOCK):
            tick()
            block = slice(at, at + BLOCK)
            answers[which] += sums[block] @ product.of(first[block]).astype(np.float64, copy=False)
    return answers


def some(workload: Workload, which: slice) -> Workload:
    """Some queries of a workload."""
    return replace(workload, used=workload.used[which], matches=tuple(m[which] for m in workload.matches))


class Product:
    """The product of the parts' shares, on demand for blocks of rows."""

    def __init__(self, workload: Workload, parts: Sequence[ProductPart]) -> None:
        """Prepare the tables of all parts."""
        self.n = workload.n
        self.bits = [
            (packed(part.requested(workload)), part.cell_of_row) for part in parts if part.requested is not None
        ]
        self.tables = [(part.shares(workload), part.cell_of_row) for part in parts if part.requested is None]

    def of(self, rows: IntArray) -> NDArray[Any]:
        """Shape (rows, n): uint8 when every part is plain, else float64."""
        product: NDArray[Any] | None = None
        if self.bits:
            table, cell = self.bits[0]
            both = table[cell[rows]]
            for table, cell in self.bits[1:]:
                both &= table[cell[rows]]
            product = np.unpackbits(both, axis=1, count=self.n)
        for shares, cell in self.tables:
            mine = shares[cell[rows]]
            product = mine if product is None else np.multiply(mine, product, out=mine)
        return np.ones((len(rows), self.n), dtype=np.uint8) if product is None else product


def packed(matches: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Pack queries into bits, shape (domain + 1, n / 8); the extra last row (code -1) matches nothing."""
    bits = np.packbits(matches.T, axis=1)
    return np.vstack([bits, np.zeros((1, bits.shape[1]), dtype=np.uint8)])
