"""A method on one part of a table, with the values and counts of the full table.

Columns are coded once for the full table, so a part is a few columns of codes: no value of it is coded again, and its
release is decoded by the SQL that decodes the release of a call. Works on a loaded connection of
DuckDB's own run, or of a task of Spark. Cost: that of the method on the rows of the part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from duckdb_anon.binder_errors import explained
from duckdb_anon.engine import interrupts
from duckdb_anon.engine.input_sql import NUMBER
from duckdb_anon.engine.records.call_text import Recorded
from duckdb_anon.engine.runner import by_role, run_method
from duckdb_anon.engine.transport.column_coding import canonical_order, code_column
from duckdb_anon.engine.transport.result_sql import release_select
from duckdb_anon.kernels import thread_pool
from duckdb_anon.model.coded_table import Attribute, CodedTable, IntArray
from duckdb_anon.model.errors import AnonError, cause_of, one_line, reported
from duckdb_anon.model.function_specs import Params
from duckdb_anon.model.progress import Interrupted
from duckdb_anon.model.release_formats import BUCKET
from duckdb_anon.parts.split_planner import CODE, PERSON

_ENCODED = "_anon_encoded"


@dataclass(frozen=True)
class FullTable:
    """What a part needs to know of the full table."""

    recorded: Recorded  # the call
    # quasi-identifiers and sensitive attributes, with the counts of the full table; first rows are rows of `truths`
    attributes: Sequence[Attribute]
    truths: Mapping[str, Attribute]  # conditions of the call by name, on one row for each value of each attribute

    @staticmethod
    def of(recorded: Recorded, attributes: Sequence[Attribute], truths: Mapping[str, pa.Array]) -> FullTable:
        """What is known of the values."""
        name, first, numbered = recorded.entry.name, 0, []
        for attribute in attributes:
            rows = np.arange(first, first + attribute.domain, dtype=np.int64)
            numbered.append(replace(attribute, first_row=rows))
            first += attribute.domain
        coded = {key: code_column(name, key, truth, "ordered") for key, truth in truths.items()}
        return FullTable(recorded, numbered, coded)

    def part(self, rows: pa.Table, canonical: bool) -> tuple[CodedTable, IntArray]:
        """A part as a method reads it, and the number of each of its rows; `canonical` sorts rows by their codes.

        `rows` has columns of codes, `_anon_person` where there are persons, and `_anon_rn`, which numbers the rows.
        """
        roles = self.recorded.roles
        attributes = [
            replace(attribute, codes=_numbers(rows.column(f"{CODE}{k}")).astype(np.int32))
            for k, attribute in enumerate(self.attributes)
        ]
        number = _numbers(rows.column(NUMBER)).astype(np.int64)
        if roles.person is not None:
            person = rows.column(PERSON).combine_chunks()
            attributes.append(code_column(self.recorded.entry.name, roles.person.name, person, roles.person.kind))
        if canonical:
            order = canonical_order(attributes, number)
            attributes = [replace(attribute, codes=attribute.codes[order]) for attribute in attributes]
            number = number[order]
        return by_role(roles, attributes, self.truths), number


def _numbers(column: pa.ChunkedArray) -> Any:
    return column.combine_chunks().to_numpy(zero_copy_only=False)


def work_part(
    con: duckdb.DuckDBPyConnection,
    table: FullTable,
    params: Params,
    rows: pa.Table,
    source: str,
    out: str,
) -> None:
    """Make the temporary table `out` of what a method releases of one part.

    `source`: SELECT of the columns that are released as they are, of a column of the type of each attribute, and
    `_anon_rn`; `out`: name of the table to make, as SQL writes it.
    """
    entry, roles, layout = table.recorded.entry, table.recorded.roles, table.recorded.layout
    *statement, threads = con.execute(
        "select _anon_instance(), current_connection_id(), current_query_id(), current_setting('threads')"
    ).fetchall()[0]

    def encoded() -> pa.Array:
        with thread_pool.allowed(int(threads)):
            read = partial(table.part, rows, params["seed"] is not None)
            result, count = run_method(entry, params, read, layout)
            return result.to_arrow(entry.name, count, (statement[0], statement[1], statement[2]))

    try:
        answer = interrupts.run(encoded)
    except Interrupted:
        raise
    except Exception as error:
        raise AnonError(reported(entry.name, error)) from cause_of(error)
    con.register(_ENCODED, pa.table({"r": answer}))
    try:
        select = release_select(table.recorded.relation, roles, layout)
        con.execute(
            f"create or replace temp table {out} as with _anon_src as ({source}), "
            f"_anon_run as (select r from {_ENCODED}),\n{select}"
        )
    finally:
        con.unregister(_ENCODED)


def numbered_columns(recorded: Recorded) -> list[int]:
    """Places of the released columns that number buckets or persons, and so must differ between parts."""
    person = recorded.roles.person.name if recorded.roles.person else None
    return [k for k, plan in enumerate(recorded.layout) if plan.name in (BUCKET.key, person) and not plan.column]


def message_of(error: duckdb.Error, name: str, call: str = "") -> str:
    """The method's own words, without DuckDB's frame around them."""
    first = explained(one_line(error), f"from {call}")
    at = first.find(f"{name}: ")
    return first[at:] if at >= 0 else f"release: {first}"
