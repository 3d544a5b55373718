"""Texts that a column's collation takes for equal: a release keeps one of their spellings.

Comparisons, IN, BETWEEN, LIKE, GROUP BY and SELECT DISTINCT go by the column's own equality and are answered. GROUP BY
ALL (which DuckDB groups by letters), COUNT(DISTINCT) (by letters in DuckDB 1.5) and functions that read letters would
tell spellings apart that the release no longer has, so they are refused.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.walking import all_of

_COMPARES = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Like, exp.ILike,
)  # fmt: skip
_KEEPS = (
    exp.Paren, exp.Alias, exp.Ordered, exp.Count, exp.Max, exp.Min, exp.AnyValue, exp.Case, exp.If,
    exp.Coalesce, exp.Nullif, exp.Lower, exp.Upper, exp.Tuple, exp.Filter,
)  # fmt: skip
_CLAUSES = (exp.Query, exp.Group, exp.Order, exp.Where, exp.Having, exp.Join, exp.GroupingSets, exp.Cube, exp.Rollup)


def refuse_letters(tree: exp.Query, collated: Collection[str]) -> None:
    """Raise where a query tells spellings of one value apart.

    Args:
        tree: a query whose columns are qualified, GROUP BY ALL still in it.
        collated: columns of the original whose collation takes different texts for equal, in lower case.

    Raises:
        RewriteError: naming the column and what to write instead.
    """
    names = _with_aliases(tree, collated)
    for column in all_of(tree, exp.Column):
        if fold(column.name) not in names:
            continue
        if any(group.args.get("all") for group in all_of(tree, exp.Group)):
            raise RewriteError(
                f"GROUP BY ALL groups '{column.name}' by its letters, but its collation takes some texts for equal, "
                "and the release keeps one of them; write GROUP BY and the keys"
            )
        reader = _reader(column)
        if reader is not None:
            raise RewriteError(
                f"{reader.sql('duckdb', normalize_functions='lower')} reads the letters of '{column.name}', whose "
                "collation takes some texts for equal, and the release keeps one of them; compare the column itself "
                "with =, IN or LIKE"
            )


def _with_aliases(tree: exp.Query, collated: Collection[str]) -> set[str]:
    """Names of the columns, and of whatever a SELECT calls an expression with one of them in it."""
    names, before = {fold(name) for name in collated}, 0
    while names and len(names) > before:
        before = len(names)
        for alias in all_of(tree, exp.Alias):
            if any(fold(column.name) in names for column in all_of(alias.this, exp.Column)):
                names.add(fold(alias.alias))
    return names


def _reader(column: exp.Column) -> exp.Expr | None:
    """The function that reads a column's letters; None where only its equality and order are asked."""
    node = column.parent
    while node is not None and not isinstance(node, (*_COMPARES, *_CLAUSES, exp.Connector, exp.Not)):
        if not isinstance(node, _KEEPS):
            return node.parent if isinstance(node, exp.Distinct) and node.parent else node
        node = node.parent
    return None
