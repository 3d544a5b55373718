"""FROM, WINDOW and VALUES as the rewriter reads them: tables stand in FROM by themselves, under their columns' names.

    FROM (people p JOIN regions r ON p.region = r.name)       FROM people p JOIN regions r ON p.region = r.name
    FROM people p JOIN regions r ON ... SELECT count(*)       SELECT count(*) FROM people p JOIN regions r ON ...
    FROM people AS p(a, b)                                    FROM (SELECT age AS a, sex AS b, ... FROM people) AS p
    rank() OVER w ... WINDOW w AS (ORDER BY count(*))         rank() OVER (ORDER BY count(*))

Whatever would hide the original from the rewriter is read from the release as it is, so it is refused by name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.template import copied
from duckdb_anon.rewrite.query.walking import all_of


def joins_after_from(query: exp.Query) -> None:
    """Make what FROM before SELECT joins joins of the SELECT, in place: sqlglot has them in the first item."""
    for source in all_of(query, exp.From):
        select, joins = source.parent, source.this.args.get("joins")
        if isinstance(select, exp.Select) and joins:
            source.this.set("joins", None)
            select.set("joins", [*joins, *(select.args.get("joins") or [])])


def without_parentheses(query: exp.Query) -> None:
    """Take parentheses around items of FROM away, in place, where they mean nothing."""
    for around in all_of(query, exp.Subquery):
        inner = around.this
        if not isinstance(around.parent, (exp.From, exp.Join, exp.Subquery)):
            continue
        if not isinstance(inner, (exp.Table, exp.Subquery)) or around.args.get("pivots") or around.args.get("sample"):
            continue
        alias, joins = around.args.get("alias"), inner.args.get("joins") or []
        first = isinstance(around.parent, exp.From) and isinstance(around.parent.parent, exp.Select)
        if (joins and (alias is not None or not first)) or (alias is not None and _columns(inner)):
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


def with_own_names(table: exp.Table, info: TableInfo) -> None:
    """Let a table whose alias names its columns be a subquery that names them, in place."""
    names = _columns(table)
    if not names:
        return
    if len(names) > len(info.columns):
        raise RewriteError(f"{table.alias} names {len(names)} columns; {info.name} has {len(info.columns)}")
    known = [column for column, _ in info.columns]
    shown = [*(one.name for one in names), *known[len(names) :]]
    alias = exp.TableAlias(this=copied(table.args["alias"].this))
    inner = copied(table)
    inner.set("alias", copied(alias))
    inner.set("joins", None)
    inner.meta.update(table.meta)
    columns = [
        exp.Alias(this=exp.column(one, quoted=True), alias=exp.to_identifier(name, quoted=True))
        for one, name in zip(known, shown, strict=True)
    ]
    select = exp.Select(expressions=list(columns), from_=exp.From(this=inner))
    table.replace(exp.Subquery(this=select, alias=alias, joins=table.args.get("joins")))


def spell_out_windows(select: exp.Select) -> None:
    """Put what WINDOW names where it is used, in place."""
    named: dict[str, exp.Window] = {}
    for window in select.args.get("windows") or []:
        named[fold(window.this.name)] = _whole(window, named)
    if not named:
        return
    for window in all_of(select, exp.Window):
        if window.args.get("alias") and window.find_ancestor(exp.Select) is select and window.arg_key != "windows":
            window.replace(_whole(window, named))
    select.set("windows", None)


def spell_out_values(query: exp.Query) -> None:
    """Write x IN (SELECT ... FROM (VALUES ...)) for x IN (VALUES ...), in place: a query is known by its SELECT."""
    for test in all_of(query, exp.In):
        values = test.expressions[0] if len(test.expressions) == 1 else None
        if not isinstance(values, exp.Values) or not values.expressions:
            continue
        first = values.expressions[0]
        wide = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        names = [exp.to_identifier(f"column{place}", quoted=True) for place in range(wide)]
        listed = copied(values)
        listed.set("alias", exp.TableAlias(this=exp.to_identifier("listed", quoted=True), columns=names))
        shown: list[exp.Expr] = [exp.Column(this=copied(one)) for one in names]
        select = exp.Select(expressions=shown, from_=exp.From(this=listed))
        test.set("expressions", None)
        test.set("query", exp.Subquery(this=select))


def require_plain_from(tree: exp.Query, source: str, columns: Collection[str]) -> None:
    """Raise where the original stands elsewhere than in FROM; give columns in functions of FROM their table, in place.

    Args:
        tree: a bound query.
        source: the name the original has in it.
        columns: its columns.

    Raises:
        RewriteError: telling how to write it.
    """
    for table in all_of(tree, exp.Table):
        if table.name != source:
            continue
        around = table.parent
        if isinstance(around, (exp.From, exp.Join)) and isinstance(around.parent, exp.Select):
            _refuse_positions(around.parent, table.alias)
            _name_arguments(around.parent, table.alias, columns)
        plain = isinstance(around, (exp.From, exp.Join)) and isinstance(around.parent, exp.Select)
        if not plain or (isinstance(around, exp.Join) and table.args.get("joins")):
            raise RewriteError(
                f"{table.alias} stands in a JOIN that is part of another item of FROM, which cannot be answered; put "
                "it first in FROM, and what is joined with it after it, without parentheses"
            )


def _refuse_positions(select: exp.Select, name: str) -> None:
    if any((join.args.get("method") or "").upper() == "POSITIONAL" for join in select.args.get("joins") or []):
        raise RewriteError(f"POSITIONAL JOIN cannot be answered: rows of a release of {name} have another order")


def _name_arguments(select: exp.Select, name: str, columns: Collection[str]) -> None:
    """Write range(people.age) for range(age), in place."""
    for join in select.args.get("joins") or []:
        called = join.this.this if isinstance(join.this, exp.Table) else None
        for column in all_of(called, exp.Column) if isinstance(called, exp.Func) else []:
            if not column.table and fold(column.name) in columns:
                column.set("table", exp.to_identifier(name, quoted=True))


def _whole(window: exp.Window, named: Mapping[str, exp.Window]) -> exp.Window:
    """A window with what the window it names says."""
    alias = window.args.get("alias")
    base = named.get(fold(alias.name)) if alias is not None else None
    if base is None:
        return window
    found = copied(window)
    found.set("alias", None)
    for key in ("partition_by", "order", "spec"):
        value = window.args.get(key) or base.args.get(key)
        found.set(key, [copied(one) for one in value] if isinstance(value, list) else value and copied(value))
    return found


def _columns(item: exp.Expr) -> list[exp.Identifier]:
    alias = item.args.get("alias")
    return list(alias.columns) if isinstance(alias, exp.TableAlias) else []
