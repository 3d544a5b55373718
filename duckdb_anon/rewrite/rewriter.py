"""From a bound query over the original to the query that estimates its answer from the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.errors import RewriteError, listed, nearest
from duckdb_anon.rewrite.parse import grounded
from duckdb_anon.rewrite.schema import TableInfo


@dataclass(frozen=True)
class Estimate:
    """A rewritten query.

    Attributes:
        tree: its output columns are the query's own, then low and high of each bounded measure.
        bounded: numbers of the output columns that have low and high.
    """

    tree: exp.Query
    bounded: tuple[int, ...] = ()


def estimator(
    tree: exp.Query, release: TableInfo, tables: Sequence[TableInfo], with_bounds: bool = False
) -> Estimate:
    """Rewrite a bound query.

    Args:
        tree: the query, as `parse.bound` returns it.
        release: the release of the original.
        tables: the original first, then other tables of the query.
        with_bounds: add low and high of each measure that has them.

    Raises:
        RewriteError: naming what cannot be estimated.
    """
    if not release.columns:
        raise RewriteError(
            f"the planner cannot see the columns of the release {release.name}; commit it first, or create "
            "it as a table that is not temporary"
        )
    _require_columns(tree, release, tables[0])
    return Estimate(grounded(tree, [release, *tables[1:]]))


def _require_columns(tree: exp.Query, release: TableInfo, original: TableInfo) -> None:
    there = release.types
    aliases = {t.alias_or_name for t in tree.find_all(exp.Table) if t.name == "_t0"}
    for column in tree.find_all(exp.Column):
        if column.table in aliases and column.name.lower() not in there:
            name = original.spelled(column.name)
            released = [c for c, _ in release.columns]
            raise RewriteError(
                f"column '{name}' is not in the release {release.name}{nearest(name, released)}; "
                f"released are {listed(released)}"
            )
