"""Joins in which a person is counted once, however many rows of another table she meets.

count(DISTINCT person) over a release of a row a person counts rows, and a join counts a row once for each row that it
meets. Of a table that is joined by equality only the distinct rows matter then: what is compared with the original,
and the keys of the groups. With conditions of its own judged inside, a person meets one of them at most in each group:

    FROM visits JOIN regions r ON visits.place = r.place WHERE r.coast GROUP BY r.name
    FROM visits JOIN (SELECT DISTINCT r.place, r.name FROM regions r WHERE r.coast) r
        ON visits.place = r.place GROUP BY r.name

Any other join may count a person several times, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.estimate.expectation import split
from duckdb_anon.rewrite.query.parse import from_items, is_original, plain
from duckdb_anon.rewrite.query.template import copied, every, name
from duckdb_anon.rewrite.query.walking import all_of, columns_of
from duckdb_anon.rewrite.shapes.parts import labelled


def meet_once(select: exp.Select, keys: Sequence[exp.Expr], asked: Sequence[str]) -> None:
    """Let every row of the original meet one row of each other table at most in each group, in place.

    Args:
        select: a bound SELECT that counts rows.
        keys: what it groups by.
        asked: columns of the original that do not tell who has a value.

    Raises:
        RewriteError: a join cannot be written so, or compares one of those columns.
    """
    items = from_items(select)
    original = next(item.alias_or_name for item in items if is_original(item))
    joins = select.args.get("joins") or []
    on = [piece for join in joins if join.args.get("on") is not None for piece in split(join.args["on"])]
    listed = {column for piece in on for column in columns_of(piece, original)} & set(asked)
    if listed:
        raise RewriteError(lists_do_not_say(min(listed)))
    inner = all((join.side or "") == "" and (join.kind or "").upper() in ("", "INNER", "CROSS") for join in joins)
    left = is_original(items[0]) and all((join.side or "").upper() in ("", "LEFT") for join in joins)
    for item in items:
        if is_original(item):
            continue
        alias = item.alias_or_name
        matched = [piece for piece in on if columns_of(piece, alias)]
        compared = [_compared(piece, alias, original) for piece in matched]
        where = select.args.get("where")
        tests = [one for one in split(where.this) if columns_of(one, alias)] if where is not None else []
        mine = [_only(test, alias) for test in tests]
        told = {place: key for place, key in enumerate(keys) if columns_of(key, alias)}
        fits = isinstance(item, (exp.Table, exp.Subquery)) and (inner or (left and not tests))
        if not (fits and compared and all([*mine, *(_only(key, alias) for key in told.values())])) or None in compared:
            raise RewriteError(
                f"persons cannot be counted over a join with {_called(item)}, of which a person may meet several rows; "
                "join by equality with columns of the original, or write IN (SELECT ...)"
            )
        read = {fold(c.name): copied(c) for c in compared if c is not None}
        labels = [labelled(copied(key), f"told_{place}") for place, key in told.items()]
        inside = exp.Select(expressions=[*read.values(), *labels], distinct=exp.Distinct())
        inside.set("from_", exp.From(this=copied(item)))
        if tests:
            inside.set("where", exp.Where(this=every([copied(test) for test in tests])))
            rest = [copied(one) for one in split(where.this) if not columns_of(one, alias)] if where else []
            select.set("where", exp.Where(this=every(rest)) if rest else None)
        called = exp.to_identifier(alias, quoted=True)
        for place in told:
            shown = exp.Column(this=name(f"told_{place}"), table=copied(called))
            select.expressions[place].set("this", shown)
            select.args["group"].expressions[place].replace(copied(shown))
        item.replace(exp.Subquery(this=inside, alias=exp.TableAlias(this=called)))


def lists_do_not_say(column: str) -> str:
    """Why persons are not counted by a sensitive column of lists."""
    return (
        f"persons cannot be counted by '{column}': lists of nodes do not say which persons have a value; ask "
        "for them by quasi-identifiers, or for records: count(*)"
    )


def _compared(piece: exp.Expr, alias: str, original: str) -> exp.Column | None:
    """The column of another table that an equality compares with the original; None for any other condition."""
    if not isinstance(piece, exp.EQ):
        return None
    for mine, other in ((piece.left, piece.right), (piece.right, piece.left)):
        if isinstance(mine, exp.Column) and mine.table == alias and _only(other, original):
            return mine
    return None


def _only(piece: exp.Expr, alias: str) -> bool:
    """Whether an expression reads one table alone, and no subquery."""
    return all(column.table == alias for column in all_of(piece, exp.Column)) and not any(all_of(piece, exp.Query))


def _called(item: exp.Expr) -> str:
    return item.alias_or_name or plain(item)
