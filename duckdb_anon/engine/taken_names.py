"""Whether a table that is to be made would have another one's name."""

from __future__ import annotations

import duckdb

from duckdb_anon.engine.catalog_rows import names_of

_THERE = """
select lower(database_name), lower(schema_name), database_name = current_database(),
  database_name = 'temp' or (database_name = current_database() and schema_name = current_schema())
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
    rows = con.execute(_THERE, [name]).fetchall()
    if not places:
        return any(is_found for *_, is_found in rows)
    if len(places) == 2:
        return any([database, schema] == places for database, schema, *_ in rows)
    return any(
        (schema == places[0] and is_here) or (database == places[0] and schema == "main")
        for database, schema, is_here, _ in rows
    )
