"""Conditions on released rows that the conditions of a query imply, so that rows are left out before they are weighed.

They change no answer: a row that does not satisfy them weighs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from duckdb_anon.rewrite.estimate.expectation import split
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.intervals import IntervalPart
from duckdb_anon.rewrite.shapes.kind_counts import KindPart
from duckdb_anon.rewrite.shapes.own_counts import OwnCountsPart


def rows_that_may(
    select: exp.Select, rest: exp.Expr | None, by_value: Sequence[exp.Expr], steps: Steps
) -> list[exp.Expr]:
    """The conditions, over a row of the release.

    Args:
        select: the query.
        rest: its conditions that rows answer in part; None without any.
        by_value: its conditions on columns spelled out by value.
        steps: its named steps, of which all is asked.
    """
    counts = [part for part in steps.model.parts if isinstance(part, OwnCountsPart)]
    listed = [part.there(condition) for part in counts for condition in by_value]
    found = [one for one in listed if one is not None]
    found += _kinds_that_may(select, by_value, steps)
    if rest is None or select.args.get("joins"):
        return found
    boxes = {part.name: part for part in steps.model.parts if isinstance(part, IntervalPart) and part.even}
    for condition in split(rest):
        part = boxes.get(steps.homes.of(condition) or "")
        bare = steps.bare(condition)
        if part is not None and bare is not None:
            found += part.touched(bare)
    return found


_ASKED_TWICE = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Neg, exp.Null, exp.Boolean, exp.Tuple, exp.Escape),
    *(exp.Predicate, exp.Connector, exp.Not),
)
"""Conditions made of these alone are the same each time they are asked, and fail on no value."""


def _kinds_that_may(select: exp.Select, by_value: Sequence[exp.Expr], steps: Steps) -> list[exp.Expr]:
    """Rows of those kinds of buckets that have a value which satisfies each condition."""
    kinds = [part for part in steps.spread if isinstance(part, KindPart)]
    if select.args.get("joins") or steps.membership is not None:
        return []
    return [
        part.there(bare)
        for part in kinds
        for condition in by_value
        if steps.homes.columns(condition) <= set(part.columns)
        and all(isinstance(node, _ASKED_TWICE) for node in condition.walk())
        and all(column.table == steps.homes.alias for column in all_of(condition, exp.Column))
        and (bare := steps.bare(condition)) is not None
    ]
