"""Records that match what is known of a target: boxes that cover it, and nearest rows by Gower's distance.

For each box the columns whose value it covers are a bit mask; boxes are counted by mask, and the number of those that
cover a set of columns is the sum over the masks that contain it. Cost: targets times boxes (rows) times columns.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.release_table import BoolArray


@compiled
def nearest_rows(
    targets: FloatArray,
    rows: FloatArray,
    nominal: BoolArray,
    span: FloatArray,
    order: IntArray,
    out: IntArray,
    stop: IntArray,
) -> None:
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


@compiled
def count_covering(
    covered: BoolArray,
    row: IntArray,
    size: FloatArray,
    with_value: FloatArray,
    secret_row: IntArray,
    out: FloatArray,
    stop: IntArray,
) -> None:
    """Count the records that cover what is known of each target, and those that hold its sensitive values.

    Args:
        covered: whether each box covers each value, the values of all columns one after another, shape (values, boxes).
        row: row of `covered` for each target's value, shape (targets, columns).
        size: records of each box.
        with_value: records of each box that hold each sensitive value, shape (sensitive values, boxes).
        secret_row: row of `with_value` for each target and sensitive column, shape (targets, sensitive columns).
        out: receives the counts of all records, then by sensitive column, shape (1 + sensitive columns, targets, sets);
            a set of known columns is a bit mask.
        stop: the flag of the call.
    """
    targets, columns = row.shape
    mask = np.zeros(len(size), dtype=np.int64)
    for t in range(targets):
        if stop[0] != 0:
            return
        mask[:] = 0
        for a in range(columns):
            inside = covered[row[t, a]]
            for b in range(len(size)):
                mask[b] |= np.int64(inside[b]) << a
        for b in range(len(size)):
            index = mask[b]
            out[0, t, index] += size[b]
            for k in range(secret_row.shape[1]):
                out[k + 1, t, index] += with_value[secret_row[t, k], b]
        for a in range(columns):
            for known in range(out.shape[2]):
                if not known >> a & 1:
                    for k in range(out.shape[0]):
                        out[k, t, known] += out[k, t, known | 1 << a]
