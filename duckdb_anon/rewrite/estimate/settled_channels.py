"""What the channels of a randomized release alone tell is reckoned once, while a query is planned.

A step `channel_of_` a column reads one row of the release and goes through the column's domain: numbers that are the
same for every run, and that take DuckDB longer to plan than some queries to answer. A text without low and high is of
the release as it is committed (so it is of which texts are nodes, and of the kinds of buckets); it holds the numbers
themselves. What a text with bounds rests on it looks up itself.
"""

from __future__ import annotations

import math

from sqlglot import exp

from duckdb_anon.model.shapes.types import is_boolean, is_number
from duckdb_anon.rewrite.estimate.row_answers import told_name
from duckdb_anon.rewrite.estimate.value_steps import drop_unread
from duckdb_anon.rewrite.query.parse import to_sql
from duckdb_anon.rewrite.query.seen_values import Looks
from duckdb_anon.rewrite.query.template import OWN, column, copied, select, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.inverted import CHANNELS, RandomizedPart
from duckdb_anon.rewrite.shapes.released import Model

_SAME_EVERYWHERE = (
    exp.Lambda, exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Connector, exp.Not,
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Is, exp.Neg, exp.Add, exp.Sub, exp.Mul,
    exp.Case, exp.If, exp.Coalesce,
)  # fmt: skip
"""What settings, time and other tables do not change."""


def settle(query: exp.Query, model: Model, looks: Looks) -> None:
    """Put numbers in place of the steps that only channels tell, in place.

    Args:
        query: a rewritten query without low and high.
        model: the release.
        looks: reads it.
    """
    told = {
        told_name(part).this: part.channels
        for part in model.parts
        if isinstance(part, RandomizedPart) and _is_plain(model.release.types.get(part.columns[0], ""))
    }
    found = list(all_of(query, exp.With)) if told else []
    for with_ in reversed(found):  # what is inside may read steps around it
        steps = [cte for cte in with_.expressions if cte.alias in told and _is_settled(cte.this)]
        if not steps:
            continue
        row = looks.row(_asked(steps, told[steps[0].alias], looks.source))
        values = [float(one) for one in row if isinstance(one, (int, float)) and math.isfinite(one)]
        shown = [one for cte in steps for one in cte.this.expressions]
        if len(values) != len(shown):
            continue
        for one, value in zip(shown, values, strict=True):
            one.set("this", tree(_double(value)))
        for cte in steps:
            cte.set("this", exp.Select(expressions=cte.this.expressions))
        if isinstance(with_.parent, exp.Query):
            drop_unread(with_.parent)


def _is_plain(kind: str) -> bool:
    """Whether values of a type compare with others the same under all settings."""
    return is_number(kind) or is_boolean(kind) or kind == "DATE"


def _is_settled(step: exp.Expr) -> bool:
    """Whether a step reads channels and nothing else, with conditions that are the same whenever it runs."""
    tables = {table.name for table in all_of(step, exp.Table)}
    inside = (node for lambda_ in all_of(step, exp.Lambda) for node in lambda_.walk())
    return tables == {CHANNELS.this} and all(isinstance(node, _SAME_EVERYWHERE) for node in inside)


def _asked(steps: list[exp.CTE], channels: str, source: str) -> str:
    """SELECT of all that some steps tell, in one row; in none where no row tells the channels."""
    told = select(
        "select {told} as _rr from {source} where {told} is not null limit 1",
        told=column(channels),
        source=exp.Table(this=exp.Var(this=source)),
    )
    known = exp.CTE(this=told, alias=exp.TableAlias(this=copied(CHANNELS)))
    first, *others = (exp.Table(this=copied(cte.args["alias"].this)) for cte in steps)
    asked = exp.Select(
        expressions=[exp.Star()],
        from_=exp.From(this=first),
        joins=[exp.Join(this=one, kind="CROSS") for one in others],
        with_=exp.With(expressions=[known, *map(copied, steps)]),
    )
    return to_sql(asked, pretty=False).replace(OWN, "_anon_")


def _double(value: float) -> str:
    """A number as DuckDB and Spark read a DOUBLE."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"
