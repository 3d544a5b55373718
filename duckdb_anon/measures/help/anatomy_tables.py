"""anatomy_qit and anatomy_st: the two tables of Anatomy, read from its release.

The quasi-identifier table has the exact quasi-identifiers and the bucket of each record; the sensitive table has
one row a bucket and value with its count. They give away what the release gives away, no more and no less.
Paper: Xiao, X., Tao, Y. (2006), section 3. Cost: one pass over the release.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from duckdb_anon.engine.sql_quoting import ident, idents
from duckdb_anon.model.errors import ColumnError, listed, nearest
from duckdb_anon.model.function_specs import Parameter, Params, Query
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import BUCKET


def _counted(context: Any, given: str | None) -> tuple[Any, str, list[str]]:
    """A release, its bucket and its MAP columns."""
    relation = context.relation("release")
    contents, columns = context.contents(relation), relation.columns
    if not columns and given is not None:
        return relation, BUCKET.word, [given]
    maps = [content.carrier for content in contents.columns.values() if content.cell == "counts"]
    if given is not None:
        spelled = {fold(name): name for name in columns}
        if fold(given) not in spelled:
            raise ColumnError(
                f"there is no column '{given}' in {relation.given}{nearest(given, columns)}; its MAP columns are "
                f"{listed(maps) or 'none'}"
            )
        maps = [spelled[fold(given)]]
    if not maps or not contents.bucket:
        raise ColumnError(
            f"{relation.given} has no column '{BUCKET.word}' and a MAP column that the planner can see; "
            "give a release made by anatomy, and for a temporary table name the column: sensitive := '...'"
        )
    return relation, contents.bucket, maps


_of_anatomy = partial(
    Query, paper="Xiao, X., Tao, Y. (2006), Anatomy, section 3", section="Help", answers=("buckets",),
    tables=("release",),
    parameters=(Parameter("sensitive", "column of bucket counts (default: the release's MAP columns)", "text"),),
)  # fmt: skip


@_of_anatomy(
    summary="the quasi-identifier table of an Anatomy release: exact values and the bucket of each row",
    example="FROM anatomy_qit('buckets')",
)
def anatomy_qit(context: Any, params: Params) -> str:
    """Exact values and bucket of each row."""
    release, _, maps = _counted(context, params["sensitive"])
    return f"select * exclude ({idents(maps)}) from {release.sql}"


@_of_anatomy(
    summary="the sensitive table of an Anatomy release: bucket, value, count",
    example="FROM anatomy_st('buckets')",
)
def anatomy_st(context: Any, params: Params) -> str:
    """One row a bucket and value."""
    release, bucket, names = _counted(context, params["sensitive"])
    if len(names) > 1:
        raise ColumnError(f"{release.given} has several MAP columns, {listed(names)}; say sensitive := one")
    key, name = ident(bucket), ident(names[0])
    return (
        f'select {key}, unnest(map_keys(_m)) as {name}, unnest(map_values(_m)) as "count" '
        f"from (select {key}, any_value({name}) as _m from {release.sql} group by {key})"
    )
