"""Nearest rows by Gower's distance. Cost: targets times rows times columns."""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.jit import compiled_with_arrays
from duckdb_anon.model.coded_table import BoolArray, FloatArray, IntArray


@compiled_with_arrays
def nearest_rows(
    targets: FloatArray, rows: FloatArray, nominal: BoolArray, span: FloatArray, order: IntArray, out: IntArray,
    stop: IntArray,
) -> None:  # fmt: skip
    """Nearest rows of each target; of rows equally near the first by `order` count.

    Args:
        nominal: columns whose distance is 0 or 1; the others' is the difference over `span`, at most 1.
        span: range of each column, shape (columns,).
        order: rows in a random order.
        out: nearest rows, the nearest first, shape (targets, k), k at most the number of rows; filled.
    """
    k = out.shape[1]
    distance = np.empty(k)
    for t in range(out.shape[0]):
        if stop[0] != 0:
            return
        found = 0
        for j in order:
            far = 0.0
            for a in range(rows.shape[0]):
                if nominal[a]:
                    if targets[a, t] != rows[a, j]:
                        far += 1.0
                else:
                    far += min(abs(targets[a, t] - rows[a, j]) / span[a], 1.0)
            if found == k and far >= distance[k - 1] - 1e-12:
                continue
            at = found if found < k else k - 1
            while at > 0 and distance[at - 1] > far + 1e-12:
                distance[at] = distance[at - 1]
                out[t, at] = out[t, at - 1]
                at -= 1
            distance[at] = far
            out[t, at] = j
            found = min(found + 1, k)
