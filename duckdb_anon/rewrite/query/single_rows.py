"""What shows single rows: DISTINCT ON, UNNEST of a row, and aggregates such as any_value, first, arg_max and list.

Where all columns of a query are as they were, the query runs on the release as it is written. These would then show
values of single released rows as if they were the original's: fakes of MuCo, swapped values, rows whose other columns
were permuted. They run on plausible tables instead.
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.parse import plain
from duckdb_anon.rewrite.query.walking import all_of

ROWS_OWN = frozenset(
    "any_value arbitrary arg_max arg_max_null arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax "
    "argmin array_agg combine_aggr first group_concat json_group_array json_group_object json_group_structure last "
    "list listagg lttb max_by min_by reservoir_quantile string_agg variant_group_array variant_group_object".split()
)
"""Aggregates that show what single rows hold."""


_SEVERAL = (exp.Unnest, exp.Explode)
_SEVERAL_NAMED = frozenset(("generate_subscripts", "regexp_split_to_table"))
"""Macros of DuckDB that unnest."""


def shows_rows(node: exp.Expr) -> bool:
    """Whether a node is an aggregate that shows what single rows hold."""
    if isinstance(node, exp.Anonymous):
        return fold(node.name) in ROWS_OWN
    if isinstance(node, (exp.AnyValue, exp.First, exp.Last, exp.ArrayAgg, exp.GroupConcat, exp.ArgMax, exp.ArgMin)):
        return True
    return isinstance(node, exp.AggFunc) and bool({fold(one) for one in node.sql_names()} & ROWS_OWN)


def _unnests(node: exp.Expr) -> bool:
    return isinstance(node, _SEVERAL) or fold(node.name) in _SEVERAL_NAMED


def single_row_reason(select: exp.Select) -> str:
    """Why a SELECT shows single rows of the original, which no row of a release is known to be; '' where it does not.

    Args:
        select: a bound SELECT that reads the original.
    """
    distinct = select.args.get("distinct")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None and not select.args.get("group"):
        return "DISTINCT ON picks single rows"
    several = (one for e in select.expressions for one in all_of(e, *_SEVERAL, exp.Anonymous))
    if any(one.find_ancestor(exp.Select) is select for one in several if _unnests(one)):
        return "UNNEST of what a row holds makes several rows of each one"
    shown = next(filter(shows_rows, all_of(select, exp.Expr)), None)
    return "" if shown is None else f"{plain(shown)} shows what single rows hold"
