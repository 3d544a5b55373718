"""The ordinary call on one part of a table, which knows the values and counts of the whole.

Works on a loaded connection, whoever holds it: DuckDB's own run, or a task of Spark. Cost: that of the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

import duckdb

from duckdb_anon.binder_errors import explained
from duckdb_anon.engine.call_text import Recorded
from duckdb_anon.engine.partition_context import NUMBER, WholeTable, part_of
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.release_formats import BUCKET


def work_part(con: duckdb.DuckDBPyConnection, name: str, call: str, out: str, whole: WholeTable | None) -> None:
    """Make the temporary table `out` of what a call releases of one part.

    Args:
        con: a loaded connection.
        name: the method.
        call: the call on a table of the part's rows, numbered in `_anon_rn`, and after them those that stand for
            values; see `piece_sql`.
        out: name of the table to make, as SQL writes it.
        whole: what is known of the whole; None: the part is the table.

    Raises:
        AnonError: the method cannot work on the part; the message is its own.
    """
    with nullcontext() if whole is None else part_of(whole):
        try:
            con.execute(f"create or replace temp table {out} as from {call}")
        except duckdb.Error as error:
            raise AnonError(told(error, name)) from error


def piece_sql(rows: str, columns: list[str], count: int, told_values: str | None) -> str:
    """SELECT of a part's rows, numbered from 0, and after them those that stand for values.

    Args:
        rows: relation of the part's rows, with `_anon_rn` of the whole.
        columns: columns the call needs.
        count: number of the part's rows.
        told_values: relation of the rows that stand for values, numbered in `_anon_rn` from 0;
            None: the part is the table, and is not numbered.
    """
    named = ", ".join(ident(column) for column in columns)
    if told_values is None:
        return f"select {named} from {rows}"
    return (
        f"select {named}, row_number() over () - 1 as {NUMBER} from {rows} union all "
        f"select {named}, {NUMBER} + {count} as {NUMBER} from {told_values}"
    )


def numbered_columns(recorded: Recorded) -> list[int]:
    """Places of the released columns that number buckets or persons, and so must differ between parts."""
    person = recorded.roles.person.name if recorded.roles.person else None
    return [k for k, plan in enumerate(recorded.layout) if plan.name in (BUCKET.key, person) and not plan.column]


def told(error: duckdb.Error, name: str, call: str = "") -> str:
    """The method's own words, without DuckDB's frame around them.

    Args:
        error: what DuckDB raised.
        name: the method.
        call: its call, whose arguments the binder may have refused.
    """
    first = explained(str(error), f"from {call}").split("\n\n", 1)[0].split("\nLINE", 1)[0]
    at = first.find(f"{name}: ")
    return first[at:] if at >= 0 else f"release: {first}"


def whole_of_part(rows: int, counts: Mapping[str, IntArray | None]) -> WholeTable:
    """What a call on a part of so many rows is told."""
    return WholeTable(rows, {name: known for name, known in counts.items() if known is not None})
