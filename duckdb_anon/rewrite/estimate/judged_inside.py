"""Conditions of the final query that are judged where the values of a part are listed, before these meet any row.

What remains of a part then are the columns that the final query still reads, and fewer different values of them.
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.query.walking import all_of, columns_of
from duckdb_anon.rewrite.shapes.slices import SlicePart


def judge_inside(select: exp.Select, by_value: list[exp.Expr], steps: Steps) -> list[exp.Expr]:
    """Hand conditions on values to the steps that list them; returns those that remain the final query's.

    Args:
        select: the query.
        by_value: its conditions on columns that are spelled out by value.
        steps: its named steps.
    """
    if select.args.get("joins") or steps.membership is not None:
        return by_value  # rows of another table may be kept without a partner; bounds mark values that fail
    tallied = [
        part for part in steps.joined if isinstance(part, SlicePart) and part.shows(steps.shown & set(part.columns))
    ]
    left = []
    for condition in by_value:
        asked = columns_of(condition, steps.homes.alias)
        part = next((one for one in tallied if asked and asked <= set(one.columns)), None)
        bare = steps.bare(condition)
        assert bare is not None  # noqa: S101 -- only of no condition
        if part is None or any(one.table for one in all_of(bare, exp.Column)) or condition.find(exp.Query):
            left.append(condition)
        else:
            steps.inside.setdefault(part.name, []).append(bare)
    return left
