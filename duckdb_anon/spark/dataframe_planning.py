"""DataFrames as DuckDB's planner sees them: an empty table of the same columns, with the labels of their metadata.

A label is an argument, or the column's metadata under 'comment' (as Delta, Iceberg and Hive keep column comments):
'anon: quasi hierarchy=trees'. Cost: none that depends on the rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from duckdb_anon.engine.catalog.sensitive_coarsening import PARAMETER as EDGES
from duckdb_anon.engine.catalog.sensitive_coarsening import takes_edges
from duckdb_anon.engine.records.call_text import Recorded, on_table, recording
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import AnonError, ParameterError, cause_of
from duckdb_anon.model.function_specs import Method
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.parts.run_part import message_of
from duckdb_anon.registry import ENTRIES
from duckdb_anon.sql_functions import connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = "original"
_SAMPLE = 20_000
_BY_NAME = {entry.name: entry for entry in ENTRIES}


@dataclass
class Planned:
    """A call that was planned on a DataFrame's columns."""

    con: duckdb.DuckDBPyConnection  # a DuckDB with an empty table of the same columns
    recorded: Recorded  # the call
    trees: dict[str, pa.Table]  # rows of each hierarchy by its table's name
    columns: pa.Schema  # released columns as arrow has them


def planned(
    df: DataFrame, call: str, roles: Mapping[str, Sequence[str] | str | None], hierarchies: Mapping[str, Any]
) -> Planned:
    """Plan a call, given without its table, on the columns of a DataFrame.

    `roles` are those of `spark.release`, as given; `hierarchies` has a DataFrame (Spark, pandas, arrow) by column.
    """
    con = connect()
    con.execute("set python_enable_replacements = false")
    # methods that find columns by association read a sample of the rows while they are planned
    entry = _BY_NAME.get(fold(call.partition("(")[0].strip()))
    finds = getattr(entry, "resolve_params", None) is not None
    rows = df.selectExpr("*", "rand() as _anon_order").orderBy("_anon_order").drop("_anon_order").limit(_SAMPLE)
    create_labelled(con, TABLE, df, (rows if finds else df.limit(0)).toArrow())
    trees = {f"tree of {column}": _arrow(tree) for column, tree in hierarchies.items()}
    create_tables(con, trees)
    given = {name: list(value) if not isinstance(value, str) else value for name, value in roles.items() if value}
    arguments = "".join(f", {name} := {literal(value)}" for name, value in given.items())
    if hierarchies:
        arguments += f", hierarchies := {literal({column: f'tree of {column}' for column in hierarchies})}"
    statement = on_table(call, TABLE).strip()
    if not statement.endswith(")") or statement == call:
        raise ParameterError(f'spark.release: {call!r} is not one call of a method, such as "muco(0.2)"')
    in_parts = isinstance(entry, Method) and entry.parts is not None and takes_edges(entry)
    if in_parts and EDGES.name in fold(call):
        raise ParameterError(
            "spark.release: sensitive_edges would count records in each part alone. Leave it out, and merge rare "
            "sensitive values before the call"
        )
    statement = f"{statement[:-1]}{arguments})"
    try:
        with recording(_may_be_released) as recorded:
            con.execute(f"describe from {statement}")
            found = recorded()
            described = con.execute(f"describe from {statement}").fetchall()
    except duckdb.Error as error:
        raise AnonError(message_of(error, call.partition("(")[0].strip(), statement)) from cause_of(error)
    if found is None:
        raise ParameterError(f'spark.release: {call!r} is not one call of a method, such as "muco(0.2)"')
    if in_parts:  # the release's description says that values are exact
        exact = {EDGES.name: 1}
        found = replace(found, arguments={**found.arguments, **exact}, params={**found.params, **exact})
    typed = ", ".join(f"null::{row[1]} as {ident(row[0])}" for row in described)
    schema = con.sql(f"select {typed} limit 0").to_arrow_table().schema
    return Planned(con, found, trees, pa.schema([column.with_type(in_spark(column.type)) for column in schema]))


def create_tables(con: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]) -> None:
    """Create tables of Arrow tables by name."""
    for name, rows in tables.items():
        con.register("_anon_table", rows)
        con.execute(f"create table {ident(name)} as from _anon_table")


def create_labelled(con: duckdb.DuckDBPyConnection, name: str, frame: DataFrame, rows: pa.Table) -> None:
    """Create a table of some rows of a DataFrame, with the labels of its columns as comments."""
    create_tables(con, {name: rows})
    for column in frame.schema.fields:
        comment = (column.metadata or {}).get("comment")
        if comment:
            con.execute(f"comment on column {ident(name)}.{ident(column.name)} is {literal(str(comment))}")


def _may_be_released(found: Recorded) -> None:
    """Refuse what ties rows to the original, or can be found by trying."""
    name, given = found.entry.name, found.arguments
    if given.get("row_id"):
        raise ParameterError(f"{name}: row_id := true ties rows to the original's, so such a table is no release")
    if given.get("seed") is not None:
        raise ParameterError(f"{name}: Spark hands rows over in any order, so a seed repeats nothing. Leave it out")


def _arrow(rows: Any) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    if hasattr(rows, "toArrow"):
        return rows.toArrow()
    return pa.Table.from_pandas(rows, preserve_index=False)


def quoted(name: str) -> str:
    """A column's name as Spark SQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


_WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}


def in_spark(kind: pa.DataType) -> pa.DataType:
    """A type as Spark takes it from a task: whole numbers with a sign, the next wider ones, and times in UTC.

    >>> in_spark(pa.list_(pa.timestamp("us", "Etc/UTC"))), in_spark(pa.uint8())
    (ListType(list<item: timestamp[us, tz=UTC]>), DataType(int16))
    """
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(in_spark(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(in_spark(kind.key_type), in_spark(kind.item_type))
    return pa.list_(in_spark(kind.value_type)) if pa.types.is_list(kind) else _WIDER.get(kind, kind)


def message_in_task(text: str) -> str | None:
    r"""What a method refused with in a task, None where it did not.

    >>> message_in_task("Traceback ...\nduckdb_anon.model.errors.AnonError: muco: no rows\n\nDriver stacktrace: ...")
    'muco: no rows'
    """
    found = re.findall(rf"^{re.escape(AnonError.__module__)}\.\w+: (.+)$", text, re.MULTILINE)
    return str(found[-1]) if found else None
