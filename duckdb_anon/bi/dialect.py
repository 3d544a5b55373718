"""SQLAlchemy dialect `duckdb+anon:///file.duckdb`: duckdb-engine's, with the package loaded on every connection.

Found by the entry point `duckdb.anon`, so pandas, JupySQL, Superset and every other tool that takes a SQLAlchemy
URL can call the functions. SQLAlchemy opens a transaction before the first statement; planning sees committed
tables only, so commit a table before naming it to a function (or name its columns in the call).

`duckdb+anon:///releases.duckdb?answer=people:release` answers queries that name `people` from its release
(`duckdb_anon.answering`), read-only; `&bounds=true` adds `<measure>_low` and `<measure>_high`.
"""

from __future__ import annotations

from typing import Any

import duckdb
from duckdb_engine import ConnectionWrapper, CursorWrapper, Dialect
from sqlalchemy import text, types
from sqlalchemy.exc import NoSuchTableError

from duckdb_anon.answering.bounded import unbounded
from duckdb_anon.answering.original_names import Answering, RewriteQuery
from duckdb_anon.binder_errors import explained
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.release_formats.duckdb_types import decimal_type, is_nested, is_timestamp, is_zoned
from duckdb_anon.sql_functions import load

_TYPES: dict[str, type[types.TypeEngine[Any]]] = {
    "TINYINT": types.SmallInteger, "SMALLINT": types.SmallInteger, "INTEGER": types.Integer, "BIGINT": types.BigInteger,
    "UTINYINT": types.SmallInteger, "USMALLINT": types.Integer, "UINTEGER": types.BigInteger, "UBIGINT": types.Numeric,
    "HUGEINT": types.Numeric, "UHUGEINT": types.Numeric, "FLOAT": types.Float, "DOUBLE": types.Float,
    "BOOLEAN": types.Boolean, "VARCHAR": types.String, "ENUM": types.String, "DATE": types.Date, "TIME": types.Time,
    "TIMESTAMP": types.DateTime, "TIMESTAMP_S": types.DateTime, "TIMESTAMP_MS": types.DateTime,
    "TIMESTAMP_NS": types.DateTime, "INTERVAL": types.Interval, "BLOB": types.LargeBinary, "UUID": types.String,
    "JSON": types.JSON,
}  # fmt: skip
_COLUMNS = """
    select table_name, column_name, data_type, is_nullable, column_default, comment
    from duckdb_columns()
    where not internal
      and database_name = coalesce(:database, current_database())
      and schema_name = coalesce(:schema, current_schema())
    order by table_name, column_index
"""

_KEYS = """
    select t.table_name, any_value(c.constraint_column_names)
    from duckdb_tables() t
    left join duckdb_constraints() c
      on c.table_oid = t.table_oid and c.database_oid = t.database_oid and c.constraint_type = 'PRIMARY KEY'
    where not t.internal
      and t.database_name = coalesce(:database, current_database())
      and t.schema_name = coalesce(:schema, current_schema())
    group by all
"""

_COMMENTS = """
    select name, comment
    from (
        select table_name as name, comment, internal, database_name, schema_name from duckdb_tables()
        union all
        select view_name, comment, internal, database_name, schema_name from duckdb_views()
    )
    where not internal
      and database_name = coalesce(:database, current_database())
      and schema_name = coalesce(:schema, current_schema())
"""


class LoadedCursor(CursorWrapper):
    """A cursor whose statements are answered from releases where they name an original.

    Superset runs its queries on cursors of its own, past the dialect's `do_execute`: what a statement becomes, and
    what its errors say, is settled here, for every tool.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, wrapper: LoadedConnection) -> None:
        super().__init__(connection, wrapper)
        self._own, self._answering = connection, wrapper.answering

    def execute(self, statement: str, parameters: Any = None, context: Any = None) -> None:
        """Run a statement; an argument no parameter takes is named, with the nearest one."""
        requested, inlined = statement, False
        if self._answering is not None:
            statement, inlined = self._answering.rewritten(statement, parameters, RewriteQuery(self._own))
        try:
            super().execute(statement, None if inlined or not parameters else parameters, context)
        except (duckdb.BinderException, duckdb.CatalogException) as error:
            message = unbounded(explained(str(error), requested))
            if message == str(error):
                raise
            raise type(error)(message) from error


class LoadedConnection(ConnectionWrapper):
    """A connection that has the package's functions, and may answer from releases."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, answering: Answering | None) -> None:
        super().__init__(connection)  # type: ignore[no-untyped-call]
        self.answering = answering

    def cursor(self) -> LoadedCursor:
        """A cursor on the same connection."""
        return LoadedCursor(_connection_of(self), self)

    def execute(self, statement: str, parameters: Any = None) -> duckdb.DuckDBPyConnection:
        """Run a statement as a cursor does: JupySQL runs a query again on the connection for a DataFrame."""
        self.cursor().execute(statement, parameters)
        return _connection_of(self)


class AnonDialect(Dialect):
    """duckdb-engine's dialect on connections that have the package's functions."""

    driver = "anon"
    supports_statement_cache = False

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """Open a connection and load the package on it: macros belong to one connection."""
        config = dict(options.pop("url_config", {}))  # the pool hands the same one to its next connection
        requested = {key: config.pop(key) for key in ("answer", "bounds") if key in config}
        if "bounds" in requested and "answer" not in requested:
            raise ParameterError("bounds=... belongs to answer=ORIGINAL:RELEASE, which the URL does not have")
        answering = Answering.of(requested["answer"], requested.get("bounds", "false")) if requested else None
        if answering is not None:
            options["read_only"] = True
        connection = _connection_of(super().connect(*arguments, **options, url_config=config))
        if answering is not None:
            answering.require_published(connection)
        load(connection)
        return LoadedConnection(connection, answering)

    def get_multi_columns(self, connection: Any, schema: Any = None, filter_names: Any = None, **_: Any) -> Any:
        """Columns of tables and views, asked of DuckDB itself.

        The inherited questions go to PostgreSQL's catalog tables, of which DuckDB has a part only.
        """
        found: dict[tuple[str | None, str], list[dict[str, Any]]] = {}
        for table, column, declared, nullable, default, comment in _catalog_rows(
            connection, _COLUMNS, schema, filter_names
        ):
            entry = {"name": column, "type": _type_of(declared), "nullable": nullable, "default": default}
            found.setdefault((schema, table), []).append({**entry, "comment": comment})
        return list(found.items())

    def get_multi_pk_constraint(self, connection: Any, schema: Any = None, filter_names: Any = None, **_: Any) -> Any:
        """Primary keys; a table without one has an empty list, as SQLAlchemy expects."""
        rows = _catalog_rows(connection, _KEYS, schema, filter_names)
        return [((schema, table), {"constrained_columns": list(key or []), "name": None}) for table, key in rows]

    def get_columns(self, connection: Any, table_name: str, schema: Any = None, **_: Any) -> list[Any]:
        """Columns of one table, which SQLAlchemy 1.4 (Superset's) asks for."""
        return list(_single(self.get_multi_columns(connection, schema, [table_name]), table_name))

    def get_pk_constraint(self, connection: Any, table_name: str, schema: Any = None, **_: Any) -> Any:
        """Primary key of one table."""
        found = self.get_multi_pk_constraint(connection, schema, [table_name])
        return found[0][1] if found else {"constrained_columns": [], "name": None}

    def get_multi_table_comment(self, connection: Any, schema: Any = None, filter_names: Any = None, **_: Any) -> Any:
        """Comments of tables and views: of a release, what describes it."""
        rows = _catalog_rows(connection, _COMMENTS, schema, filter_names)
        return [((schema, table), {"text": comment}) for table, comment in rows]

    def get_table_comment(self, connection: Any, table_name: str, schema: Any = None, **_: Any) -> Any:
        """Comment of one table or view."""
        return _single(self.get_multi_table_comment(connection, schema, [table_name]), table_name)

    def get_multi_table_options(self, connection: Any, schema: Any = None, filter_names: Any = None, **_: Any) -> Any:
        """DuckDB's tables have no options: an empty dict for each."""
        return [(key, {}) for key, _comment in self.get_multi_table_comment(connection, schema, filter_names)]

    def get_table_options(self, connection: Any, table_name: str, schema: Any = None, **_: Any) -> Any:
        """Options of one table, which has none."""
        self.get_table_comment(connection, table_name, schema)
        return {}

    def _nothing(self, connection: Any, *arguments: Any, **options: Any) -> list[Any]:
        """Foreign keys and other constraints are not reflected; releases have none."""
        return []

    get_multi_foreign_keys = get_multi_unique_constraints = get_multi_check_constraints = _nothing
    get_multi_indexes = _nothing
    get_foreign_keys = get_unique_constraints = get_check_constraints = get_indexes = _nothing


def _single(found: list[Any], table_name: str) -> Any:
    """What was found of one table."""
    if not found:
        raise NoSuchTableError(table_name)
    return found[0][1]


def _catalog_rows(connection: Any, question: str, schema: str | None, tables: Any) -> list[Any]:
    """Rows of some tables, None for all, of a schema given as NAME or DATABASE.NAME, by default the current one."""
    database, _, name = (schema or "").rpartition(".")
    values = {"database": database.strip('"') or None, "schema": name.strip('"') or None}
    rows = connection.execute(text(question), values).all()
    return [row for row in rows if tables is None or row[0] in tables]


def _type_of(kind: str) -> types.TypeEngine[Any]:
    """SQLAlchemy's type for DuckDB's; nested types (boxes, buckets, slices) have none and stay unknown."""
    decimal = decimal_type(kind)
    if decimal is not None:
        return types.Numeric(*decimal)
    if is_nested(kind) and kind not in _TYPES:
        return types.NullType()
    type_class = _TYPES.get(kind.split("(")[0])
    if is_timestamp(kind) and is_zoned(kind):
        return types.DateTime(timezone=True)
    return type_class() if type_class else types.NullType()


def _connection_of(wrapper: Any) -> duckdb.DuckDBPyConnection:
    """DuckDB's own connection inside duckdb-engine's wrapper, which offers no public way to it."""
    connection = vars(wrapper)[f"_{ConnectionWrapper.__name__}__c"]
    assert isinstance(connection, duckdb.DuckDBPyConnection)  # noqa: S101 - a changed duckdb-engine must fail here
    return connection
