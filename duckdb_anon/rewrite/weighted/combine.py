"""The answers that one query has on several plausible tables, put together.

Numbers are the mean of the answers, other measures the most frequent one; a group is left out where fewer than half of
the draws have it. The spread over draws is no interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.walking import all_of, leftmost
from duckdb_anon.rewrite.weighted.factors import quoted

_NUMBERS = (
    *(exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop),
    *(exp.StddevSamp, exp.CovarPop, exp.CovarSamp, exp.Corr, exp.ApproxDistinct, exp.RegrSlope, exp.RegrIntercept),
)


def combined(
    tree: exp.Query, drawn: str, answers: Sequence[str], measures: Sequence[bool], original: TableInfo
) -> exp.Query:
    """Write the query that puts answers together.

    Args:
        tree: the query, as it was bound.
        drawn: SELECT of the plausible tables, which the answers read as `plausible`.
        answers: the query on each draw, with columns c0, c1, ...
        measures: whether each column of the query is a measure.
        original: the original, of whose types a measure may be.
    """
    outputs = leftmost(tree).expressions
    names = [one.alias_or_name for one in outputs]
    numeric = {fold(name): is_number(kind) for name, kind in original.columns}
    draws = len(answers)
    shown, keys = [], []
    for i, (name, measure, output) in enumerate(zip(names, measures, outputs, strict=True)):
        together = "avg" if _is_number(output, numeric) else "mode"
        keys += [] if measure else [f"c{i}"]
        shown.append(f"{f'{together}(c{i})' if measure and draws > 1 else f'c{i}'} as {quoted(name)}")
    text = f"""
        with plausible as materialized ({drawn}), answers as ({" union all ".join(answers)})
        select {", ".join(shown)} from answers"""
    if draws > 1 and keys:
        text += f" group by {', '.join(keys)} having count(*) >= {draws / 2:g}"
    answer = sqlglot.parse_one(text, dialect="duckdb")
    assert isinstance(answer, exp.Query)  # noqa: S101 -- a SELECT
    _order(tree, answer, names)
    return answer


def _order(tree: exp.Query, made: exp.Query, names: Sequence[str]) -> None:
    """ORDER BY and LIMIT of the query hold of the answers put together, where they name output columns."""
    order = tree.args.get("order")
    outputs = {one.unalias(): one.alias_or_name for one in leftmost(tree).expressions}
    terms = []
    for term in order.expressions if order is not None else []:
        name = (
            term.this.name if isinstance(term.this, exp.Column) and term.this.name in names else outputs.get(term.this)
        )
        if name is None:
            break
        kept = term.copy()
        kept.set("this", exp.column(name, quoted=True))
        terms.append(kept)
    if terms:
        made.set("order", exp.Order(expressions=terms))
    if tree.args.get("limit") is not None:
        made.set("limit", tree.args["limit"].copy())


def _is_number(node: exp.Expr, numeric: dict[str, bool]) -> bool:
    """Whether a measure is a number of which a mean makes sense."""
    node = node.unalias()
    if isinstance(node, (exp.Filter, exp.Paren, exp.Round, exp.Window)):
        return _is_number(node.this, numeric)
    if isinstance(node, _NUMBERS) or isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Literal)):
        return True
    if isinstance(node, (exp.Mode, exp.Predicate, exp.Boolean)):
        return False
    columns = all_of(node, exp.Column)
    return bool(columns) and all(numeric.get(fold(one.name), False) for one in columns)
