"""The passes that read a query, in order; each is one function of a tree and the query's tables.

A pass changes the tree in place, or returns another one. The tests have a file for each with SQL before and after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from duckdb_anon.model.errors import RewriteError, listed
from duckdb_anon.rewrite.query import binding, normalize, pivots, prepare, refusals
from duckdb_anon.rewrite.query.tables import Tables

Pass = Callable[[Any, Tables], exp.Expr | None]
OF_TEXT: tuple[Pass, ...] = (
    pivots.spell_out_pivots,
    pivots.spell_out_unpivots,
    refusals.refuse,
    normalize.synonyms,
    normalize.joins_after_from,
    normalize.without_parentheses,
    normalize.spell_out_values,
    normalize.spell_out_windows,
)
"""What needs no tables, and is done once for a text."""
OF_NAMES: tuple[Pass, ...] = (
    normalize.as_calls,
    binding.count_rows,
    normalize.spell_out_positions,
    binding.name_tables,
    binding.spell_out_steps,
    binding.name_values,
    binding.drop_order_of_arguments,
    binding.fold_names,
    binding.qualify_columns,
    binding.require_names,
    refusals.refuse_collated,
    normalize.spell_out_constants,
    normalize.spell_out_all,
    normalize.keys_by_position,
    normalize.spell_out_order,
    normalize.merged,
    normalize.single_rows,
    pivots.as_texts,
    binding.distinct_aliases,
    normalize.require_plain_from,
)
"""What binds every column to its table, and leaves one form of what may be written in several."""
OF_ESTIMATES: tuple[Pass, ...] = (prepare.try_casts, prepare.round_read)
"""What is done to a bound query before the closed form of its estimate is written; plausible tables need the first."""
PASSES = (*OF_TEXT, *OF_NAMES, *OF_ESTIMATES)


def run(query: exp.Expr, passes: tuple[Pass, ...], tables: Tables = ()) -> exp.Query:
    """Run passes one after the other; the tree that is handed in is changed.

    Raises:
        RewriteError: the query cannot be read.
    """
    try:
        for one in passes:
            made = one(query, tables)
            if made is not None and made is not query:
                made.meta.update(query.meta)  # what earlier passes say of the query
                query = made
    except SqlglotError as error:
        columns = listed(column for info in tables for column, _ in info.columns)
        raise RewriteError(f"the query could not be bound: {error}; the columns are {columns}") from error
    assert isinstance(query, exp.Query)  # noqa: S101 -- `refuse` lets nothing else pass
    return query
