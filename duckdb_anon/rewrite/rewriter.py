"""From a bound query over the original to the query that estimates its answer from the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.rewrite.parse import grounded
from duckdb_anon.rewrite.schema import TableInfo
from duckdb_anon.rewrite.select import reads_original, rewrite_select
from duckdb_anon.rewrite.shape import model_of


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
        with_bounds: add low and high of each measure of the outermost SELECT that has them.

    Raises:
        RewriteError: naming what cannot be estimated.
    """
    original = tables[0]
    model = model_of(release, original)
    tree = tree.copy()
    bounded: tuple[int, ...] = ()
    readers = [select for select in tree.find_all(exp.Select, bfs=False) if reads_original(select)]
    # a condition that compares with an estimate moves with it, so its bounds would not be hard
    hard = with_bounds and len(readers) == 1
    for select in reversed(readers):
        found = rewrite_select(select, model, original, hard and select is tree)
        bounded = found if select is tree else bounded
    return Estimate(grounded(tree, [release, *tables[1:]]), bounded)
