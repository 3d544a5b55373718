"""Queries that are not linear in the rows, asked unchanged of plausible tables, and the answers put together.

The query runs on each of m drawn tables (`impute`). Numbers are the mean of the answers, other measures the most
frequent one; a group is left out where fewer than half of the draws have it. The spread over draws is no interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import build_scope

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.rewrite.query.outputs import _flags
from duckdb_anon.rewrite.query.parse import grounded, is_original
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.walking import all_of, leftmost
from duckdb_anon.rewrite.weighted.factors import quoted

DRAWS = 10
_NUMBERS = (
    *(exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop),
    *(exp.StddevSamp, exp.CovarPop, exp.CovarSamp, exp.Corr, exp.ApproxDistinct, exp.RegrSlope, exp.RegrIntercept),
)


def over_draws(tree: exp.Query, drawn: str, tables: Sequence[TableInfo]) -> exp.Query:
    """Write the query that answers from plausible tables.

    Args:
        tree: a bound query over the original.
        drawn: SELECT of `DRAWS` plausible tables, with the original's columns and `draw`.
        tables: the original first, then other tables of the query.
    """
    scope = build_scope(tree)
    flags = _flags(scope) if scope is not None else []
    outputs = leftmost(tree).expressions
    names = [one.alias_or_name for one in outputs]
    draws = DRAWS if any(flags) else 1
    places = [f"c{i}" for i, _ in enumerate(names)]
    asked = []
    for draw in range(1, draws + 1):
        made = tree.copy()
        for table in all_of(made, exp.Table):
            if is_original(table):
                table.set("this", exp.to_identifier("plausible", quoted=True))
                rows = sqlglot.parse_one(
                    f'select * exclude (draw) from "plausible" where draw = {draw}', dialect="duckdb"
                )
                table.replace(exp.Subquery(this=rows, alias=table.args.get("alias")))
        made = grounded(made, [tables[0], *tables[1:]])
        asked.append(f"select * from ({made.sql('duckdb', comments=False)}) as q({', '.join(places)})")
    numeric = {fold(name): is_number(kind) for name, kind in tables[0].columns}
    shown, keys = [], []
    for place, name, flag, one in zip(places, names, flags, outputs, strict=True):
        together = "avg" if _is_number(one, numeric) else "mode"
        keys += [place] if not flag else []
        shown.append(f"{place if not flag or draws == 1 else f'{together}({place})'} as {quoted(name)}")
    answers = " union all ".join(asked)
    text = f"""
        with plausible as materialized ({drawn}), answers as ({answers})
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
