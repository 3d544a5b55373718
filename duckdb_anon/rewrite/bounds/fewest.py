"""The fewest rows that lists of nodes stand for."""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.rewrite.estimate.aggregates import Aggregate, both
from duckdb_anon.rewrite.estimate.expectation import BY_VALUE, EXACT
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.query.template import every, tree
from duckdb_anon.rewrite.query.template import number as literal
from duckdb_anon.rewrite.shapes.parts import filtered
from duckdb_anon.rewrite.shapes.person_lists import ItemPart


def fewest_of_lists(aggregate: Aggregate, where: exp.Expr | None, steps: Steps) -> tuple[exp.Expr, exp.Expr] | None:
    """Fewest rows behind lists of nodes, no most: a node is one row at least, and may be any number of them.

    Only conditions and keys on the listed values are sure: rows of a person may differ in the other columns, of which
    a release may show the first one's.

    Args:
        aggregate: the aggregate.
        where: conditions of the query that are still to be satisfied, None if there are none.
        steps: steps of the rewritten query.
    """
    lists = [part for part in steps.model.parts if isinstance(part, ItemPart)]
    condition = both(where, aggregate.condition)
    asked = steps.homes.columns(condition) | steps.homes.by_value
    weighted = steps.model.weight is not None or not steps.model.complete
    if aggregate.kind != "count" or len(lists) != 1 or weighted or steps.conditions or steps.homes.others:
        return None
    if not asked <= set(lists[0].columns) or (steps.spread and lists[0] not in steps.spread):
        return None
    home = steps.homes.of(condition)
    if home not in (EXACT, BY_VALUE, lists[0].name):
        return None
    if steps.spread:
        rows = steps.column("sum", literal(1))
        there = every([condition, tree("_weight >= 1")])
        return tree("coalesce(sum({rows}) filter (where {there}), 0)", rows=rows, there=there), exp.null()
    of_lists = home == lists[0].name
    fewest = tree("sum({x})", x=steps.fewest(lists[0], condition if of_lists else None))
    return tree("coalesce({n}, 0)", n=fewest if of_lists else filtered(fewest, condition)), exp.null()
