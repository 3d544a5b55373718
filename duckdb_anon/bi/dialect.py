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
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.exc import NoSuchTableError

from duckdb_anon.answering.original_names import Answering, RewriteQuery
from duckdb_anon.binder_errors import explained
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
    select column_name, data_type, is_nullable, column_default, comment
    from duckdb_columns()
    where not internal and table_name = :name
      and database_name = coalesce(:database, current_database())
      and schema_name = coalesce(:schema, current_schema())
    order by column_index
"""
_TABLES = """
    select any_value(t.comment), any_value(c.constraint_column_names)
    from (
        select table_name as name, comment, internal, database_name, schema_name from duckdb_tables()
        union all
        select view_name, comment, internal, database_name, schema_name from duckdb_views()
    ) t
    left join duckdb_constraints() c
      on c.table_name = t.name and c.schema_name = t.schema_name and c.database_name = t.database_name
      and c.constraint_type = 'PRIMARY KEY'
    where not t.internal and t.name = :name
      and t.database_name = coalesce(:database, current_database())
      and t.schema_name = coalesce(:schema, current_schema())
    group by t.name
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
            message = explained(str(error), requested)
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
        answering = Answering.requested({key: config.pop(key) for key in ("answer", "bounds") if key in config})
        if answering is not None:
            options["read_only"] = True
        connection = _connection_of(super().connect(*arguments, **options, url_config=config))
        if answering is not None:
            answering.require_published(connection)
        load(connection)
        return LoadedConnection(connection, answering)

    def get_columns(self, connection: Any, table_name: str, schema: Any = None, **_: Any) -> list[Any]:
        """Columns of a table or view, asked of DuckDB itself.

        The inherited questions go to PostgreSQL's catalog tables, of which DuckDB has a part only.
        """
        return [
            {"name": name, "type": _type_of(kind), "nullable": nullable, "default": default, "comment": comment}
            for name, kind, nullable, default, comment in _found(connection, _COLUMNS, table_name, schema)
        ]

    def get_pk_constraint(self, connection: Any, table_name: str, schema: Any = None, **_: Any) -> Any:
        """Primary key of a table; one without has an empty list, as SQLAlchemy expects."""
        ((_comment, key),) = _found(connection, _TABLES, table_name, schema)
        return {"constrained_columns": list(key or []), "name": None}

    def get_table_comment(self, connection: Any, table_name: str, schema: Any = None, **_: Any) -> Any:
        """Comment of a table or view: of a release, what describes it."""
        ((comment, _key),) = _found(connection, _TABLES, table_name, schema)
        return {"text": comment}

    def get_table_options(self, connection: Any, table_name: str, schema: Any = None, **_: Any) -> Any:
        """Options of a table, of which DuckDB has none."""
        _found(connection, _TABLES, table_name, schema)
        return {}

    def _nothing(self, connection: Any, *arguments: Any, **options: Any) -> list[Any]:
        """Foreign keys and other constraints are not reflected; releases have none."""
        return []

    get_foreign_keys = get_unique_constraints = get_check_constraints = get_indexes = _nothing


# SQLAlchemy 2 asks for many tables at once, which is answered one by one; Superset's 1.4 does not ask.
for _name in [name for name in vars(DefaultDialect) if name.startswith("get_multi_")]:
    setattr(AnonDialect, _name, getattr(DefaultDialect, _name))


def _found(connection: Any, question: str, name: str, schema: str | None) -> list[Any]:
    """What is known of a table in a schema given as NAME or DATABASE.NAME, by default the current one."""
    database, _, inner = (schema or "").rpartition(".")
    values = {"name": name, "database": database.strip('"') or None, "schema": inner.strip('"') or None}
    rows = connection.execute(text(question), values).all()
    if not rows:
        raise NoSuchTableError(name)
    return list(rows)


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
