"""Whether a table that is to be made would have another one's name."""

from __future__ import annotations

import duckdb

from duckdb_anon.engine.catalog_rows import names_of
from duckdb_anon.model.identifier_case import fold

_THERE = """
select name, database_name, schema_name, current_database(), current_schema()
from (select database_name, schema_name, table_name as name from duckdb_tables()
  union all select database_name, schema_name, view_name from duckdb_views())
where lower(name) = lower($1)"""


def is_taken(con: duckdb.DuckDBPyConnection, target: str) -> bool:
    """Whether there is a table or view where a name points; a temporary table hides what is called as it is.

    Args:
        con: the connection that would make it.
        target: the name, as SQL writes it, perhaps with a database and a schema.

    >>> con = duckdb.connect()
    >>> _ = con.execute("attach ':memory:' as other; create table other.t as select 1 as x")
    >>> is_taken(con, "t"), is_taken(con, "other.T"), is_taken(con, "other.main.u")
    (False, True, False)
    """
    *places, name = names_of(target)
    for row in con.execute(_THERE, [name]).fetchall():
        found, database, schema, *here = map(fold, row)
        meant: list[list[str]] = [[*here], ["temp", "main"]]
        if len(places) == 2:
            meant = [places]
        elif places:
            meant = [[here[0], *places], [*places, "main"]]
        if found == name and [database, schema] in meant:  # lower() of SQL makes one of letters that DuckDB tells apart
            return True
    return False
