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
from duckdb_anon.rewrite.query import normalize
from duckdb_anon.rewrite.query.pivot import conditional_aggregates
from duckdb_anon.rewrite.query.refusals import refuse, refuse_collated, refuse_lists
from duckdb_anon.rewrite.query.tables import TableInfo, columns_of_item, same_table
from duckdb_anon.rewrite.query.trees import (
    SOURCE,
    all_of,
    from_items,
    has_aggregate,
    is_original,
    quoted,
    step_of,
)


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
    normalize.joins_after_from(found)
    normalize.without_parentheses(found)
    normalize.spell_out_values(found)
    for select in all_of(found, exp.Select):
        normalize.spell_out_windows(select)
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


def tables_of(query: str) -> list[str]:
    """List the tables a query reads, as SQL text, CTEs left out, so that a planner can describe them."""
    names = []
    for table in all_of(parse(query), exp.Table):
        if not isinstance(table.this, exp.Identifier) or step_of(table) is not None:
            continue
        if not (table.args.get("db") or table.args.get("catalog")):
            names.append(quoted(table.name) if table.this.quoted else table.name)
            continue
        bare = table.copy()
        for key in ("alias", "joins", "pivots", "sample"):
            bare.set(key, None)
        names.append(bare.sql("duckdb"))
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


def bound(written: exp.Query, tables: Sequence[TableInfo]) -> exp.Query:
    """Qualify all columns and merge subqueries that only select and filter.

    Args:
        written: a parsed query.
        tables: the original first, then the other tables whose columns are known.

    Raises:
        RewriteError: for a column that is in none of the tables.
    """
    tree = written.copy()
    normalize.as_calls(tree, tables)
    _count_rows(tree, tables)
    for select in all_of(tree, exp.Select):
        normalize.spell_out_positions(select, tables)
    named = _name_tables(tree, tables)
    _spell_out_cte_uses(tree)
    for select in all_of(tree, exp.Select):
        _call_values(select)
    for order in [one for one in all_of(tree, exp.Order) if isinstance(one.parent, _IN_ANY_ORDER)]:
        order.replace(order.this)
    for one in all_of(tree, exp.Identifier):
        one.set("this", fold(one.this))
    schema = MappingSchema(
        {name: {fold(c): "VARCHAR" for c, _ in info.columns} for name, info in named.items()},
        dialect="duckdb",
        normalize=False,  # names are folded already, and each would be parsed
    )
    try:
        tree = qualify(tree, schema=schema, dialect=_FOLDED, identify=True)
        _require_names(tree)
        refuse_collated(tree, tables[0].collated)
        for select in all_of(tree, exp.Select):
            normalize.spell_out_constants(select)
            normalize.spell_out_all(select)
            normalize.spell_out_order(select)
        tree = normalize.merged(tree)
        distinct_aliases(tree, {fold(name) for name, _ in tables[0].columns})
        normalize.require_plain_from(tree, f"{SOURCE}0", tables[0].types)
    except SqlglotError as error:
        columns = listed(column for info in named.values() for column, _ in info.columns)
        raise RewriteError(f"the query could not be bound: {error}; the columns are {columns}") from error
    return tree


def _require_names(tree: exp.Query) -> None:
    """Raise for columns of HAVING and QUALIFY that stay without a table once a query is bound, and are no aliases."""
    for select in all_of(tree, exp.Select):
        aliases = {fold(one.alias_or_name) for one in select.expressions}
        for clause in (select.args[key] for key in ("having", "qualify") if select.args.get(key)):
            for column in all_of(clause, exp.Column):
                free = not column.table and column.find_ancestor(exp.Lambda) is None
                if free and column.find_ancestor(exp.Select) is select and fold(column.name) not in aliases:
                    raise RewriteError(f"there is no column '{column.name}'{nearest(column.name, aliases)}")


def _count_rows(tree: exp.Query, tables: Sequence[TableInfo]) -> None:
    """Write count(*) for count(t) with t a table of FROM, in place, and refuse its row anywhere else.

    DuckDB takes a row for a value that is never NULL, not even where a LEFT JOIN found none.
    """
    for select in all_of(tree, exp.Select):
        items = {fold(item.alias_or_name): item for item in from_items(select)}
        columns = [fold(name) for item in items.values() for name in columns_of_item(item, tables)]
        for star in [c for c in all_of(select, exp.Column) if isinstance(c.this, exp.Star) and c.parent is not select]:
            if isinstance(star.parent, exp.Count):  # a row in DuckDB 1.5, its columns in 2.0
                raise RewriteError(
                    f"count({star.table}.*) is not the same in every DuckDB; write count(*), or name a column"
                )
        for column in [c for c in all_of(select, exp.Column) if not c.table and fold(c.name) in items]:
            item = items[fold(column.name)]
            if column.find_ancestor(exp.Select) is not select or fold(column.name) in columns or not columns:
                continue
            if isinstance(column.parent, exp.Count):
                column.replace(exp.Star())
            elif column.find_ancestor(exp.Lambda) is None and isinstance(item, exp.Table):
                raise RewriteError(
                    f"{column.name} stands for complete rows, which the release does not show; name a column"
                )


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


def _number(table: exp.Table, count: int) -> int | None:
    found = table.name.removeprefix(SOURCE)
    return int(found) if found.isdigit() and found != table.name and int(found) < count else None


_FOLDED = DuckDB(normalization_strategy="case_sensitive")
"""DuckDB's SQL whose names are folded: the library would fold letters that DuckDB tells apart."""
_IN_ANY_ORDER = (
    *(exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.LogicalAnd, exp.LogicalOr),
    *(exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop),
)
"""Aggregates for which ORDER BY among their arguments means nothing."""


def _name_tables(tree: exp.Query, tables: Iterable[TableInfo]) -> dict[str, TableInfo]:
    """Give every known table of the query a plain one-part name: one flat schema serves them all."""
    named: dict[str, TableInfo] = {}
    read = [table for table in all_of(tree, exp.Table) if step_of(table) is None]
    for number, info in enumerate(tables):
        for table in read:
            if same_table(table, info) and not table.meta.get("known"):
                plain = f"{SOURCE}{number}"
                named[plain] = info
                if not table.alias:
                    table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
                for key in ("db", "catalog"):
                    table.set(key, None)
                table.set("this", exp.to_identifier(plain, quoted=True))
                table.meta["known"] = True
                normalize.with_own_names(table, info)
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
                this=body.copy(), alias=exp.TableAlias(this=exp.to_identifier(table.alias or name, quoted=True))
            )
            inner.set("joins", table.args.get("joins"))
            table.replace(inner)
        cte.pop()
    if not with_.expressions:
        with_.pop()


def distinct_aliases(tree: exp.Query, columns: Collection[str] = ()) -> None:
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
            bare = one.copy()
            bare.set("alias", None)
            one.replace(exp.Alias(this=bare, alias=name))
