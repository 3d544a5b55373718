"""Functions that a query calls and DuckDB does not bring along: macros, functions of extensions and of the caller's.

An unknown function would be taken for one of a row's values. A macro may as well be `count(*)`, which counts released
rows as they are, unweighted, or a subquery, or random; a macro that only computes is answered as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.parse import parse
from duckdb_anon.rewrite.query.refusals import is_aggregate, is_changing
from duckdb_anon.rewrite.query.walking import all_of


@dataclass(frozen=True)
class Called:
    """One function of the caller's database.

    Attributes:
        kind: 'scalar', 'aggregate' or 'macro'.
        changing: whether it gives something else at every call.
        macro: what a macro stands for, as SQL.
    """

    kind: str
    changing: bool = False
    macro: str = ""


Find = Callable[[Sequence[str]], dict[str, list[Called]]]
"""The functions there are of these names that are not DuckDB's own; None of a name that is DuckDB's."""


def require_understood(query: str, find: Find) -> None:
    """Raise for a function of the caller's that is more than a computation with a row's values.

    Args:
        query: the query's text.
        find: looks functions up; a name that is DuckDB's own is left out of what it gives.

    Raises:
        RewriteError: naming the function and what to write instead.

    >>> known = {"twice": [Called("macro", macro="2 * x")]}
    >>> require_understood("select sum(twice(n)) from t", lambda names: {one: known[one] for one in names})
    """
    _require(_called(parse(query)), find, set())


def _require(names: Sequence[str], find: Find, seen: set[str]) -> None:
    for name, found in find([one for one in names if one not in seen]).items():
        if not found:
            raise RewriteError(f"there is no function {name} among those that DuckDB brings and those committed here")
        for one in found:
            if one.kind == "aggregate":
                raise RewriteError(
                    f"{name} is an aggregate of an extension, which cannot be estimated from the release"
                )
            if one.changing:
                raise RewriteError(f"{name} gives something else at every call, so it cannot be answered; leave it out")
            if one.kind == "macro":
                body = _body(name, one)
                seen.add(name)
                _require(_called(body), find, seen)


def _called(tree: exp.Expr) -> list[str]:
    """Names of the functions of a tree that sqlglot has no class for; those of FROM are tables of their own."""
    calls = (node for node in all_of(tree, exp.Anonymous) if not isinstance(node.parent, exp.Table))
    names = dict.fromkeys(fold(node.name) for node in calls)
    return [name for name in names if name != "all"]  # x > all(list)


def _body(name: str, macro: Called) -> exp.Expr:
    """A macro as a tree, which computes with its arguments."""
    told = f"{name} is a macro of {macro.macro}; write that in its place"
    try:
        body = sqlglot.parse_one(macro.macro, read="duckdb")
    except SqlglotError as error:
        raise RewriteError(told) from error
    if any(
        isinstance(node, (exp.Query, exp.Window)) or is_aggregate(node) or is_changing(node) for node in body.walk()
    ):
        raise RewriteError(told)
    return body
