"""The output columns of a query: what they are called, which are keys and which are measures.

A measure is a column computed by an aggregate, in the query itself or in a subquery it reads; every other
column is a key that tells the rows apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, build_scope

from duckdb_anon.rewrite.query.refusals import has_aggregate
from duckdb_anon.rewrite.query.result_names import ResultNames
from duckdb_anon.rewrite.query.walking import all_of, leftmost


@dataclass(frozen=True)
class Output:
    """One output column.

    Attributes:
        name: what the result of the query calls it.
        measure: whether an aggregate computes it.
        additive: whether no matching row means 0 (COUNT and SUM) rather than unknown.
    """

    name: str
    measure: bool
    additive: bool


def outputs(written: ResultNames, bound: exp.Query) -> tuple[Output, ...]:
    """Describe the output columns of a query.

    Args:
        written: the names of the query as it was written.
        bound: the same query after binding, for what the columns are made of.
    """
    final = leftmost(bound).expressions
    names = written.of([e.alias_or_name for e in final])
    scope = build_scope(bound)
    flags = measure_flags(scope) if scope is not None else [False] * len(names)
    made_of = [e.unalias() for e in final]
    return tuple(
        Output(name, flag, isinstance(_aggregate(e), (exp.Count, exp.Sum, exp.CountIf)))
        for name, flag, e in zip(names, flags, made_of, strict=True)
    )


def measure_flags(scope: Scope) -> list[bool]:
    """Whether an aggregate computes each output column of a query."""
    if scope.set_operation_scopes:
        left, right = (measure_flags(part) for part in scope.set_operation_scopes[:2])
        return [a or b for a, b in zip(left, right, strict=False)]
    if not isinstance(scope.expression, exp.Select):
        return []
    inner: dict[str, dict[str, bool]] = {}
    for name, source in scope.sources.items():
        if isinstance(source, Scope) and isinstance(source.expression, exp.Query):
            columns = source.expression.named_selects
            inner[name] = dict(zip(columns, measure_flags(source), strict=False))
    return [_is_measure(e, inner) for e in scope.expression.expressions]


def _is_measure(projection: exp.Expr, inner: dict[str, dict[str, bool]]) -> bool:
    if projection.find(exp.Query) is not None or has_aggregate(projection):
        return True
    columns = all_of(projection, exp.Column)
    return any(inner.get(column.table, {}).get(column.name, False) for column in columns)


def _aggregate(projection: exp.Expr) -> exp.Expr:
    return projection.this if isinstance(projection, exp.Filter) else projection
