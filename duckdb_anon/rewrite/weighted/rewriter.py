"""From a bound query over the original to the query that estimates its answer from the release."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from duckdb_anon.model.learnt import Spread
from duckdb_anon.rewrite.query.enum_order import keep_order
from duckdb_anon.rewrite.query.nested import collapsed
from duckdb_anon.rewrite.query.parse import reads_original
from duckdb_anon.rewrite.query.spelling import spell
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo
from duckdb_anon.rewrite.query.template import copied
from duckdb_anon.rewrite.query.under_where import tried
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.query.whole_counts import WholeNumbers, unrounded
from duckdb_anon.rewrite.rewriter import Estimate
from duckdb_anon.rewrite.weighted.aggregates import NotLinearError
from duckdb_anon.rewrite.weighted.compile_query import Compiled, compile_tree
from duckdb_anon.rewrite.weighted.plausible import over_draws
from duckdb_anon.rewrite.weighted.release_model import release_model


def estimator(
    tree: exp.Query,
    release: TableInfo,
    tables: Sequence[TableInfo],
    bounds: Bounds = "none",
    spread: Spread = "uniform",
) -> Estimate:
    """Rewrite a bound query.

    Args:
        tree: the query, as `parse.bound` returns it.
        release: the release of the original.
        tables: the original first, then other tables of the query.
        bounds: which low and high to add to each measure of the outermost SELECT that has them.
        spread: how the rows of a generalized cell are spread over its values.

    Raises:
        RewriteError: naming what cannot be estimated.
    """
    original = tables[0]
    model = release_model(release, original, spread == "learnt")
    tree = collapsed(copied(tree))
    whole = WholeNumbers(original)
    whole.round_read(tree)
    keep_order(tree, original)
    for select in [one for one in all_of(tree, exp.Select) if reads_original(one)]:
        whole.round_read(select, equality=True)
    before = tree.copy() if release.drawn else None
    try:
        _refuse_groups_below(tree)
        compiled = compile_tree(tree, release, tables, model, bounds)
    except NotLinearError:
        if before is None or release.drawn is None:
            raise
        compiled = Compiled(over_draws(before, release.drawn, tables), {})
    unrounded(compiled.tree)
    tried(compiled.tree)
    spell(compiled.tree, [column for table in (release, *tables) for column, _ in table.columns])
    return Estimate(compiled.tree, compiled.bounded, (), "")


def _refuse_groups_below(tree: exp.Query) -> None:
    """Aggregates of groups of the original depend on which groups exist, which estimates do not say."""
    for outer in all_of(tree, exp.Select):
        if reads_original(outer) or not any(all_of(outer, exp.AggFunc)):
            continue
        for inner in all_of(outer, exp.Select):
            if inner is not outer and reads_original(inner) and inner.args.get("group"):
                raise NotLinearError("the query aggregates groups of the original")
