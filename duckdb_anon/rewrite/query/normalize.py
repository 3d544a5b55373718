"""Passes that leave one form of what a query may write in several; `passes` has them in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps

from sqlglot import exp
from sqlglot.optimizer.merge_subqueries import merge_subqueries

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.tables import TableInfo, Tables, columns_of_item
from duckdb_anon.rewrite.query.trees import (
    CALLS,
    all_of,
    from_items,
    has_aggregate,
    is_aggregate,
    is_original,
    step_of,
    tree,
)


def _of_each_select(rewrite: Callable[[exp.Select, Tables], None]) -> Callable[[exp.Query, Tables], None]:
    """A pass over each SELECT of a query."""

    @wraps(rewrite)
    def rewritten(query: exp.Query, tables: Tables) -> None:
        for select in all_of(query, exp.Select):
            rewrite(select, tables)

    return rewritten


_SYNONYMS: dict[str, type[exp.AggFunc]] = {
    **dict.fromkeys(("mean", "favg"), exp.Avg),
    **dict.fromkeys(("fsum", "sumkahan", "kahan_sum", "sum_no_overflow"), exp.Sum),
    "count_star": exp.Count,
}
"""Other names of aggregates, which the library does not know."""


def synonyms(query: exp.Query, _: Tables) -> None:
    """Call aggregates by their usual names, in place."""
    for node in all_of(query, exp.Anonymous):
        known = _SYNONYMS.get(fold(node.name))
        if known is exp.Count and not node.expressions:
            node.replace(exp.Count(this=exp.Star()))
        elif known is not None and len(node.expressions) == 1:
            node.replace(known(this=node.expressions[0]))


def as_calls(query: exp.Query, tables: Tables) -> None:
    """Write functions without parentheses as calls, in place: `current_date AS current_date` would read itself.

    Raises:
        RewriteError: a column or an alias has the name of one of them, so its meaning depends on where it stands.
    """
    found = [node for node in all_of(query, *CALLS) if not node.this]
    aliases = [alias for alias in all_of(query, exp.Alias) if type(alias.this) not in CALLS]
    taken = {fold(name) for info in tables for name, _ in info.columns} | {fold(alias.alias) for alias in aliases}
    for node in found:
        bare, call = CALLS[type(node)]
        if bare in taken:
            raise RewriteError(
                f'{bare} is a column here and a function; write "{bare}" in quotes for the column, or give it another '
                "name for the function"
            )
        node.replace(exp.Anonymous(this=call))


def joins_after_from(query: exp.Query, _: Tables) -> None:
    """Make what FROM before SELECT joins joins of the SELECT, in place: sqlglot has them in the first item."""
    for source in all_of(query, exp.From):
        select, joins = source.parent, source.this.args.get("joins")
        if isinstance(select, exp.Select) and joins:
            source.this.set("joins", None)
            select.set("joins", [*joins, *(select.args.get("joins") or [])])


def without_parentheses(query: exp.Query, _: Tables) -> None:
    """Take parentheses around items of FROM away, in place, where they mean nothing."""
    for around in all_of(query, exp.Subquery):
        inner = around.this
        if not isinstance(around.parent, (exp.From, exp.Join, exp.Subquery)):
            continue
        if not isinstance(inner, (exp.Table, exp.Subquery)) or around.args.get("pivots") or around.args.get("sample"):
            continue
        alias, joins = around.args.get("alias"), inner.args.get("joins") or []
        first = isinstance(around.parent, exp.From) and isinstance(around.parent.parent, exp.Select)
        if (joins and (alias is not None or not first)) or (alias is not None and _column_aliases(inner)):
            continue
        if alias is not None:
            inner.set("alias", alias)
        inner.set("joins", None)
        select = around.parent.parent
        if first and isinstance(select, exp.Select):
            joins = [*joins, *(around.args.get("joins") or []), *(select.args.get("joins") or [])]
            select.set("joins", joins or None)
        else:
            inner.set("joins", around.args.get("joins"))
        around.replace(inner)


def with_column_aliases(table: exp.Table, info: TableInfo) -> None:
    """Let a table whose alias names its columns be a subquery that names them, in place."""
    names = _column_aliases(table)
    if not names:
        return
    if len(names) > len(info.columns):
        raise RewriteError(f"{table.alias} names {len(names)} columns; {info.name} has {len(info.columns)}")
    columns = [column for column, _ in info.columns]
    selected = [*(name.name for name in names), *columns[len(names) :]]
    alias = exp.TableAlias(this=table.args["alias"].this.copy())
    inner = table.copy()
    inner.set("alias", alias.copy())
    inner.set("joins", None)
    inner.meta.update(table.meta)
    projections = [
        exp.Alias(this=exp.column(column, quoted=True), alias=exp.to_identifier(name, quoted=True))
        for column, name in zip(columns, selected, strict=True)
    ]
    select = exp.Select(expressions=list(projections), from_=exp.From(this=inner))
    table.replace(exp.Subquery(this=select, alias=alias, joins=table.args.get("joins")))


@_of_each_select
def spell_out_windows(select: exp.Select, _: Tables) -> None:
    """Put what WINDOW names where it is used, in place."""
    named: dict[str, exp.Window] = {}
    for window in select.args.get("windows") or []:
        named[fold(window.this.name)] = _with_base(window, named)
    if not named:
        return
    for window in all_of(select, exp.Window):
        if window.args.get("alias") and window.find_ancestor(exp.Select) is select and window.arg_key != "windows":
            window.replace(_with_base(window, named))
    select.set("windows", None)


def spell_out_values(query: exp.Query, _: Tables) -> None:
    """Write x IN (SELECT ... FROM (VALUES ...)) for x IN (VALUES ...), in place: a query is known by its SELECT."""
    for test in all_of(query, exp.In):
        values = test.expressions[0] if len(test.expressions) == 1 else None
        if not isinstance(values, exp.Values) or not values.expressions:
            continue
        first = values.expressions[0]
        wide = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        names = [exp.to_identifier(f"column{position}", quoted=True) for position in range(wide)]
        listed = values.copy()
        listed.set("alias", exp.TableAlias(this=exp.to_identifier("listed", quoted=True), columns=names))
        selected: list[exp.Expr] = [exp.Column(this=name.copy()) for name in names]
        select = exp.Select(expressions=selected, from_=exp.From(this=listed))
        test.set("expressions", None)
        test.set("query", exp.Subquery(this=select))


def require_plain_from(query: exp.Query, tables: Tables) -> None:
    """Raise where the original stands elsewhere than in FROM; name the table of columns in functions of FROM."""
    for table in filter(is_original, all_of(query, exp.Table)):
        around = table.parent
        select = around.parent if isinstance(around, (exp.From, exp.Join)) else None
        if not isinstance(select, exp.Select) or (isinstance(around, exp.Join) and table.args.get("joins")):
            raise RewriteError(
                f"{table.alias} stands in a JOIN that is part of another item of FROM, which cannot be answered; put "
                "it first in FROM, and what is joined with it after it, without parentheses"
            )
        for join in select.args.get("joins") or []:
            if (join.args.get("method") or "").upper() == "POSITIONAL":
                raise RewriteError(
                    f"POSITIONAL JOIN cannot be answered: rows of a release of {table.alias} have another order"
                )
            # range(people.age) for range(age)
            called = join.this.this if isinstance(join.this, exp.Table) else None
            for column in all_of(called, exp.Column) if isinstance(called, exp.Func) else []:
                if not column.table and fold(column.name) in tables[0].types:
                    column.set("table", exp.to_identifier(table.alias, quoted=True))


def _with_base(window: exp.Window, named: Mapping[str, exp.Window]) -> exp.Window:
    """A window with what the window it names says."""
    alias = window.args.get("alias")
    base = named.get(fold(alias.name)) if alias is not None else None
    if base is None:
        return window
    found = window.copy()
    found.set("alias", None)
    for key in ("partition_by", "order", "spec"):
        value = window.args.get(key) or base.args.get(key)
        found.set(key, [node.copy() for node in value] if isinstance(value, list) else value and value.copy())
    return found


def _column_aliases(item: exp.Expr) -> list[exp.Identifier]:
    alias = item.args.get("alias")
    return list(alias.columns) if isinstance(alias, exp.TableAlias) else []


@_of_each_select
def spell_out_positions(select: exp.Select, tables: Tables) -> None:
    """Replace ordinals and aliases inside ROLLUP, CUBE and GROUPING SETS by what they stand for.

    A name that is a column of FROM means that column, as in DuckDB.
    """
    group = select.args.get("group")
    several = (exp.Rollup, exp.Cube, exp.GroupingSets)
    sets = [projection for projection in group.expressions if isinstance(projection, several)] if group else []
    if not sets:
        return
    for projection in select.expressions:
        number = projection.unalias()
        if isinstance(number, (exp.Literal, exp.Neg)) and number.is_int:
            number.replace(tree("coalesce({n})", n=number))  # as a key it would be a position
    columns = {fold(column) for item in from_items(select) for column in columns_of_item(item, tables)}
    by_alias = {fold(e.alias): e.this for e in select.expressions if isinstance(e, exp.Alias)}
    by_alias = {alias: made_of for alias, made_of in by_alias.items() if alias not in columns}
    for entry in sets:
        for node in all_of(entry, exp.Literal, exp.Column):
            _resolve_one(node, select, by_alias)


def _resolve_one(node: exp.Expr, select: exp.Select, by_alias: dict[str, exp.Expr]) -> None:
    grouping = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren)
    if not isinstance(node.parent, grouping):
        return
    if isinstance(node, exp.Literal) and node.is_int:
        position = int(node.this)
        if not 1 <= position <= len(select.expressions):
            raise RewriteError(f"GROUP BY position {position} is not in the select list")
        node.replace(select.expressions[position - 1].unalias().copy())
    elif isinstance(node, exp.Column) and not node.table and fold(node.name) in by_alias:
        node.replace(by_alias[fold(node.name)].copy())


@_of_each_select
def spell_out_constants(select: exp.Select, _: Tables) -> None:
    """Put constants where HAVING has their names; other names are those of columns by now, or spelled out."""
    having = select.args.get("having")
    if having is None:
        return
    constants = {
        fold(projection.alias): projection.this
        for projection in select.expressions
        if isinstance(projection, exp.Alias)
        and not projection.find(exp.Column, exp.Query)
        and not has_aggregate(projection)
    }
    for column in all_of(having, exp.Column):
        if not column.table and fold(column.name) in constants and column.find_ancestor(exp.Query) is select:
            column.replace(exp.Paren(this=constants[fold(column.name)].copy()))


@_of_each_select
def spell_out_all(select: exp.Select, _: Tables) -> None:
    """Spell out GROUP BY ALL: what is selected without an aggregate, and the columns that HAVING reads outside them.

    `SELECT left(a, 1) AS k ... GROUP BY ALL HAVING k = 'n'` has the key k alone, as from DuckDB 2.0.1 on; before, the
    column a within it was one more. What reads no column of FROM is no key: `SELECT 1, count(*) ... GROUP BY ALL` has
    one row where no row is there.
    """
    group = select.args.get("group")
    if not group or not group.args.get("all"):
        return
    group.set("all", None)
    items = {item.alias_or_name for item in from_items(select)}
    without = [e.unalias() for e in select.expressions if not has_aggregate(e)]
    keys = [node.copy() for node in without if any(c.table in items for c in all_of(node, exp.Column))]
    having = select.args.get("having")
    read = dict.fromkeys(_outside_aggregates(having, keys)) if having else ()
    keys += [column.copy() for column in read if column not in keys]
    if keys:
        group.set("expressions", keys)
    else:
        group.pop()


@_of_each_select
def keys_by_position(select: exp.Select, _: Tables) -> None:
    """Write 1 for a key with a subquery in it that is the first column, in place, as qualifying does for constants.

    Each copy of a subquery gets names of its own later, so DuckDB would not see that both are the same.
    """
    group = select.args.get("group")
    selected = [projection.unalias() for projection in select.expressions]
    for key in group.expressions if group is not None else []:
        if key in selected and any(all_of(key, exp.Query)):
            key.replace(exp.Literal.number(selected.index(key) + 1))


def is_scalar(node: exp.Subquery) -> bool:
    """Whether a subquery stands where a value does."""
    return not isinstance(node.parent, (exp.From, exp.Join, exp.In, exp.Any, exp.All, exp.Subquery, exp.SetOperation))


def single_rows(query: exp.Query, _: Tables) -> None:
    """Let scalar subqueries have one row, in place: estimates may tie where the original's values do not."""
    for node in all_of(query, exp.Subquery):
        inner = node.this
        if not isinstance(inner, exp.Select) or not is_scalar(node) or inner.args.get("limit"):
            continue
        one = not inner.args.get("group") and any(map(has_aggregate, inner.expressions))
        if not one and inner.args.get("from_") is not None:
            if inner.args.get("order") is None:
                inner.order_by(exp.Literal.number(1), copy=False)
            inner.limit(1, copy=False)


def spell_out_order(query: exp.Query, _: Tables) -> None:
    """Spell out ORDER BY ALL: the output columns it stands for."""
    for select in all_of(query, exp.Select, exp.SetOperation):
        order, names = select.args.get("order"), select.named_selects
        terms = order.expressions if order is not None else []
        is_all = len(terms) == 1 and isinstance(terms[0].this, (exp.Column, exp.Var))
        if not is_all or fold(terms[0].this.name) != "all" or "all" in map(fold, names):
            continue
        listed = [terms[0].copy() for _ in names]
        for term, name in zip(listed, names, strict=True):
            term.set("this", exp.column(name, quoted=True))
        select.set("order", exp.Order(expressions=listed))


def _outside_aggregates(node: exp.Expr, keys: Sequence[exp.Expr]) -> Iterator[exp.Column]:
    """Columns of an expression that neither an aggregate nor a key reads."""
    if node in keys:
        return
    if isinstance(node, exp.Column):
        yield node
    elif not isinstance(node, (exp.Filter, exp.Query)) and not is_aggregate(node):
        for child in node.iter_expressions():
            yield from _outside_aggregates(child, keys)


_NOT_MERGED = "prewhere"
"""A clause that DuckDB does not have, which keeps a SELECT from being merged."""
_STRICT = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.DataType, exp.Paren, exp.Neg, exp.Not, exp.Cast, exp.Abs),
    *(exp.Add, exp.Sub, exp.Mul, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.DateTrunc, exp.TimestampTrunc),
)


def merged(query: exp.Query, _: Tables) -> exp.Query:
    """Merge subqueries that only select and filter into the SELECT around them.

    What an outer join may fill with NULLs stays a subquery unless NULL follows from its columns: `1 AS k` would be 1.
    """
    for select in all_of(query, exp.Select):
        for inner in _not_merged(select):
            inner.set(_NOT_MERGED, exp.true())
    query = merge_subqueries(query)
    for select in all_of(query, exp.Select):
        select.set(_NOT_MERGED, None)
    return query


def _not_merged(select: exp.Select) -> Iterator[exp.Select]:
    """The SELECTs of FROM that stay as they are."""
    joins = select.args.get("joins") or []
    single_rows = any((join.args.get("method") or "").upper() in ("ASOF", "POSITIONAL") for join in joins)
    outer = any((join.side or "").upper() in ("LEFT", "RIGHT", "FULL") for join in joins)
    for item in from_items(select) if single_rows or outer else []:
        step = step_of(item) if isinstance(item, exp.Table) else None
        inner = step.this if step is not None else item.this
        if isinstance(inner, exp.Select):
            if single_rows or not all(_is_null_of_nulls(projection.unalias()) for projection in inner.expressions):
                yield inner


def _is_null_of_nulls(node: exp.Expr) -> bool:
    """Whether an expression is NULL where its columns are."""
    return any(True for _ in node.find_all(exp.Column)) and all(isinstance(item, _STRICT) for item in node.walk())
