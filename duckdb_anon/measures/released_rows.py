"""Rows and columns of a release as its original's: which columns there are, which original row each row comes from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from duckdb_anon.kernels.cells.table import ReadTable
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, RequirementError, listed, nearest
from duckdb_anon.model.function_specs import Report
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import SOURCE

OfRelease = partial(Report, tables=("original", "release"), reads="tables")
"""Entry of a measure that compares a release with its original."""


def is_plain(table: ReadTable, names: Sequence[str]) -> bool:
    """Whether all these columns are plain values."""
    return all(table.columns[name].plain for name in names)


def with_suppressed_cells(release: ReadTable, original: ReadTable, names: Sequence[str]) -> ReadTable:
    """A release whose suppressed cells may stand for any value, as an attacker reads them.

    Cells of a column are taken as suppressed where the column has more NULLs than in the original, and no value is more
    frequent than there: a method that also exchanges values is read as one that does, NULL being a value.
    """
    columns = dict(release.columns)
    for name in names:
        column, before = release.columns.get(name), original.columns.get(name)
        if column is None or before is None or not (column.plain and before.plain) or column.channel is not None:
            continue
        domain, codes = column.domain, column.value_codes()
        if domain.null_code < 0:
            continue
        more = np.bincount(codes, minlength=domain.size) - np.bincount(before.value_codes(), minlength=domain.size)
        if more[domain.null_code] > 0 and np.delete(more, domain.null_code).max(initial=0) <= 0:
            columns[name] = column.with_blanks()
    return replace(release, columns=columns)


def require_columns(release: ReadTable, names: Sequence[str]) -> None:
    """Raise unless the release has all these columns."""
    missing = [name for name in names if name not in release.columns]
    if missing:
        raise ColumnError(
            f"the release has no column {listed(missing)}{nearest(missing[0], release.columns)}; it has "
            f"{listed(release.columns) or 'none of them'}. Name the ones it has in qi := [...], sensitive := '...'"
        )


def require_rows(table: ReadTable, which: str) -> None:
    """Raise unless a table has rows."""
    if not table.rows:
        raise RequirementError(f"the {which} is empty, so there is no record to attack")


def spelled(given: str, names: Iterable[str], problem: str, allowed: str) -> str:
    """The one of some names that a call gives in any case; else an error with the problem and the names."""
    names = list(names)
    found = {fold(name): name for name in names}.get(fold(given))
    if found is None:
        raise ColumnError(f"{problem}{nearest(given, names)}; {allowed} {listed(names) or 'none'}")
    return found


def times_counted(release: ReadTable) -> FloatArray:
    """How often each row counts: once, or its noisy count, at least 0."""
    return np.maximum(release.row_weights(), 0.0) if release.counted else np.ones(release.rows)


def repeated_rows(release: ReadTable) -> IntArray:
    """Row numbers of a release as often as they count, rounded."""
    return np.repeat(np.arange(release.rows), np.rint(times_counted(release)).astype(np.int64))


def source_rows(original: ReadTable, release: ReadTable) -> IntArray:
    """Original row that each released row came from, -1 for fake rows (row_id NULL), shape (released rows,)."""
    number = release.sources()
    if number is None and release.counted:
        raise ColumnError(
            "the rows of the release are cells with noisy counts, which come from no row of the original; "
            "relative_error and workload_error measure such a release"
        )
    if number is None:
        raise ColumnError(
            f"the release has no column {SOURCE.word}, so the original of each row is unknown. "
            f"Make it again with {SOURCE.word} := true (for this check only, never for publication)"
        )
    fake = np.isnan(number)
    real = number[~fake]
    if len(number) and (not len(real) or (real != np.floor(real)).any()):
        raise ColumnError(f"the release's {SOURCE.word} does not number rows; take it from a release as it is made")
    if len(real) and (real.max() >= original.rows or real.min() < 0):
        raise ColumnError(
            f"the release's {SOURCE.word} goes from {real.min():.0f} to {real.max():.0f}, the original has "
            f"{original.rows} rows; these two do not belong together"
        )
    return np.where(fake, -1, number).astype(np.int64)


def released_rows(original: ReadTable, release: ReadTable) -> IntArray:
    """Released row of each original row, -1 where it was not released."""
    source = source_rows(original, release)
    real = np.flatnonzero(source >= 0)
    released = np.full(original.rows, -1, dtype=np.int64)
    released[source[real]] = real
    different = int((released >= 0).sum())
    if different < len(real):
        raise ColumnError(
            f"{len(real)} released rows share {different} row_ids; each original row may be released once"
        )
    return released


def replaced_rows(original: ReadTable, release: ReadTable, names: Sequence[str]) -> IntArray | None:
    """Source of each row; None where there is no row_id and boxes or permuted columns do without."""
    permuted = any(release.columns[name].slice for name in names)
    if release.sources() is None and (permuted or not is_plain(release, names)):
        return None
    return source_rows(original, release)
