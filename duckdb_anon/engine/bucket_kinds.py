"""Whether the numbers of a release's buckets tell their kinds: looked at when it is written, and when it is read.

`model.kinds` says what such numbers are. Who writes a release looks at every bucket and row, and says in the comment of
the numbers what was found. Who reads one believes the comment where the table still has as many rows, of the same
numbers, which is as long to ask as to count the rows. What is stated for certain takes more than that: that all rows
of a kind show the same counts, and that those are as many as each of its buckets has rows, is looked at again. So it is
of a release without a description, as one by CREATE TABLE AS: without kinds each query takes several times as long.

What is looked at here is what is committed, and the table may be another one when the query runs: a text with bounds
looks for itself (`rewrite.shapes.kind_counts`), and where the kinds did not hold here, it reads each bucket instead.

Cost: of writing, of asking for certain, and of releases without a description, a GROUP BY of the rows by bucket.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.column_roles import is_described
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.function_specs import ColumnPlan
from duckdb_anon.model.kinds import BELOW, LEAST_BUCKETS, Kinds, read_kinds
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_formats import BUCKET
from duckdb_anon.model.release_formats.duckdb_types import bag_type, is_integer
from duckdb_anon.model.released_columns import Counts

_MISCOUNTED = "coalesce(list_sum(map_values(_anon_m)) <> _anon_rows or list_min(map_values(_anon_m)) <= 0, true)"


def kinds_comment(con: duckdb.DuckDBPyConnection, table: str, layout: Sequence[ColumnPlan]) -> dict[str, str]:
    """The comment of the numbers of buckets in a release that was just made, by column; empty where they tell no kinds.

    Args:
        con: the connection that made it.
        table: the release, as SQL writes it.
        layout: its columns, as planned.
    """
    numbers = [place for place, plan in enumerate(layout) if plan.name == BUCKET.key]
    counted = [place for place, plan in enumerate(layout) if plan.cells is Counts]
    if not numbers or len(counted) != 1:
        return {}
    names = [row[0] for row in con.execute(f"describe from {table}").fetchall()]
    bucket, counts = ident(names[numbers[0]]), ident(names[counted[0]])
    found = looked_at(con, table, bucket, counts)
    return {} if found is None else {names[numbers[0]]: found.comment(bucket)}


def bucket_of_kinds(catalog: Catalog, release: Relation, bucket: str, certain: bool) -> str:
    """The column of a release whose numbers of buckets tell their kinds; '' where there is none.

    Args:
        catalog: what the planner can see.
        release: the release.
        bucket: its column that tells buckets apart; '' where there is none.
        certain: whether something will be stated for certain.
    """
    said: dict[str, Kinds | None] = {
        name: kinds for name, text in release.comments.items() if (kinds := read_kinds(text)) is not None
    }
    if not said and not is_described(release):
        said = {bucket: None}
    maps = [name for name, kind in release.columns.items() if bag_type(kind) is not None]
    if len(maps) != 1 or list(said) != [bucket] or not is_integer(release.columns.get(bucket, "")):
        return ""
    ((name, kinds),) = said.items()
    cursor = catalog.cursor_for([release])
    where = release.full or release.sql, ident(name), ident(maps[0])
    try:
        tells = cursor is not None and _tells(cursor, where, kinds, certain)
    except duckdb.Error:
        tick()  # an interrupt is none of these
        return ""  # what the planner cannot read is read as if nothing were said
    return name if tells else ""


def _tells(con: duckdb.DuckDBPyConnection, where: tuple[str, str, str], kinds: Kinds | None, certain: bool) -> bool:
    """Whether numbers of buckets tell kinds as a comment says, or without one as every row shows.

    Args:
        con: a connection.
        where: the release, its numbers of buckets and its counts, as SQL writes them.
        kinds: what the comment says; None without.
        certain: whether something will be stated for certain.
    """
    table, bucket, _ = where
    if kinds is not None and certain:
        return looked_at(con, *where) == kinds
    if kinds is not None:
        first = f"select count(*) from ({_first(*where)}) where {_MISCOUNTED}"
        found = con.execute(f"select count(*), sum({bucket}), ({first}) from {table}").fetchone()
        return found == (kinds.rows, kinds.total, 0)
    last = BELOW - 1
    # numbers that were counted on miss one of these, which takes a tenth of looking at all rows
    may = con.execute(
        f"select max({bucket}) > {last} and min({bucket}) > 0 and min({bucket} & {last}) > 0 and "
        f"max({bucket} & {last}) <= max({bucket}) filter (where {bucket} <= {last}) from {table}"
    ).fetchone()
    return may == (True,) and looked_at(con, *where) is not None


def looked_at(con: duckdb.DuckDBPyConnection, table: str, bucket: str, counts: str) -> Kinds | None:
    """What holds of every row: None unless all of a kind are like its first bucket, and kinds are few.

    Args:
        con: a connection.
        table: the release, as SQL writes it.
        bucket: its column of numbers of buckets, as SQL writes it.
        counts: its column of counts, as SQL writes it.
    """
    found = con.execute(
        f"with _anon_buckets as (select {bucket} as _anon_b, count(*) as _anon_n from {table} group by all), "
        f"_anon_kinds as materialized ({_first(table, bucket, counts)}) "
        f"select (select count(*) from {table}), (select sum({bucket}) from {table}), "
        "(select count(*) from _anon_kinds), (select count(*) from _anon_buckets), "
        f"(select count(*) from _anon_buckets left join _anon_kinds on _anon_b & {BELOW - 1} = _anon_k "
        f"where _anon_b is null or _anon_b < 0 or _anon_k is null or _anon_n <> _anon_rows or {_MISCOUNTED}), "
        f"(select count(*) from {table} join _anon_kinds on {bucket} & {BELOW - 1} = _anon_k "
        f"where {counts} is distinct from _anon_m)"
    ).fetchone()
    if found is None:
        return None
    rows, total, kinds, buckets, other_buckets, other_rows = found
    if not rows or other_buckets or other_rows or kinds * LEAST_BUCKETS > buckets:
        return None
    return Kinds(int(rows), int(total))


def _first(table: str, bucket: str, counts: str) -> str:
    """SELECT of the kinds as their first buckets show them: number, counts, and rows of a bucket."""
    return (
        f"select {bucket} as _anon_k, any_value({counts}) as _anon_m, count(*) as _anon_rows from {table} "
        f"where {bucket} between 1 and {BELOW - 1} group by all"
    )
