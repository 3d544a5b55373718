"""What SUM and AVG add up, as numbers: an estimate weighs each value with the chance of its row.

    SELECT sum(smoker), sum(age > 30) FROM t
    SELECT sum(smoker::integer), sum((age > 30)::integer) FROM t

A moment times a chance is no moment: means of dates, and sums of intervals, are refused by name. So is an order among
the arguments that means something, which an estimate does not have.
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_boolean, is_moment, is_timestamp
from duckdb_anon.rewrite.query.aggregate_nodes import aggregate_nodes
from duckdb_anon.rewrite.query.parse import plain
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.template import tree
from duckdb_anon.rewrite.shapes.intervals import IntervalPart
from duckdb_anon.rewrite.shapes.released import Model


def add_numbers(select: exp.Select, original: TableInfo, model: Model) -> None:
    """Let SUM and AVG of a bound SELECT read numbers, in place.

    Args:
        select: reads the original, and more than columns that are as they were.
        original: its columns' types.
        model: what the release says; means of intervals are refused where they are read.

    Raises:
        RewriteError: for a mean of moments, and for ORDER BY among an aggregate's arguments.
    """
    boxed = {column for part in model.parts if isinstance(part, IntervalPart) for column in part.columns}

    def kind_of(node: exp.Expr) -> str:
        return original.types.get(fold(node.name), "").upper() if isinstance(node, exp.Column) else ""

    for node in [one for place in aggregate_nodes(select) for one in place.walk()]:
        if isinstance(node, exp.AggFunc) and isinstance(node.this, exp.Order):
            raise RewriteError(f"{plain(node)} cannot be estimated from the release; leave its ORDER BY out")
        if not isinstance(node, (exp.Sum, exp.Avg)):
            continue
        value = node.this.unnest()
        kind = kind_of(value)
        if isinstance(value, (exp.Add, exp.Sub)) and any(
            is_timestamp(kind_of(side.unnest())) for side in (value.left, value.right)
        ):
            kind = "INTERVAL"  # as the difference of two moments is
        if (is_moment(kind) and fold(value.name) not in boxed) or kind == "INTERVAL":
            raise RewriteError(
                f"{plain(node)} of {kind} cannot be estimated from the release; ask for counts, or for min, max or "
                "median of dates"
            )
        if is_boolean(kind) or isinstance(value, (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)):
            value.replace(tree("{x}::integer", x=value))
