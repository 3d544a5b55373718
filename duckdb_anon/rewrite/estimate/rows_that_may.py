"""Conditions on released rows that the conditions of a query imply, so that rows are left out before they are weighed.

They change no answer: a row that does not satisfy them weighs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from duckdb_anon.rewrite.estimate.expectation import split
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.shapes.intervals import IntervalPart
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
    if rest is None or select.args.get("joins"):
        return found
    boxes = {part.name: part for part in steps.model.parts if isinstance(part, IntervalPart) and part.even}
    for condition in split(rest):
        part = boxes.get(steps.homes.of(condition) or "")
        bare = steps.bare(condition)
        if part is not None and bare is not None:
            found += part.touched(bare)
    return found
