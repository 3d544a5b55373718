"""Queries that are not linear in the rows, run unchanged on plausible tables; `combine` puts the answers together."""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import build_scope

from duckdb_anon.rewrite.query.outputs import _flags
from duckdb_anon.rewrite.query.parse import grounded, is_original
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.walking import all_of, leftmost
from duckdb_anon.rewrite.weighted.combine import combined

DRAWS = 10


def over_draws(tree: exp.Query, drawn: str, tables: Sequence[TableInfo]) -> exp.Query:
    """Write the query that answers from plausible tables.

    Args:
        tree: a bound query over the original.
        drawn: SELECT of `DRAWS` plausible tables, with the original's columns and `draw`.
        tables: the original first, then other tables of the query.
    """
    scope = build_scope(tree)
    measures = _flags(scope) if scope is not None else []
    places = [f"c{i}" for i, _ in enumerate(leftmost(tree).expressions)]
    answers = []
    for draw in range(1, (DRAWS if any(measures) else 1) + 1):
        made = tree.copy()
        for table in all_of(made, exp.Table):
            if is_original(table):
                table.set("this", exp.to_identifier("plausible", quoted=True))
                rows = sqlglot.parse_one(
                    f'select * exclude (draw) from "plausible" where draw = {draw}', dialect="duckdb"
                )
                table.replace(exp.Subquery(this=rows, alias=table.args.get("alias")))
        made = grounded(made, [tables[0], *tables[1:]])
        answers.append(f"select * from ({made.sql('duckdb', comments=False)}) as q({', '.join(places)})")
    return combined(tree, drawn, answers, measures, tables[0])
