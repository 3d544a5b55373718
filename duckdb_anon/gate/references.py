"""Whether a column of numbers refers to individuals of another table: it holds the numbers of a labelled key.

Small whole numbers are contained in one another by chance, ages in the keys 1 to 400: `number_traces` says what is no
chance. Where keys leave none, a quarter of them has to be there, reaching from one end to the other.
A column that has few keys of a dense range, or those of one end alone, is not recognized: declare its foreign key.
Cost: the distinct numbers of each column and key, and a search for each pair of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import duckdb
import numpy as np

from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.gate.number_traces import Numbers, contained
from duckdb_anon.gate.source_tables import SourceTable
from duckdb_anon.model.release_comment import is_release
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_number, is_text

_COVERED = 0.25


def reference_of(
    con: duckdb.DuckDBPyConnection, table: SourceTable, columns: Collection[str], others: Sequence[SourceTable]
) -> str | None:
    """Which of the columns refers to a labelled key of another table; None for none.

    Returns:
        A sentence without its end. It quotes no value.
    """
    given = [(name, found) for name in columns if (found := _read(con, table, name)) is not None]
    for other, key, keys in _keys(con, others) if given else ():
        for name, numbers in given:
            if contained(numbers, keys, _COVERED):
                role = other.role(key)
                return f"column '{name}' of {table.name} has the numbers of '{key}' of {other.name}, labelled {role}"
    return None


def _keys(con: duckdb.DuckDBPyConnection, tables: Sequence[SourceTable]) -> Iterator[tuple[SourceTable, str, Numbers]]:
    """Labelled keys that are numbers, of tables that are no releases."""
    for table in tables:
        for column in () if is_release(table.comment) else table.naming():
            found = _read(con, table, column)
            if found is not None:
                yield table, column, found


def _read(con: duckdb.DuckDBPyConnection, table: SourceTable, column: str) -> Numbers | None:
    """The different numbers of a column, sorted; None where it has other values."""
    kind, value = table.columns[column][0], ident(column)
    if not (is_number(kind) or is_text(kind)):
        return None
    number = f"try_cast({value} as hugeint)"
    if is_text(kind):
        text = f"trim({value}::varchar)"
        number = f"case when regexp_full_match({text}, '-?\\d{{1,30}}') then try_cast({text} as hugeint) end"
    elif not is_integer(kind):
        number = f"case when {value} = floor({value}) then {number} end"
    numbers = f"select distinct {number} as n from {table.sql} where {value} is not null"
    found = con.execute(f"select n::double as n from ({numbers}) order by n nulls first").fetchnumpy()["n"]
    return None if isinstance(found, np.ma.MaskedArray) and found.mask.any() else np.asarray(found, dtype=np.float64)
