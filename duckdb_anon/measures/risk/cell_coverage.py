"""Which published boxes cover which values: shared by measures that match records against releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from duckdb_anon.kernels.row_keys import keys_of, keys_of_lists
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray
from duckdb_anon.model.errors import ColumnError, listed, nearest
from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.model.release_table import BoolArray, ReadColumn, ReadTable


def is_plain(table: ReadTable, names: Sequence[str]) -> bool:
    """Whether all these columns are plain values."""
    return all(table.columns[name].shape == "value" for name in names)


def require_columns(function: str, release: ReadTable, names: Sequence[str]) -> None:
    """Raise unless the release has all these columns.

    Args:
        function: SQL function, for messages.
        release: the release.
        names: names of columns.
    """
    missing = [name for name in names if name not in release.columns]
    if missing:
        raise ColumnError(
            f"{function}: the release has no column {listed(missing)}{nearest(missing[0], release.columns)}; it has "
            f"{listed(release.columns) or 'none of them'}. Name the ones it has in qi := [...], sensitive := '...'"
        )


def source_rows(function: str, original: ReadTable, release: ReadTable) -> IntArray:
    """Original row that each released row came from, -1 for fake rows (row_id NULL), shape (released rows,).

    Args:
        function: SQL function, for messages.
        original: the original.
        release: the release.

    Raises:
        ColumnError: when rows stand for counts, there is no row_id, or it does not number the original's rows.
    """
    number = release.sources()
    if number is None and release.counted:
        raise ColumnError(
            f"{function}: the rows of the release are cells with noisy counts, which come from no row of the original; "
            "relative_error and workload_error measure such a release"
        )
    if number is None:
        raise ColumnError(
            f"{function}: the release has no column {SOURCE.word}, so nobody can say which original each row comes "
            f"from; make it again with {SOURCE.word} := true (for this check only, never for publication)"
        )
    fake = np.isnan(number)
    real = number[~fake]
    if len(number) and (not len(real) or (real != np.floor(real)).any()):
        raise ColumnError(
            f"{function}: the release's {SOURCE.word} does not number rows; take it from a release as it is made"
        )
    if len(real) and (real.max() >= original.rows or real.min() < 0):
        raise ColumnError(
            f"{function}: the release's {SOURCE.word} goes from {real.min():.0f} to {real.max():.0f}, the original has "
            f"{original.rows} rows; these two do not belong together"
        )
    return np.where(fake, -1, number).astype(np.int64)


def replaced_rows(function: str, original: ReadTable, release: ReadTable, names: Sequence[str]) -> IntArray | None:
    """See `source_rows`; None where there is no row_id and boxes or permuted columns do without.

    Args:
        function: SQL function, for messages.
        original: the original.
        release: the release.
        names: columns that are compared.

    Raises:
        ColumnError: the columns are plain values, any of which may have been replaced, and there is no row_id.
    """
    sliced = any(release.columns[name].slice for name in names)
    if release.sources() is None and (sliced or not is_plain(release, names)):
        return None
    return source_rows(function, original, release)


@dataclass
class DistinctBoxes:
    """The different boxes of a release.

    Attributes:
        number: how many there are.
        of_row: box of each released row.
        columns: the released quasi-identifiers.
        first_row: a released row of each box.
    """

    number: int
    of_row: IntArray
    columns: list[ReadColumn]
    first_row: IntArray
    known: dict[int, BoolArray] = field(default_factory=dict)

    def covers(self, a: int) -> BoolArray:
        """Whether box b covers code v of quasi-identifier a, shape (domain, boxes)."""
        if a not in self.known:
            self.known[a] = covers(self.columns[a], self.first_row)
        return self.known[a]


def distinct_boxes(original: ReadTable, release: ReadTable, qi: Sequence[str]) -> DistinctBoxes:
    """Find the different boxes of a release over the quasi-identifiers `qi`.

    Args:
        original: the original, for its codes.
        release: its release.
        qi: names of the quasi-identifiers.

    Raises:
        ColumnError: when the release lacks one of them.
    """
    missing = [name for name in qi if name not in release.columns]
    if missing:
        raise ColumnError(f"the release has no column {', '.join(missing)}; it cannot be compared on it")
    columns = [release.columns[name] for name in qi]
    keys = keys_of([cell_numbers(column) for column in columns])
    return DistinctBoxes(keys.number, keys.of_row, columns, keys.first)


def cell_numbers(column: ReadColumn) -> IntArray:
    """A number for each row, equal where the published cells are equal."""
    if column.shape == "value" and column.codes is not None:
        return column.codes.astype(np.int64)
    if column.shape == "interval" and column.lower is not None and column.upper is not None:
        return (column.lower.astype(np.int64) + 1) * (column.domain.size + 1) + column.upper + 1
    if column.shape == "node" and column.node is not None:
        return column.node.astype(np.int64)
    members = column.node if column.codes is None else column.codes
    if column.offsets is None or members is None:
        raise ColumnError(f"column '{column.domain.name}' is {column.shape}; releases of rows and boxes are read")
    return keys_of_lists(column.offsets, members).of_row


def covers(column: ReadColumn, rows: IntArray) -> BoolArray:
    """Whether the cell of row rows[b] covers code v, shape (domain, boxes)."""
    domain = column.domain
    codes = np.arange(domain.size, dtype=np.int32)[:, None]
    if column.shape == "value" and column.codes is not None:
        same: BoolArray = codes == column.codes[rows]
        return same
    if column.shape == "interval" and column.lower is not None and column.upper is not None:
        lower, upper = column.lower[rows], column.upper[rows]
        inside: BoolArray = (lower < 0) | ((codes >= lower) & (codes <= upper))
        return inside
    if column.shape == "node" and column.node is not None:
        return _below(domain, column.node[rows])
    if column.offsets is None:
        raise ColumnError(f"column '{domain.name}' is {column.shape}; releases of rows and boxes are read")
    result = np.zeros((domain.size, len(rows)), dtype=bool)
    member, box = cells_of_lists(column, rows)
    if column.codes is not None:
        result[member, box] = True
    elif column.node is not None:
        below = _below(domain, member)
        for v in range(domain.size):
            result[v] = np.bincount(box, weights=below[v], minlength=len(rows)) > 0
    return result


def cells_of_lists(column: ReadColumn, rows: IntArray) -> tuple[CodeArray, IntArray]:
    """Codes, or nodes, of the lists of some rows, one after another, and the place in `rows` of each one's row.

    Args:
        column: sets of values or of nodes.
        rows: numbers of rows.

    Raises:
        TypeError: the column holds no lists.
    """
    members = column.node if column.codes is None else column.codes
    if column.offsets is None or members is None:
        raise TypeError(f"column '{column.domain.name}' is {column.shape}, not lists")
    lengths = np.diff(column.offsets)[rows]
    member = np.repeat(column.offsets[rows] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    return members[member], np.repeat(np.arange(len(rows)), lengths)


def common_node(domain: Attribute, first: CodeArray, second: CodeArray) -> IntArray:
    """Lowest node of the hierarchy above two values, for each pair of codes.

    Args:
        domain: the attribute.
        first: codes.
        second: codes, of the same shape.

    Raises:
        ColumnError: when the domain has no hierarchy.
    """
    tree, leaf = domain.tree()
    return tree.lowest_above(tree.node_of_leaf[leaf[first]], leaf[second])


def _below(domain: Attribute, node: CodeArray) -> BoolArray:
    """Whether leaf of code v lies below each node, shape (domain, nodes)."""
    tree, leaf = domain.tree()
    return tree.holds(node, leaf[:, None])
