"""What the channels of a randomized release alone tell is reckoned once, while a query is planned.

A step `channel_of_` a column reads one row of the release and goes through the column's domain: numbers that are the
same for every run, and that take DuckDB longer to plan than some queries to answer. So a text without low and high
holds them, in one step for all columns. It looks whether the row is still the one that was read, and fails where it is
not: on a release of other channels, or where the caller's transaction sees another one than is committed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from duckdb_anon.model.errors import when_run
from duckdb_anon.model.release_formats.duckdb_types import is_boolean, is_number
from duckdb_anon.rewrite.estimate.row_answers import told_name
from duckdb_anon.rewrite.query.parse import to_sql
from duckdb_anon.rewrite.query.seen_values import Looks
from duckdb_anon.rewrite.query.template import OWN, column, copied, name, select, taken, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.inverted import CHANNELS, RandomizedPart
from duckdb_anon.rewrite.shapes.parts import ROW, aliased
from duckdb_anon.rewrite.shapes.released import Model

_SAME_EVERYWHERE = (
    exp.Lambda, exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Connector, exp.Not,
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Is, exp.Neg, exp.Add, exp.Sub, exp.Mul,
    exp.Case, exp.If, exp.Coalesce,
)  # fmt: skip
"""What settings, time and other tables do not change; texts do, which a collation may compare."""


def settle(query: exp.Query, model: Model, looks: Looks) -> None:
    """Put numbers in place of the steps that only channels tell, in place.

    Args:
        query: a rewritten query without low and high.
        model: the release.
        looks: reads it.
    """
    told = {
        told_name(part).this: part
        for part in model.parts
        if isinstance(part, RandomizedPart) and _is_plain(model.release.types.get(part.columns[0], ""))
    }
    if not told:
        return
    ctes = all_of(query, exp.CTE)
    steps = {cte.alias: cte for cte in ctes if cte.alias in told}
    read = [table for table in all_of(query, exp.Table) if table.name in steps]
    if (
        not steps
        or [cte.alias for cte in ctes].count(CHANNELS.this) != 1
        or len(steps) != len([cte for cte in ctes if cte.alias in told])
        or not all(map(_is_settled, steps.values()))
        or not all(isinstance(table.parent, exp.Join) for table in read)
        or len([one for one in all_of(query, exp.Table) if one.name == CHANNELS.this]) != len(steps)
    ):
        return  # several queries, or values of a domain one by one: read where they are
    parts = [told[alias] for alias in steps]
    row = looks.row(_asked(list(steps.values()), parts, looks.source))
    values = [float(one) for one in row[1:] if isinstance(one, (int, float)) and math.isfinite(one)]
    labels = [(alias, one.alias) for alias, cte in steps.items() for one in cte.this.expressions]
    names = {place: name(f"{told[place[0]].name}_{place[1].removeprefix(OWN)}") for place in labels}
    if not row or len(values) != len(labels) or len({one.this for one in names.values()}) != len(names):
        return
    numbers = [
        exp.Alias(this=tree(_double(value)), alias=taken(names[place]))
        for place, value in zip(labels, values, strict=True)
    ]
    same = exp.Select(expressions=numbers).where(_are_those(str(row[0]), parts, model), copy=False)
    next(cte for cte in ctes if cte.alias == CHANNELS.this).set("this", same)
    _read_instead(query, names, read)
    for cte in steps.values():
        cte.pop()


def _read_instead(query: exp.Query, names: Mapping[tuple[str, str], exp.Identifier], read: list[exp.Table]) -> None:
    """Let what reads steps read the one step that has all numbers.

    Args:
        query: the query.
        names: where a number stood, step and column, to the column where it stands now.
        read: the steps where they are joined.
    """

    def is_number_of(node: object) -> bool:
        return isinstance(node, exp.Column) and (node.table, node.name) in names

    def now(node: Any) -> Any:
        if not is_number_of(node):
            return node
        return exp.Column(this=taken(names[node.table, node.name]), table=taken(CHANNELS))

    for node in all_of(query, exp.Expr):  # what reads a number, and not the number: some stand in two places
        for key, value in list(node.args.items()):
            if is_number_of(value):
                node.set(key, now(value))
            elif isinstance(value, list) and any(map(is_number_of, value)):
                node.set(key, list(map(now, value)))
    seen = set()
    for table in read:
        joined = table.find_ancestor(exp.Select)
        if id(joined) in seen and table.parent is not None:
            table.parent.pop()
        else:
            table.replace(exp.Table(this=taken(CHANNELS)))
        seen.add(id(joined))


def _is_plain(kind: str) -> bool:
    """Whether values of a type compare with others the same under all settings."""
    return is_number(kind) or is_boolean(kind) or kind == "DATE"


def _is_settled(step: exp.Expr) -> bool:
    """Whether a step reads channels and nothing else, with conditions that are the same whenever it runs."""
    tables = {table.name for table in all_of(step, exp.Table)}
    inside = [node for lambda_ in all_of(step, exp.Lambda) for node in lambda_.walk()]
    plain = all(isinstance(node, _SAME_EVERYWHERE) and not node.is_string for node in inside)
    return plain and tables == {CHANNELS.this}


def _told(parts: Sequence[RandomizedPart], source: exp.Expr) -> exp.Select:
    """SELECT of the first row that tells channels, in the column `_rr`; where they stand, they tell all of them."""
    return select(
        "select {told} as _rr from {source} where {told}.{first}.p is not null limit 1",
        told=column(parts[0].channels, ROW),
        first=column(parts[0].columns[0]).this,
        source=source,
    )


def _known_by(parts: Sequence[RandomizedPart], told: exp.Expr) -> exp.Expr:
    """What tells the channels of some columns from others."""
    fields = [exp.Dot(this=copied(told), expression=column(part.columns[0]).this) for part in parts]
    return exp.Anonymous(this="hash", expressions=fields)


def _asked(steps: Sequence[exp.CTE], parts: Sequence[RandomizedPart], source: str) -> str:
    """SELECT of what tells the channels, and all that some steps tell of them; no row where no row tells them."""
    release = exp.Table(this=exp.Var(this=source), alias=exp.TableAlias(this=taken(ROW)))
    known = exp.CTE(this=_told(parts, release), alias=exp.TableAlias(this=taken(CHANNELS)))
    names = [cte.args["alias"].this for cte in steps]
    columns = (exp.Column(this=exp.Star(), table=copied(one)) for one in names)
    asked = exp.Select(
        expressions=[_known_by(parts, tree("_rr")), *columns],
        from_=exp.From(this=exp.Table(this=taken(CHANNELS))),
        joins=[exp.Join(this=exp.Table(this=copied(one)), kind="CROSS") for one in names],
        with_=exp.With(expressions=[known, *map(copied, steps)]),
    )
    return to_sql(asked, pretty=False).replace(OWN, "_anon_")


def _are_those(known_by: str, parts: Sequence[RandomizedPart], model: Model) -> exp.Expr:
    """Whether the channels are still those that were read, which is an error where they are not."""
    changed = (
        f"the channels of {model.release.name} are not those that were read when this query was rewritten: it was "
        "changed since, or in a transaction that is not committed, or is a part of it; rewrite the query once it is "
        "whole and committed"
    )
    now = _told(parts, aliased(model.release, ROW))
    now.set("expressions", [_known_by(parts, column(parts[0].channels, ROW))])
    return tree(
        f"case when {{now}} = {known_by} then true else error({{changed}}) end",
        now=exp.Subquery(this=now),
        changed=exp.Literal.string(when_run(changed)),
    )


def _double(value: float) -> str:
    """A number as DuckDB reads a DOUBLE."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"
