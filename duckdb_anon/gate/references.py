"""Whether a column of numbers refers to individuals of another table: it holds the numbers of a labelled key.

Small whole numbers are contained in one another by chance, ages in the keys 1 to 400. A column refers to a key when at
least 95% of its different numbers are keys, and this is no chance:
- keys lie so sparsely in their range that as many other numbers would not all meet them (odds below 1 in a million);
- or the column has a quarter of all keys or more, at least 40, and reaches from one end of them to the other as a
  random choice of keys does (odds above one in a thousand).
A column that has few keys of a dense range, or those of one end alone, is not recognized: declare its foreign key.
Cost: a join of distinct numbers for each pair of a column and a key whose ranges meet.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import duckdb

from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.gate.source_tables import SourceTable
from duckdb_anon.model.release_comment import is_release
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_number, is_text

_FEWEST, _FEWEST_OF_DENSE = 10, 40
_CONTAINED, _COVERED, _BEYOND = 0.95, 0.25, 0.1
_BY_CHANCE, _AT_RANDOM = 1e-6, 1e-3


@dataclass(frozen=True)
class _Numbers:
    """The different whole numbers of a column: how many there are, their ends, and the least step between them."""

    table: SourceTable
    column: str
    count: int
    low: int
    high: int
    step: int

    @property
    def sql(self) -> str:
        """SELECT of the numbers."""
        return _numbers(self.table, self.column)

    @property
    def density(self) -> float:
        """The share of the range that has numbers."""
        return self.count / ((self.high - self.low) // self.step + 1)


def reference_of(
    con: duckdb.DuckDBPyConnection, table: SourceTable, columns: Collection[str], others: Sequence[SourceTable]
) -> str | None:
    """Which of the columns refers to a labelled key of another table; None for none.

    Returns:
        A sentence without its end. It quotes no value.
    """
    given = [found for name in columns if (found := _read(con, table, name)) is not None]
    if not given:
        return None
    for key in _keys(con, others):
        for column in given:
            if _CONTAINED * column.count <= key.count and column.low <= key.high and key.low <= column.high:
                if _refers(con, column, key):
                    role = key.table.role(key.column)
                    return (
                        f"column '{column.column}' of {table.name} has the numbers of '{key.column}' of "
                        f"{key.table.name}, labelled {role}"
                    )
    return None


def _keys(con: duckdb.DuckDBPyConnection, tables: Sequence[SourceTable]) -> Iterator[_Numbers]:
    """Labelled keys that are numbers, of tables that are no releases."""
    for table in tables:
        for column in () if is_release(table.comment) else table.naming():
            found = _read(con, table, column)
            if found is not None:
                yield found


def _read(con: duckdb.DuckDBPyConnection, table: SourceTable, column: str) -> _Numbers | None:
    """The numbers of a column; None where it has other values, or few."""
    kind = table.columns[column][0]
    if not (is_number(kind) or is_text(kind)):
        return None
    count, whole, low, high, step = con.execute(
        f"with numbers as ({_numbers(table, column)}), "
        "steps as (select n - lag(n) over (order by n) as step from numbers) "
        "select count(*), count(n), min(n), max(n), (select min(step) from steps) from numbers"
    ).fetchall()[0]
    return _Numbers(table, column, count, low, high, step) if count == whole >= _FEWEST else None


def _numbers(table: SourceTable, column: str) -> str:
    """SELECT of the different numbers `n` of a column; NULL for a value that is no whole number."""
    kind, value = table.columns[column][0], ident(column)
    number = f"try_cast({value} as hugeint)"
    if is_text(kind):
        text = f"trim({value}::varchar)"
        number = f"case when regexp_full_match({text}, '-?\\d{{1,30}}') then try_cast({text} as hugeint) end"
    elif not is_integer(kind):
        number = f"case when {value} = floor({value}) then {number} end"
    return f"select distinct {number} as n from {table.sql} where {value} is not null"


def _refers(con: duckdb.DuckDBPyConnection, column: _Numbers, key: _Numbers) -> bool:
    """Whether the numbers of a column are keys, and this is no chance."""
    hits, low, high = con.execute(
        f"select count(*), min(n), max(n) from ({column.sql}) semi join ({key.sql}) using (n)"
    ).fetchall()[0]
    if hits < max(_FEWEST, _CONTAINED * column.count):
        return False
    if key.density < 1 and hits * math.log(key.density) < math.log(_BY_CHANCE):
        return True
    below, above = con.execute(
        f"select count(*) filter (n < {low}), count(*) filter (n > {high}) from ({key.sql})"
    ).fetchall()[0]
    covered, left_out = hits / (key.count - below - above), below + above
    if hits < max(_FEWEST_OF_DENSE, _COVERED * key.count) or left_out > _BEYOND * key.count:
        return False
    odds = [(1 - covered) ** beyond if beyond else 1.0 for beyond in (below, above)]
    return min(odds) >= _AT_RANDOM
