"""Queries that are not linear in the rows, run unchanged on plausible tables; `combine` puts the answers together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import build_scope

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.combine import DrawQuery, combined
from duckdb_anon.rewrite.query.outputs import measure_flags
from duckdb_anon.rewrite.query.parse import grounded
from duckdb_anon.rewrite.query.tables import PlausibleTables, TableInfo, contents_of
from duckdb_anon.rewrite.query.trees import all_of, is_original, leftmost, quoted


def over_draws(
    tree: exp.Query,
    drawn: Callable[[Sequence[str]], PlausibleTables],
    release: TableInfo,
    tables: Sequence[TableInfo],
) -> exp.Query:
    """Write the query that answers from plausible tables.

    Args:
        tree: a bound query over the original.
        drawn: gives plausible tables with some of the original's columns.
        release: the release they are of.
        tables: the original first, then other tables of the query.
    """
    _require_told_apart(tree, release, tables[0])
    scope = build_scope(tree)
    flags = measure_flags(scope) if scope is not None else []
    outputs = leftmost(tree).expressions
    measures = [flag and not isinstance(one.unalias(), exp.Grouping) for flag, one in zip(flags, outputs, strict=True)]
    read = {fold(column.name) for column in all_of(tree, exp.Column)}
    names = [name for name, _ in tables[0].columns]
    plausible = drawn([name for name in names if fold(name) in read] or names[:1])
    if not any(measures):
        return _on_draw(tree, f"({plausible.sql})", plausible.number, 1, tables)
    query = DrawQuery.of(tree, measures)
    places = ", ".join(f"c{i}" for i, _ in enumerate(query.measures))
    answers = [
        f"select * from ({made.sql('duckdb', comments=False)}) as q({places})"
        for draw in range(1, plausible.draws + 1)
        for made in [_on_draw(query.tree, '"plausible"', plausible.number, draw, tables)]
    ]
    return combined(query, plausible.sql, answers, tables)


def _require_told_apart(tree: exp.Query, release: TableInfo, original: TableInfo) -> None:
    """Refuse to show or compare the names of persons: plausible persons have none."""
    names = {fold(name) for name, role in original.roles.items() if role == "person"}
    names -= contents_of(release, original).columns.keys()
    for one in [one for one in all_of(tree, exp.Column) if fold(one.name) in names]:
        above = one.parent
        if isinstance(above, exp.EQ):
            sides = (above.this, above.expression)
            counted = all(isinstance(side, exp.Column) and fold(side.name) in names for side in sides)
        elif isinstance(above, (exp.Alias, exp.Select)):
            counted = one.parent_select is not leftmost(tree)
        elif isinstance(above, exp.Window):
            counted = one.arg_key == "partition_by"
        else:
            counted = isinstance(above, (exp.Group, exp.Distinct, exp.Count, exp.Paren))
        if not counted:
            raise RewriteError(
                f"column '{one.name}' is not in the release {release.name}: persons can be counted, "
                f"count(DISTINCT {one.name}), and a nested query can group by them; their names cannot be shown or "
                "compared"
            )


def _on_draw(tree: exp.Query, source: str, number: str, draw: int, tables: Sequence[TableInfo]) -> exp.Query:
    """The query over one of the tables."""
    made = tree.copy()
    for table in all_of(made, exp.Table):
        if is_original(table):
            text = f"select * exclude ({quoted(number)}) from {source} where {quoted(number)} = {draw}"
            rows = sqlglot.parse_one(text, dialect="duckdb")
            table.replace(exp.Subquery(this=rows, alias=table.args.get("alias")))
    return grounded(made, tables)


def prefers_draws(tree: exp.Query, release: TableInfo, original: TableInfo) -> bool:
    """Whether a query is about how permuted values of buckets or slices go together with other columns.

    A closed form takes them for independent inside each bucket; plausible tables arrange them by what all buckets say.
    """
    contents = contents_of(release, original)
    read = {fold(column.name) for column in all_of(tree, exp.Column)} & contents.columns.keys()
    carriers = {contents.columns[name].carrier for name in read}
    return len(carriers) > 1 and any(contents.columns[name].truth == "permuted" for name in read)
