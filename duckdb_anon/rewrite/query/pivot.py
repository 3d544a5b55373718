"""PIVOT as aggregates with FILTER, one a value, where the values are named.

PIVOT people ON sex IN ('F', 'M') USING count(*) GROUP BY region
SELECT region, count(*) FILTER (WHERE sex = 'F') AS "F", ... FROM people GROUP BY region
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.trees import all_of, every, tree


def conditional_aggregates(query: exp.Expr) -> exp.Expr:
    """Spell out each PIVOT of a parsed statement; what cannot be spelled out stays for `refuse`.

    Example:
        >>> import sqlglot
        >>> text = "PIVOT t ON a IN (1) USING sum(b) GROUP BY c"
        >>> conditional_aggregates(sqlglot.parse_one(text, dialect="duckdb")).sql("duckdb")
        'SELECT c, SUM(b) FILTER(WHERE a = 1) AS "1" FROM t GROUP BY c'
    """
    if isinstance(query, exp.Pivot):
        return _statement(query) or query
    for source in all_of(query, exp.Subquery, exp.Table):
        pivots = source.args.get("pivots") or []
        made = _clause(source, pivots[0]) if len(pivots) == 1 else None
        if made is not None:
            alias = pivots[0].args.get("alias") or exp.TableAlias(this=exp.to_identifier("pivoted"))
            source.replace(exp.Subquery(this=made, alias=alias.copy(), joins=source.args.get("joins")))
    return query


def _statement(pivot: exp.Pivot) -> exp.Select | None:
    group = pivot.args.get("group")
    if group is None or not pivot.args.get("using"):
        return None
    keys = list(group.expressions)
    return _select(pivot.this, keys, pivot.expressions, pivot.args["using"])


def _clause(source: exp.Expr, pivot: exp.Pivot) -> exp.Select | None:
    """PIVOT in FROM: it groups by every column that it does not name, so these must be known."""
    inner = source.this if isinstance(source, exp.Subquery) else None
    fields = pivot.args.get("fields") or []
    if pivot.args.get("unpivot") or not isinstance(inner, exp.Select) or inner.is_star:
        return None
    used = {fold(c.name) for one in [*fields, *pivot.expressions] for c in all_of(one, exp.Column)}
    group = pivot.args.get("group")
    keys: list[exp.Expr] = (
        list(group.expressions)
        if group
        else [exp.column(name, quoted=True) for name in inner.named_selects if fold(name) not in used]
    )
    bare = exp.Subquery(this=inner.copy(), alias=exp.TableAlias(this=exp.to_identifier("source")))
    return _select(bare, keys, fields, pivot.expressions)


def _select(
    source: exp.Expr, keys: Sequence[exp.Expr], fields: Sequence[exp.Expr], aggregates: Sequence[exp.Expr]
) -> exp.Select | None:
    combined: list[tuple[str, list[exp.Expr]]] = [("", [])]
    for one in fields:
        values = one.expressions if isinstance(one, exp.In) else []
        if not values or not isinstance(one.this, exp.Column):
            return None
        combined = [
            (f"{label}_{_label(value)}" if label else _label(value), [*tests, _test(one.this, value)])
            for label, tests in combined
            for value in values
        ]
    columns: list[exp.Expr] = [key.copy() for key in keys]
    for label, tests in combined:
        for aggregate in aggregates:
            value = aggregate.unalias()
            long = len(aggregates) > 1 or isinstance(aggregate, exp.Alias)
            tail = aggregate.alias if isinstance(aggregate, exp.Alias) else _called(value)
            filtered = exp.Filter(this=value.copy(), expression=exp.Where(this=every(tests)))
            name = f"{label}_{tail}" if long else label
            columns.append(exp.Alias(this=filtered, alias=exp.to_identifier(name, quoted=True)))
    found = exp.Select(expressions=columns, from_=exp.From(this=source.copy()))
    if keys:
        found.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return found


def _called(aggregate: exp.Expr) -> str:
    """What DuckDB calls an aggregate among several."""
    if isinstance(aggregate, exp.Count) and isinstance(aggregate.this, exp.Star):
        return "count_star()"
    return aggregate.sql("duckdb", normalize_functions="lower")


def _label(value: exp.Expr) -> str:
    if isinstance(value, exp.PivotAlias):
        return str(value.args["alias"].name)
    return value.name if isinstance(value, exp.Literal) else value.sql("duckdb")


def _test(column: exp.Expr, value: exp.Expr) -> exp.Expr:
    inner = value.this if isinstance(value, exp.PivotAlias) else value
    if isinstance(inner, exp.Null):
        return tree("{column} is null", column=column)
    return tree("{column} = {value}", column=column, value=inner)
