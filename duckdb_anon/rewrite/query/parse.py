"""Reading a query: one SELECT, DuckDB's dialect, every column bound to its table.

`bound` turns the analyst's text into a tree in which names are qualified, stars, ordinals, aliases and
GROUP BY ALL are spelled out, and subqueries that neither group nor limit are merged into their users.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope, traverse_scope
from sqlglot.schema import MappingSchema

from duckdb_anon.model.errors import RewriteError, listed, nearest
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query import normalize, pivots
from duckdb_anon.rewrite.query.refusals import refuse, refuse_collated, refuse_lists
from duckdb_anon.rewrite.query.tables import TableInfo, columns_of_item, same_table
from duckdb_anon.rewrite.query.trees import (
    SOURCE,
    all_of,
    from_items,
    groups_of,
    has_aggregate,
    is_original,
    leftmost,
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
        position = str(error).split("\n", 1)[0]
        raise RewriteError(f"the query could not be parsed: {position}") from error
    found = pivots.spelled_out(trees[0]) if len(trees) == 1 else None
    unlisted = found is not None and any(not pivot.args.get("unpivot") for pivot in all_of(found, exp.Pivot))
    if found is not None and unlisted:
        found = pivots.without_open(found)
    if isinstance(found, exp.Pivot):
        refuse(found)
    if not isinstance(found, exp.Query):
        types = listed(type(tree).__name__.upper() for tree in trees)
        raise RewriteError(f"the query must be one SELECT, found {len(trees)} statement(s): {types}")
    refuse(found)
    refuse_lists(query)
    normalize.synonyms(found)
    normalize.joins_after_from(found)
    normalize.without_parentheses(found)
    normalize.spell_out_values(found)
    for select in all_of(found, exp.Select):
        normalize.spell_out_windows(select)
    found.meta[pivots.OPEN] = unlisted
    return found


def with_values(query: str, look_up: pivots.LookUp) -> str:
    """Text of a query with the values and keys of each PIVOT that does not name them."""
    if not parse(query).meta[pivots.OPEN]:
        return query
    made = pivots.spelled_out(sqlglot.parse_one(query, dialect="duckdb"), look_up)
    refuse(made)
    return made.sql("duckdb")


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
    """Qualify all columns and merge subqueries that only select and filter."""
    tree = written.copy()
    normalize.as_calls(tree, tables)
    _count_rows(tree, tables)
    for select in all_of(tree, exp.Select):
        normalize.spell_out_positions(select, tables)
    named = _name_tables(tree, tables)
    _spell_out_cte_uses(tree)
    for select in all_of(tree, exp.Select):
        _call_values(select)
    for order in [node for node in all_of(tree, exp.Order) if isinstance(node.parent, _IN_ANY_ORDER)]:
        order.replace(order.this)
    for identifier in all_of(tree, exp.Identifier):
        identifier.set("this", fold(identifier.this))
    schema = MappingSchema(
        {name: dict.fromkeys(_names_of(tree, info, named.values()), "VARCHAR") for name, info in named.items()},
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
            normalize.keys_by_position(select)
        for query in all_of(tree, exp.Select, exp.SetOperation):
            normalize.spell_out_order(query)
        tree = normalize.merged(tree)
        normalize.single_rows(tree)
        pivots.as_texts(tree, tables[0].types)
        distinct_aliases(tree, {fold(name) for name, _ in tables[0].columns})
        normalize.require_plain_from(tree, f"{SOURCE}0", tables[0].types)
    except SqlglotError as error:
        columns = listed(column for info in named.values() for column, _ in info.columns)
        raise RewriteError(f"the query could not be bound: {error}; the columns are {columns}") from error
    return tree


def _names_of(tree: exp.Query, info: TableInfo, tables: Collection[TableInfo]) -> list[str]:
    """Names of the columns of a table; of one that cannot be seen, as a temporary one, what its SELECTs read of it."""
    if info.columns:
        return [fold(name) for name, _ in info.columns]
    found: list[str] = []
    for select in all_of(tree, exp.Select):
        items = from_items(select)
        unseen = [item for item in items if item.meta.get("info") is info]
        if not unseen:
            continue
        others = [item.meta["info"] if "info" in item.meta else item for item in items if item not in unseen]
        known = {fold(name) for other in others for name in _columns_there(other, list(tables))}
        aliases = {fold(item.alias_or_name) for item in unseen}
        outputs = {fold(projection.alias) for projection in select.expressions if projection.alias}
        for column in all_of(select, exp.Column):
            clause = column.find_ancestor(exp.Order, exp.Group, exp.Having, exp.Qualify, exp.Select)
            named = known if isinstance(clause, exp.Select) else known | outputs
            own = not column.table and column.find_ancestor(exp.Select) is select and fold(column.name) not in named
            if own or fold(column.table) in aliases:
                found.append(fold(column.name))
    return found


def _columns_there(item: TableInfo | exp.Expr, tables: Sequence[TableInfo]) -> list[str]:
    return [name for name, _ in item.columns] if isinstance(item, TableInfo) else columns_of_item(item, tables)


def _require_names(tree: exp.Query) -> None:
    """Raise for columns of HAVING and QUALIFY that stay without a table once a query is bound, and are no aliases."""
    for select in all_of(tree, exp.Select):
        aliases = {fold(projection.alias_or_name) for projection in select.expressions}
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
                table.meta["info"] = info
                normalize.with_column_aliases(table, info)
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
        for table in [table for table in all_of(tree, exp.Table) if step_of(table) is cte]:
            inner = exp.Subquery(
                this=body.copy(), alias=exp.TableAlias(this=exp.to_identifier(table.alias or name, quoted=True))
            )
            inner.set("joins", table.args.get("joins"))
            table.replace(inner)
        cte.pop()
    if not with_.expressions:
        with_.pop()


def distinct_aliases(tree: exp.Query, columns: Collection[str] = ()) -> None:
    """Give every use of the original an alias of its own, so that a column says which SELECT it belongs to."""
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
    for position, node in enumerate(select.expressions):
        if isinstance(node, exp.Subquery):
            name = exp.to_identifier(node.alias or f"_col_{position}", quoted=True)
            bare = node.copy()
            bare.set("alias", None)
            node.replace(exp.Alias(this=bare, alias=name))


Describe = Callable[[str], Sequence[tuple[str, str]]]
"""Gives names and types of the columns of a query's result; raises RewriteError, in DuckDB's words, without any."""


@dataclass(frozen=True)
class Output:
    """One output column.

    Attributes:
        name: what the result of the query calls it.
        measure: whether an aggregate computes it.
        additive: whether no matching row means 0 (COUNT and SUM) rather than unknown.
    """

    name: str
    measure: bool
    additive: bool


def read_query(
    query: str, tables: Sequence[TableInfo], describe: Describe | None = None
) -> tuple[exp.Query, list[str], list[str]]:
    """A query, bound, and the names and types of its output columns.

    Args:
        query: one SELECT over the original.
        tables: the original first, then other tables of the query.
        describe: asks DuckDB for names and types; without it names are those of the bound query, and types are ''.

    Raises:
        RewriteError: it cannot be read.
    """
    written = parse(query)
    require_table(written, tables[0])
    try:
        tree = bound(_titled(written, describe), tables)
    except RewriteError:
        if describe is not None:
            describe(query)  # DuckDB says what is wrong, and which names are near
        raise
    columns = [projection.alias_or_name for projection in leftmost(tree).expressions]
    described = _described(query, describe)
    if len(described) != len(columns):
        described = [(name, "") for name in columns]
    return tree, [name for name, _ in described], [kind for _, kind in described]


def outputs(query: str, names: Sequence[str], tree: exp.Query) -> tuple[Output, ...]:
    """Describe the output columns of a bound query; expressions without an alias are called by their text.

    Args:
        query: its text.
        names: names of its columns.
        tree: the bound query.
    """
    written = leftmost(parse(query)).expressions
    if len(written) == len(names) and not any(step.is_star for step in written):
        texts = [step.sql("duckdb", normalize_functions="lower") for step in written]
        names = [texts[i] if _is_unnamed(step) else names[i] for i, step in enumerate(written)]
    scope = build_scope(tree)
    flags = measure_flags(scope) if scope is not None else [False] * len(names)
    values = [e.unalias() for e in leftmost(tree).expressions]
    return tuple(
        Output(name, flag, isinstance(_aggregate(value), (exp.Count, exp.Sum, exp.CountIf)))
        for name, flag, value in zip(names, flags, values, strict=True)
    )


def _described(query: str, describe: Describe | None) -> Sequence[tuple[str, str]]:
    """Names and types of the columns; none where DuckDB cannot bind the query, which may call a table otherwise."""
    try:
        return describe(query) if describe is not None else ()
    except RewriteError:
        return ()


def _titled(query: exp.Query, describe: Describe | None) -> exp.Query:
    """The query with an alias on each expression without one in FROM and WITH, by which it may be read."""
    if describe is None or not any(True for _ in _untitled(query)):
        return query
    made = query.copy()
    for select in _untitled(made):
        names = [name for name, _ in _described(select.sql("duckdb"), describe)]
        if len(names) == len(select.expressions):
            for projection, name in zip(select.expressions, unique_names(names), strict=True):
                if _is_unnamed(projection):
                    projection.replace(exp.alias_(projection.copy(), name, quoted=True))
    return made


def _untitled(query: exp.Query) -> Iterator[exp.Select]:
    """SELECTs in FROM and WITH that have an expression without a name."""
    for select in all_of(query, exp.Select):
        top: exp.Expr = select
        while isinstance(top.parent, exp.SetOperation) and top.parent.this is top:
            top = top.parent
        around = top.parent
        source = isinstance(around, exp.Subquery) and isinstance(around.parent, (exp.From, exp.Join, exp.Subquery))
        if (source or isinstance(around, exp.CTE)) and any(map(_is_unnamed, select.expressions)):
            yield select


def _is_unnamed(projection: exp.Expr) -> bool:
    return not (projection.is_star or projection.alias or isinstance(projection.unnest(), exp.Column))


def unique_names(names: Sequence[str]) -> list[str]:
    """Names that all differ: equal ones have numbers, as the columns of a subquery in DuckDB have."""
    found: list[str] = []
    for first in names:
        name, number = first, 0
        while fold(name) in map(fold, found):
            name = f"{first}_{(number := number + 1)}"
        found.append(name)
    return found


def measure_flags(scope: Scope) -> list[bool]:
    """Whether an aggregate computes each output column of a query."""
    if scope.set_operation_scopes:
        left, right = (measure_flags(part) for part in scope.set_operation_scopes[:2])
        return [a or b for a, b in zip(left, right, strict=False)]
    if not isinstance(scope.expression, exp.Select):
        return []
    inner: dict[str, dict[str, bool]] = {}
    for name, source in scope.sources.items():
        if isinstance(source, Scope) and isinstance(source.expression, exp.Query):
            columns = source.expression.named_selects
            inner[name] = dict(zip(columns, measure_flags(source), strict=False))
    keys = groups_of(scope.expression).keys
    return [e.unalias() not in keys and _is_measure(e, inner) for e in scope.expression.expressions]


def _is_measure(projection: exp.Expr, inner: dict[str, dict[str, bool]]) -> bool:
    if projection.find(exp.Query) is not None or has_aggregate(projection):
        return True
    columns = all_of(projection, exp.Column)
    return any(inner.get(column.table, {}).get(column.name, False) for column in columns)


def _aggregate(projection: exp.Expr) -> exp.Expr:
    return projection.this if isinstance(projection, exp.Filter) else projection
