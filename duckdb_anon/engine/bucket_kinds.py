"""Whether the numbers of a release's buckets tell their kinds: looked at when it is written, and when it is read.

`model.kinds` says what such numbers are. Who writes a release looks at every bucket and row, and says in the comment of
the numbers what was found. Who reads one believes the comment where the table still has as many rows, of the same
numbers, which is as long to ask as to count the rows. What is stated for certain takes more than that: that all rows
of a kind show the same counts, and that those are as many as each of its buckets has rows, is looked at again. So it is
for estimates from a release without a description, as one by CREATE TABLE AS: without it each query takes several times
as long. Nothing is certain there, for what is looked at is what is committed, and the table may be another one when the
query runs.

Cost: of writing, of asking for certain, and of releases without a description, a GROUP BY of the rows by bucket.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.quoting import ident
from duckdb_anon.model.cells import Counts
from duckdb_anon.model.description import read_description
from duckdb_anon.model.entries import ColumnPlan
from duckdb_anon.model.kinds import BELOW, LEAST_BUCKETS, Kinds, read_kinds
from duckdb_anon.model.progress import tick
from duckdb_anon.model.shapes import BUCKET
from duckdb_anon.model.shapes.types import bag_type, is_integer

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


def bucket_of_kinds(catalog: Catalog, release: Relation, certain: bool) -> str:
    """The column of a release whose numbers of buckets tell their kinds; '' where there is none.

    Args:
        catalog: what the planner can see.
        release: the release.
        certain: whether something will be stated for certain.
    """
    said = {name: kinds for name, text in release.comments.items() if (kinds := read_kinds(text)) is not None}
    maps = [name for name, kind in release.columns.items() if bag_type(kind) is not None]
    if len(maps) == 1 and not said and not certain and says_nothing(release):
        return _found(catalog, release, ident(maps[0]))
    if len(said) != 1 or len(maps) != 1 or catalog.cursor is None:
        return ""
    ((name, kinds),), counts = said.items(), ident(maps[0])
    sql = (
        f"select count(*), sum({ident(name)}), (select count(*) from ({_first(release.sql, ident(name), counts)}) "
        f"where {_MISCOUNTED}) from {release.sql}"
    )
    try:
        if certain:
            agrees = looked_at(catalog.cursor, release.sql, ident(name), counts) == kinds
        else:
            agrees = catalog.cursor.execute(sql).fetchone() == (kinds.rows, kinds.total, 0)
    except duckdb.Error:
        tick()  # an interrupt is none of these
        return ""  # what the planner cannot read is read as if nothing were said
    return name if agrees else ""


def says_nothing(release: Relation) -> bool:
    """Whether a release has no description, so that its rows alone tell how to read it."""
    return read_description(release.comment) is None


def number_of_bucket(release: Relation) -> str:
    """The column with the numbers of a release's buckets; empty where there is none.

    Args:
        release: the release.
    """
    # beside a column of the original that is called so, it has one underscore more
    named = max((name for name in release.columns if BUCKET.stands_for(name)), key=len, default="")
    return named if named and is_integer(release.columns[named]) else ""


def _found(catalog: Catalog, release: Relation, counts: str) -> str:
    """The column whose numbers tell the kinds of buckets, as every row of a release that says nothing shows."""
    name = number_of_bucket(release)
    cursor = catalog.cursor_for([release]) if name else None
    if cursor is None:
        return ""
    bucket, last, table = ident(name), BELOW - 1, release.full or release.sql
    may_be = (
        f"select max({bucket}) > {last} and min({bucket}) > 0 and min({bucket} & {last}) > 0 and "
        f"max({bucket} & {last}) <= max({bucket}) filter (where {bucket} <= {last}) from {table}"
    )
    try:
        # numbers that were counted on miss one of these, which takes a tenth of looking at all rows
        tells = cursor.execute(may_be).fetchone() == (True,)
        return name if tells and looked_at(cursor, table, bucket, counts) is not None else ""
    except duckdb.Error:
        tick()  # an interrupt is none of these
        return ""


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
