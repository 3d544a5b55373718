"""anatomy_qit and anatomy_st: the two tables of Anatomy, read from its release.

The quasi-identifier table has the exact quasi-identifiers and the bucket of each record; the sensitive table has
one row a bucket and value with its count. They give away what the release gives away, no more and no less.
Paper: Xiao, X., Tao, Y. (2006), section 3. Cost: one pass over the release.
"""

from __future__ import annotations

from typing import Any

from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.errors import ColumnError, listed, nearest
from duckdb_anon.model.function_specs import Parameter, Params, Query
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import BUCKET, Contents

_SENSITIVE = Parameter("sensitive", "column of bucket counts (default: the release's MAP columns)", "text")
_PAPER = "Xiao, X., Tao, Y. (2006), Anatomy, section 3"


def _counted(function: str, relation: Any, contents: Contents, given: str | None) -> tuple[str, list[str]]:
    """The bucket and the MAP columns of a release."""
    columns = relation.columns
    maps = [content.carrier for content in contents.columns.values() if content.cell == "counts"]
    if not columns and given is not None:
        return BUCKET.word, [given]
    if given is not None:
        spelled = {fold(name): name for name in columns}
        if fold(given) not in spelled:
            raise ColumnError(
                f"{function}: there is no column '{given}' in {relation.given}{nearest(given, columns)}; its MAP "
                f"columns are {listed(maps) or 'none'}"
            )
        maps = [spelled[fold(given)]]
    if not maps or not contents.bucket:
        raise ColumnError(
            f"{function}: {relation.given} has no column '{BUCKET.word}' and a MAP column that the planner can see; "
            "give a release made by anatomy, and for a temporary table name the column: sensitive := '...'"
        )
    return contents.bucket, maps


def _qit(context: Any, params: Params) -> str:
    release = context.relation("release")
    _, maps = _counted("anatomy_qit", release, context.contents(release), params["sensitive"])
    return f"select * exclude ({', '.join(ident(name) for name in maps)}) from {release.sql}"


def _st(context: Any, params: Params) -> str:
    release = context.relation("release")
    bucket, names = _counted("anatomy_st", release, context.contents(release), params["sensitive"])
    if len(names) > 1:
        raise ColumnError(f"anatomy_st: {release.given} has several MAP columns, {listed(names)}; say sensitive := one")
    key, name = ident(bucket), ident(names[0])
    return (
        f"with _anon_bucket as (select {key}, any_value({name}) as _m from {release.sql} group by {key}) "
        f'select {key}, unnest(map_keys(_m)) as {name}, unnest(map_values(_m)) as "count" from _anon_bucket'
    )


QIT = Query(
    name="anatomy_qit",
    summary="the quasi-identifier table of an Anatomy release: exact values and the bucket of each row",
    paper=_PAPER,
    example="FROM anatomy_qit('buckets')",
    section="Help",
    parameters=(_SENSITIVE,),
    plan=_qit,
    answers=("buckets",),
    tables=("release",),
)
ST = Query(
    name="anatomy_st",
    summary="the sensitive table of an Anatomy release: bucket, value, count",
    paper=_PAPER,
    example="FROM anatomy_st('buckets')",
    section="Help",
    parameters=(_SENSITIVE,),
    plan=_st,
    answers=("buckets",),
    tables=("release",),
)
