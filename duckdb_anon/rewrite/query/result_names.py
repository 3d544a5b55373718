"""What the columns of a query's result are called, letter by letter as DuckDB calls them.

    SELECT SEX, count(*), * FROM people      "Sex" as the table spells it, count_star(), then the table's columns

A column has its table's spelling whatever the query's; an alias has its own; an expression without one has DuckDB's
spelling of it, which a `Namer` tells from the text the analyst wrote. `titled` gives expressions inside FROM these
names as aliases, so that `*` and "count_star()" find them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.scoping import step_of
from duckdb_anon.rewrite.query.tables import TableInfo, same_table
from duckdb_anon.rewrite.query.template import copied
from duckdb_anon.rewrite.query.walking import all_of, leftmost

Namer = Callable[[str], str | None]
"""Gives the name of a column that is an expression, from its text; None where it cannot read it."""

_OPENS = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSES = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_ENDS = (
    *(TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.WINDOW, TokenType.ORDER_BY),
    *(TokenType.LIMIT, TokenType.OFFSET, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.SEMICOLON),
    *(TokenType.INTO, TokenType.TABLE_SAMPLE),
)


class ResultNames:
    """Names of the columns of one query's result, and of those inside it."""

    def __init__(self, query: str, tree: exp.Query, tables: Sequence[TableInfo], namer: Namer | None = None) -> None:
        """Ask for the names of a query's columns.

        Args:
            query: its text.
            tree: the text, parsed.
            tables: tables whose columns are known.
            namer: tells the names of expressions.
        """
        self.text, self.tree, self.tables, self.namer = query, tree, tables, namer
        self._reading: set[int] = set()

    def _of_expressions(self, select: exp.Select) -> dict[int, str]:
        """Names of the computed columns of a SELECT that have no alias, by their place."""
        asked = {place: one for place, one in enumerate(select.expressions) if _is_unnamed(one)}
        if self.namer is not None and asked and (texts := _only_projections(self.text, len(select.expressions))):
            found = {place: self.namer(texts[place]) for place in asked}
            if all(name is not None for name in found.values()):
                return {place: name or "" for place, name in found.items()}
        printed = {place: one.sql("duckdb", normalize_functions="lower") for place, one in asked.items()}
        if self.namer is None or not asked:
            return printed
        names = {place: self.namer(text) or text for place, text in printed.items()}
        for texts in written_projections(self.text):
            if len(texts) != len(select.expressions):
                continue
            found = {place: self.namer(texts[place]) for place in asked}
            if all(found[place] == names[place] or _parsed(texts[place]) == one for place, one in asked.items()):
                return {place: name or names[place] for place, name in found.items()}
        return names

    def titled(self) -> exp.Query:
        """The tree with an alias on each expression without one of a SELECT that stands in FROM or WITH.

        Its nodes are the parsed tree's where nothing is to be named.
        """
        if self.namer is None or not any(True for _ in _unnamed(self.tree)):
            return self.tree
        tree = copied(self.tree)
        for select in _unnamed(tree):
            taken = {fold(one.alias_or_name) for one in select.expressions if one.alias_or_name}
            for place, first in self._of_expressions(select).items():
                name, number = first, 0
                while fold(name) in taken:
                    name = f"{first}_{(number := number + 1)}"
                taken.add(fold(name))
                one = select.expressions[place]
                one.replace(exp.alias_(copied(one), name, quoted=True))
        return tree

    def of(self, columns: Sequence[str]) -> list[str]:
        """Names of the result's columns.

        Args:
            columns: the same columns' names in lower case, stars spelled out.
        """
        select = leftmost(self.tree)
        known, computed = self._known(select), self._of_expressions(select)
        given = select.expressions
        stars = [place for place, one in enumerate(given) if one.is_star]
        before = stars[0] if stars else len(given)
        after = len(given) - 1 - stars[-1] if stars else 0
        inner = columns[before : len(columns) - after] if stars else []
        replaced = {fold(one.alias): one.alias for star in stars for one in all_of(given[star], exp.Alias)}
        names = [computed.get(place) or _of_column(one, known) for place, one in enumerate(given)]
        middle = [replaced.get(name) or known.get(("", name)) or name for name in inner]
        return names[:before] + middle + names[len(given) - after :]

    def _known(self, select: exp.Select) -> dict[tuple[str, str], str]:
        """(alias of an item of FROM, or none, and a column in lower case) -> the column's own spelling."""
        found: dict[tuple[str, str], str] = {}
        for item in items_of(select):
            for name in self.columns(item):
                found.setdefault(("", fold(name)), name)
                found.setdefault((fold(item.alias_or_name), fold(name)), name)
        return found

    def columns(self, item: exp.Expr) -> list[str]:
        """Names of the columns of an item of FROM; none where they are not known."""
        alias = item.args.get("alias")
        given = [one.name for one in alias.columns] if isinstance(alias, exp.TableAlias) else []
        query: exp.Expr | None = item.this if isinstance(item, exp.Subquery) else None
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            step = step_of(item)
            if step is None:
                tables = (info for info in self.tables if same_table(item, info))
                return given or [column for info in list(tables)[:1] for column, _ in info.columns]
            query = step.this
            given = given or [one.name for one in step.args["alias"].columns]
        if given or not isinstance(query, exp.Query) or id(query) in self._reading:
            return given
        self._reading.add(id(query))  # a RECURSIVE step may read itself
        try:
            select = leftmost(query)
            known, computed = self._known(select), self._of_expressions(select)
            named = (
                [*known.values()] if one.is_star else [computed.get(place) or _of_column(one, known)]
                for place, one in enumerate(select.expressions)
            )
            return list(dict.fromkeys(name for names in named for name in names))
        finally:
            self._reading.discard(id(query))


def items_of(select: exp.Select) -> list[exp.Expr]:
    """What stands in FROM, joined items and those in parentheses with them."""
    source = select.args.get("from_")
    items = ([source.this] if source else []) + [join.this for join in select.args.get("joins") or []]
    return [one for item in items for one in (item, *(join.this for join in item.args.get("joins") or []))]


@lru_cache(maxsize=32)
def written_projections(query: str) -> tuple[tuple[str, ...], ...]:
    """The texts between the commas of every SELECT of a query.

    >>> written_projections("SELECT a, (SELECT max( b ) FROM t) AS m FROM t UNION SELECT DISTINCT c is distinct from 2")
    (('a', '(SELECT max( b ) FROM t) AS m'), ('max( b )',), ('c is distinct from 2',))
    """
    tokens = sqlglot.tokenize(query, read="duckdb")
    starts = [place + 1 for place, token in enumerate(tokens) if token.token_type == TokenType.SELECT]
    return tuple(
        tuple(query[tokens[first].start : tokens[last].end + 1] for first, last in _projections(tokens, start))
        for start in starts
    )


def _only_projections(query: str, many: int) -> tuple[str, ...]:
    """The texts of the projections of a query that has one SELECT, with so many; empty where there are others."""
    written = written_projections(query)
    return written[0] if len(written) == 1 and len(written[0]) == many else ()


def _projections(tokens: Sequence[Token], start: int) -> Iterator[tuple[int, int]]:
    """Numbers of the first and the last token of each projection of the SELECT that begins before `start`."""
    kinds = [token.token_type for token in tokens] + [TokenType.SEMICOLON]
    start = _after_distinct(kinds, start)
    depth, first = 0, start
    for place in range(start, len(kinds)):
        kind, before = kinds[place], kinds[place - 1]
        depth += (kind in _OPENS) - (kind in _CLOSES)
        is_from = kind == TokenType.FROM and before != TokenType.DISTINCT
        end = depth < 0 or (depth == 0 and (kind in _ENDS or is_from))
        if end or (depth == 0 and kind == TokenType.COMMA):
            if place > first:
                yield first, place - 1
            first = place + 1
        if end:
            return


def _after_distinct(kinds: Sequence[TokenType], start: int) -> int:
    """Number of the token after ALL, DISTINCT, or DISTINCT ON (...)."""
    if kinds[start] == TokenType.ALL:
        return start + 1
    if kinds[start] != TokenType.DISTINCT:
        return start
    if kinds[start + 1] != TokenType.ON:
        return start + 1
    depth = 0
    for place in range(start + 2, len(kinds)):
        depth += (kinds[place] in _OPENS) - (kinds[place] in _CLOSES)
        if depth <= 0:
            return place + 1
    return start


@lru_cache(maxsize=256)
def _parsed(projection: str) -> exp.Expr | None:
    try:
        select = sqlglot.parse_one(f"SELECT {projection}", read="duckdb")
    except SqlglotError:
        return None
    return select.expressions[0] if isinstance(select, exp.Select) and len(select.expressions) == 1 else None


def _of_column(projection: exp.Expr, known: Mapping[tuple[str, str], str]) -> str:
    """The name of what has an alias or is a column."""
    column = projection.unnest()
    if projection.alias or not isinstance(column, exp.Column):
        return projection.alias or column.name
    return known.get((fold(column.table), fold(column.name)), column.name)


def _is_unnamed(projection: exp.Expr) -> bool:
    return not (projection.is_star or projection.alias or isinstance(projection.unnest(), exp.Column))


def _unnamed(tree: exp.Query) -> Iterator[exp.Select]:
    """SELECTs in FROM and WITH that have an expression without a name."""
    for select in all_of(tree, exp.Select):
        top: exp.Expr = select
        while isinstance(top.parent, exp.SetOperation) and top.parent.this is top:
            top = top.parent
        around = top.parent
        inside = isinstance(around, exp.CTE) or (
            isinstance(around, exp.Subquery) and isinstance(around.parent, (exp.From, exp.Join, exp.Subquery))
        )
        if inside and any(_is_unnamed(one) for one in select.expressions):
            yield select
