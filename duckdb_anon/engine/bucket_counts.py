"""Whether every row of a release carries the counts of all rows of its bucket, so that none is grouped to read them."""

from __future__ import annotations

import duckdb

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.column_roles import is_described
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_comment import read_description
from duckdb_anon.model.release_formats.duckdb_types import bag_type, is_integer


def counts_on_every_row(catalog: Catalog, release: Relation, bucket: str, certain: bool) -> bool:
    """Whether every row of a release carries the counts of all rows of its bucket.

    Anatomy writes them so, and the release's description says that it was made by it; rows whose counts were taken away
    since are looked for. Without a description, and before anything is certain, all counts are added up and compared
    with the rows.

    Args:
        catalog: what the planner can see.
        release: the release.
        bucket: its column that tells buckets apart; '' where there is none.
        certain: whether something will be stated for certain.
    """
    maps = [ident(name) for name, kind in release.columns.items() if bag_type(kind) is not None]
    description = read_description(release.comment)
    table = release.full or release.sql
    if maps and description is not None and description.method == "anatomy" and not certain:
        asked = f"select 1 from {table} where {' or '.join(f'{one} is null' for one in maps)} limit 1"
    elif is_integer(release.columns.get(bucket, "")) and len(maps) == 1 and (certain or not is_described(release)):
        counts = f"list_sum(map_values({maps[0]})) as s, list_min(map_values({maps[0]})) as l, hash({maps[0]}) as h"
        asked = (
            f"select 1 from (select {ident(bucket)} as b, {counts} from {table}) group by b having min(l) <= 0 "
            "or count(s) <> count(*) or min(s) <> count(*) or max(s) <> count(*) or min(h) <> max(h) limit 1"
        )
    else:
        return False
    cursor = catalog.cursor_for([release])
    try:
        return cursor is not None and not cursor.execute(asked).fetchall()
    except duckdb.Error:
        tick()  # an interrupt is none of these
        return False
