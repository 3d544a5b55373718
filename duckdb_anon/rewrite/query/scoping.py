"""Which step of a WITH a table of a query means: a step hides tables of its name where it is visible.

    WITH people AS (SELECT * FROM people WHERE sex = 'f') SELECT count(*) FROM people

The first `people` after FROM is the table, the second one the step.
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold


def step_of(table: exp.Table) -> exp.CTE | None:
    """The step of a WITH that a table of a query means; None for a table of the database.

    A step is visible in those after it, in the query its WITH begins, and in itself only if the WITH is RECURSIVE; the
    innermost one counts. Cost: the way from the table to the query.

    Args:
        table: a table of a parsed query.

    >>> from sqlglot import parse_one
    >>> query = parse_one("WITH t AS (SELECT a FROM t) SELECT a FROM t", "duckdb")
    >>> [step_of(one) is not None for one in query.find_all(exp.Table)]
    [True, False]
    """
    if table.db or not isinstance(table.this, exp.Identifier):
        return None
    name = fold(table.name)
    below: exp.Expr = table
    step: exp.Expr | None = None
    while below.parent is not None:
        around = below.parent
        if isinstance(around, exp.With):
            step = below
        else:
            found = _visible(around, name, step if isinstance(step, exp.CTE) else None)
            if found is not None:
                return found
            step = None
        below = around
    return None


def _visible(query: exp.Expr, name: str, inside: exp.CTE | None) -> exp.CTE | None:
    """The step of this name in a query's own WITH, seen from its body or from inside one of the steps."""
    with_ = query.args.get("with_")
    if with_ is None:
        return None
    found: exp.CTE | None = None
    for step in with_.expressions:
        if step is inside and not with_.args.get("recursive"):
            break
        if fold(step.alias) == name:
            found = step
        if step is inside:
            break
    return found
