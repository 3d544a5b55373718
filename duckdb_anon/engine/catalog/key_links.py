"""Which table of a released database belongs to which: the columns of pseudonyms say it.

A pseudonym stands for a key of the original, and the same one in two tables for the same key. A table belongs to the
table in which one of its pseudonyms is unique; of several to the one that is furthest below.
Cost: a pass over the columns of pseudonyms for each pair of tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckdb_anon.engine.arrow import plain
from duckdb_anon.model.coded_table import IntArray


def key_links(tables: Sequence[Mapping[str, pa.Array]]) -> list[tuple[int, int, IntArray]]:
    """Order tables so that each comes after its parent.

    Args:
        tables: of each table the columns of its pseudonyms.

    Returns:
        Of each table its number, that of its parent (-1 for none), and the row of the parent that each row belongs to
        (-1 for none), shape (rows,).

    >>> patients, visits = {"id": pa.array(["a", "b"])}, {"patient": pa.array(["b", "b", "c"])}
    >>> [(table, parent, rows.tolist()) for table, parent, rows in key_links([visits, patients])]
    [(1, -1, []), (0, 1, [1, 1, -1])]
    """
    columns = [[plain(column) for column in table.values()] for table in tables]
    unique = [[column for column in each if _is_unique(column)] for each in columns]
    found = {
        (child, parent): rows
        for child, _ in enumerate(tables)
        for parent, _ in enumerate(tables)
        if child != parent and (rows := _rows_above(columns[child], unique[child], unique[parent])) is not None
    }
    order: list[int] = []
    links: list[tuple[int, int, IntArray]] = []
    while len(order) < len(tables):
        left = [table for table, _ in enumerate(tables) if table not in order]
        # next a table whose parents are all placed; where keys go in a circle, the first one
        ready = [table for table in left if not any((table, other) in found for other in left)]
        table = (ready or left)[0]
        above = [other for other in order if (table, other) in found]
        parent = above[-1] if above else -1
        links.append((table, parent, found[table, parent] if above else np.empty(0, dtype=np.int64)))
        order.append(table)
    return links


def _is_unique(column: pa.Array) -> bool:
    present = column.drop_null()
    return len(present) > 0 and pc.count_distinct(present).as_py() == len(present)


def _rows_above(columns: Sequence[pa.Array], own: Sequence[pa.Array], keys: Sequence[pa.Array]) -> IntArray | None:
    """Row of a table with unique keys for each row of another one; None where no key is shared."""
    for column in columns:
        for key in keys:
            if column.type != key.type:
                continue
            rows = pc.fill_null(pc.index_in(column, value_set=key, skip_nulls=True), -1)
            places: IntArray = rows.to_numpy(zero_copy_only=False).astype(np.int64)
            # of two tables with one row for each key, the larger one is above
            one_to_one = any(column is mine for mine in own) and len(key) <= len(column)
            if (places >= 0).any() and not one_to_one:
                return places
    return None
