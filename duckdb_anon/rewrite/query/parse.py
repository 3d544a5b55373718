"""Reading a query: one SELECT, DuckDB's dialect, every column bound to its table.

`bound` turns the analyst's text into a tree in which names are qualified, stars, ordinals, aliases and
GROUP BY ALL are spelled out, and subqueries that neither group nor limit are merged into their users.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import MappingSchema

from duckdb_anon.model.errors import RewriteError, listed, nearest
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.collation import refuse_letters
from duckdb_anon.rewrite.query.group_by import spell_out_all, spell_out_constants, spell_out_order, spell_out_positions
from duckdb_anon.rewrite.query.merging_in import merged
from duckdb_anon.rewrite.query.pivot import conditional_aggregates
from duckdb_anon.rewrite.query.plain_from import (
    joins_after_from,
    require_plain_from,
    spell_out_values,
    spell_out_windows,
    with_own_names,
    without_parentheses,
)
from duckdb_anon.rewrite.query.refusals import has_aggregate, refuse, refuse_lists
from duckdb_anon.rewrite.query.result_names import ResultNames
from duckdb_anon.rewrite.query.scoping import step_of
from duckdb_anon.rewrite.query.tables import TableInfo, same_table
from duckdb_anon.rewrite.query.template import OWN, copied, mapped
from duckdb_anon.rewrite.query.unresolved import explain, rows_counted, unknown_names
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.query.without_parentheses import as_calls


@lru_cache(maxsize=32)
def parse(query: str) -> exp.Query:
    """Parse one query; the tree is the same for the same text, so it is read and copied, never changed.

    Raises:
        RewriteError: when the text is not exactly one SELECT.
    """
    try:
        with _without_warnings():
            trees = [tree for tree in sqlglot.parse(query, read="duckdb") if tree is not None]
    except SqlglotError as error:
        place = str(error).split("\n", 1)[0]
        raise RewriteError(f"the query could not be parsed: {place}") from error
    found = conditional_aggregates(trees[0]) if len(trees) == 1 else None
    if isinstance(found, exp.Pivot):
        refuse(found)
    if not isinstance(found, exp.Query):
        kinds = listed(type(tree).__name__.upper() for tree in trees)
        raise RewriteError(f"the query must be one SELECT, found {len(trees)} statement(s): {kinds}")
    refuse(found)
    refuse_lists(query)
    joins_after_from(found)
    without_parentheses(found)
    spell_out_values(found)
    for select in all_of(found, exp.Select):
        spell_out_windows(select)
    return found


@contextmanager
def _without_warnings() -> Iterator[None]:
    """What is no query is refused here, so what sqlglot would print of it is not."""
    logger = logging.getLogger("sqlglot")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def to_sql(tree: exp.Expr, pretty: bool = True) -> str:
    """Print a tree as DuckDB SQL, without the analyst's comments."""
    return tree.sql("duckdb", pretty=pretty, normalize_functions="lower", comments=False)


def plain(tree: exp.Expr) -> str:
    """Print an expression for a message: names as short as the analyst wrote them."""

    def short(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Table) and node.name.startswith(OWN):
            return exp.Table(this=exp.to_identifier(node.alias))
        return exp.column(node.name) if isinstance(node, exp.Column) else None

    return to_sql(mapped(tree, short), pretty=False)


def tables_of(query: str) -> list[str]:
    """List the tables a query reads, as SQL text, CTEs left out, so that a planner can describe them."""
    names = []
    for table in all_of(parse(query), exp.Table):
        if not isinstance(table.this, exp.Identifier) or step_of(table) is not None:
            continue
        if not (table.args.get("db") or table.args.get("catalog")):
            names.append(quoted(table.name) if table.this.quoted else table.name)
            continue
        bare = copied(table)
        for key in ("alias", "joins", "pivots", "sample"):
            bare.set(key, None)
        names.append(to_sql(bare, pretty=False))
    return list(dict.fromkeys(names))


def require_table(tree: exp.Query, info: TableInfo) -> None:
    """Raise unless the query reads the original."""
    read = [table for table in all_of(tree, exp.Table) if step_of(table) is None]
    if not any(same_table(table, info) for table in read):
        tables = [table.name for table in read]
        near = next((found for found in (nearest(name, [info.name]) for name in tables) if found), "")
        raise RewriteError(
            f"the query does not read the original {info.name}; it reads {listed(tables) or 'no table'}{near}"
        )


def bound(tree: exp.Query, tables: Sequence[TableInfo]) -> exp.Query:
    """Qualify all columns and merge subqueries that only select and filter.

    Args:
        tree: a parsed query.
        tables: the original first, then the other tables whose columns are known.

    Raises:
        RewriteError: for a column that is in none of the tables.
    """
    written, tree = tree, copied(tree)
    as_calls(tree, tables)
    rows_counted(tree, tables)
    names = ResultNames("", tree, tables)
    for select in all_of(tree, exp.Select):
        spell_out_positions(select, names)
    named = _name_tables(tree, tables)
    _spell_out_cte_uses(tree)
    for select in all_of(tree, exp.Select):
        _call_values(select)
    for order in [one for one in all_of(tree, exp.Order) if isinstance(one.parent, _IN_ANY_ORDER)]:
        order.replace(order.this)
    for one in all_of(tree, exp.Identifier):
        one.set("this", fold(one.this))
    try:
        tree = qualify(
            tree,
            schema=MappingSchema(
                {name: {fold(c): "VARCHAR" for c, _ in info.columns} for name, info in named.items()},
                dialect="duckdb",
                normalize=False,  # names are folded already, and each would be parsed
            ),
            dialect=_FOLDED,
            identify=True,
        )
        if unknown_names(tree):
            raise RewriteError(explain(written, tables) or f"there is no column {listed(unknown_names(tree))}")
        refuse_letters(tree, tables[0].collated)
        for select in all_of(tree, exp.Select):
            spell_out_constants(select)
            spell_out_all(select)
            spell_out_order(select)
        tree = merged(tree)
        tell_apart(tree, {fold(name) for name, _ in tables[0].columns})
        require_plain_from(tree, f"{_SOURCE}0", tables[0].types)
    except SqlglotError as error:
        known = listed(column for info in named.values() for column, _ in info.columns)
        found = explain(written, tables) or f"the query could not be bound: {error}; the columns are {known}"
        raise RewriteError(found) from error
    return tree


def grounded(tree: exp.Query, tables: Sequence[TableInfo]) -> exp.Query:
    """Put the tables' own SQL back where `bound` wrote plain names, in place."""
    for table in all_of(tree, exp.Table):
        number = _number(table, len(tables))
        if number is not None:
            replace_table(table, tables[number])
    return tree


def replace_table(table: exp.Table, info: TableInfo) -> None:
    """Let a table of a tree read `info` under the alias it has; the text that follows FROM stays as it is."""
    table.set("this", exp.Var(this=info.sql))


def literal(text: str) -> str:
    """Quote a text."""
    return "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """Quote a column or table name."""
    return '"' + name.replace('"', '""') + '"'


def is_original(table: object) -> bool:
    """Tell whether a table of a bound tree is the original."""
    return isinstance(table, exp.Table) and table.name == f"{_SOURCE}0"


def from_items(select: exp.Select) -> list[exp.Expr]:
    """What stands in FROM: the first item, then the joined ones."""
    source = select.args.get("from_")
    return ([source.this] if source else []) + [join.this for join in select.args.get("joins") or []]


def reads_original(select: exp.Select) -> bool:
    """Whether the original stands in the FROM clause of a bound SELECT itself."""
    return any(is_original(item) for item in from_items(select))


def _number(table: exp.Table, count: int) -> int | None:
    found = table.name.removeprefix(_SOURCE)
    return int(found) if found.isdigit() and found != table.name and int(found) < count else None


_FOLDED = DuckDB(normalization_strategy="case_sensitive")
"""DuckDB's SQL whose names are folded: the library would fold letters that DuckDB tells apart."""
_IN_ANY_ORDER = (
    *(exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.LogicalAnd, exp.LogicalOr),
    *(exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop),
)
"""Aggregates for which ORDER BY among their arguments means nothing."""
_SOURCE = f"{OWN}source_"
"""Begins the names known tables have while a query is rewritten."""


def _name_tables(tree: exp.Query, tables: Iterable[TableInfo]) -> dict[str, TableInfo]:
    """Give every known table of the query a plain one-part name, so that one flat schema serves them all."""
    named: dict[str, TableInfo] = {}
    read = [table for table in all_of(tree, exp.Table) if step_of(table) is None]
    for number, info in enumerate(tables):
        for table in read:
            if same_table(table, info) and not table.meta.get("known"):
                plain = f"{_SOURCE}{number}"
                named[plain] = info
                if not table.alias:
                    table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
                for key in ("db", "catalog"):
                    table.set(key, None)
                table.set("this", exp.to_identifier(plain, quoted=True))
                table.meta["known"] = True
                with_own_names(table, info)
    for column in all_of(tree, exp.Column):  # "main"."people"."region": the table's alias tells enough
        for key in ("db", "catalog"):
            column.set(key, None)
    return named


def _spell_out_cte_uses(tree: exp.Query) -> None:
    """Replace each CTE that only selects and filters by subqueries, so that all of its uses can be merged."""
    with_ = tree.args.get("with_") or tree.args.get("with")
    if not with_ or with_.args.get("recursive"):
        return
    for cte in list(with_.expressions):
        body = cte.this
        if not isinstance(body, exp.Select) or _aggregates(body) or cte.args["alias"].columns:
            continue
        name = cte.alias_or_name
        for table in [one for one in all_of(tree, exp.Table) if step_of(one) is cte]:
            inner = exp.Subquery(
                this=copied(body), alias=exp.TableAlias(this=exp.to_identifier(table.alias or name, quoted=True))
            )
            inner.set("joins", table.args.get("joins"))
            table.replace(inner)
        cte.pop()
    if not with_.expressions:
        with_.pop()


def tell_apart(tree: exp.Query, columns: Collection[str] = ()) -> None:
    """Give every use of the original an alias of its own, so that a column says which SELECT it belongs to.

    Args:
        tree: a query whose columns are qualified.
        columns: names that are no alias afterwards: inside an aggregate DuckDB takes d.x for a field of a column d.
    """
    seen: set[str] = set()
    for scope in traverse_scope(tree):
        for alias, (node, source) in list(scope.selected_sources.items()):
            original = is_original(source)
            if not original and alias not in columns:
                continue
            fresh = alias
            while fresh in seen or fresh in columns:
                fresh += "_"
            seen.add(fresh)
            if fresh != alias:
                for column in scope.columns:
                    if column.table == alias:
                        column.set("table", exp.to_identifier(fresh, quoted=True))
                item: exp.Expr | None = node
                while item is not None and item.alias_or_name != alias:  # of a subquery, its SELECT is listed
                    item = item.parent
                assert item is not None  # noqa: S101 -- an alias is somebody's
                named = item.args.get("alias") or exp.TableAlias()
                named.set("this", exp.to_identifier(fresh, quoted=True))
                item.set("alias", named)


def _aggregates(select: exp.Select) -> bool:
    if any(select.args.get(key) for key in ("group", "distinct", "limit", "offset", "qualify")):
        return True
    return any(e.find(exp.Window) or has_aggregate(e) for e in select.expressions)


def _call_values(select: exp.Select) -> None:
    """Give a subquery that is a column a name: sqlglot cannot tell which one ORDER BY means by its position else."""
    for place, one in enumerate(select.expressions):
        if isinstance(one, exp.Subquery):
            name = exp.to_identifier(one.alias or f"_col_{place}", quoted=True)
            bare = copied(one)
            bare.set("alias", None)
            one.replace(exp.Alias(this=bare, alias=name))
