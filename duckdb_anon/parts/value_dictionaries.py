"""The values of every column with their counts: what a part must know of the whole.

Values are coded by the engine's own `code_column`, as if the table had one row a value, so codes, places and trees are
those a call on the whole table would give them. Where a column has more than `MOST` values, its parts learn only those
that its range and its odd ends hang on, not every value and count. Cost: a GROUP BY a column, and its distinct values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from duckdb_anon.engine.column_coding import code_column
from duckdb_anon.model.coded_table import Attribute, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import ColumnInfo
from duckdb_anon.model.hierarchy import Hierarchy

MOST = 200_000


@dataclass(frozen=True)
class Values:
    """The values of one column.

    Attributes:
        info: the column.
        attribute: its values as codes, one row a value, with the rows of the whole.
        told: which of these rows a part is told of, shape (told,).
    """

    info: ColumnInfo
    attribute: Attribute
    told: IntArray

    @property
    def every(self) -> bool:
        """Whether a part is told of every value."""
        return len(self.told) == len(self.attribute.codes)

    def counts(self) -> IntArray | None:
        """Rows of the whole with each code, None where a part's codes are its own."""
        return self.attribute.whole_counts if self.every else None


def values_of(function: str, info: ColumnInfo, keys: pa.Array, rows: IntArray, tree: Hierarchy | None) -> Values:
    """Code the values of a column.

    Args:
        function: SQL function, for messages.
        info: the column.
        keys: its distinct values.
        rows: rows of the table that have each of them.
        tree: its hierarchy.

    Raises:
        ColumnError: the column cannot be coded, or has names by the million.
    """
    attribute = code_column(function, info.name, keys, info.kind, tree)
    counts = np.zeros(attribute.domain, dtype=np.int64)
    np.add.at(counts, attribute.codes, rows)
    attribute = replace(attribute, whole_counts=counts)
    told = np.arange(len(attribute.codes), dtype=np.int64)
    if len(told) > MOST:
        if attribute.kind != "ordered":
            raise ColumnError(
                f"{function}: column '{info.name}' has {len(told):,} different names, and parts can know {MOST:,}; "
                "give it a hierarchy of fewer leaves, shorten its values, or keep it instead of naming it here"
            )
        ends = {0, attribute.special_from - 1, *range(attribute.special_from, attribute.domain)}
        told = told[np.isin(attribute.codes, sorted(ends))]
    return Values(info, attribute, told)


def most_told(values: Sequence[Values]) -> int:
    """Rows that a part needs to be told of the values of all columns."""
    return max((len(value.told) for value in values), default=0)
