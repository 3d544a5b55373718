"""The ledger of answers, `anon.outputs`: the populations of answered cells, as bit sets over the rows of the table.

Rows are known by hashes of their content, in the order in which the ledger met them, so populations stay what they were
when the table changes, and a changed row is another one. An answer labels each row by its atom (rows that no cell
divides), a bit set for each binary digit of the label. DuckDB's hash may change with its version: a ledger whose hashes
this version does not compute is refused. Cost: 8 bytes a row, and an eighth of a byte a row and digit of an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from duckdb_anon.engine.records.register import SCHEMA
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.errors import AnonError, cause_of
from duckdb_anon.outputs.cell_key import new_secret

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Hashes = NDArray[np.uint64]
_TABLES = """
create schema if not exists {schema};
create table if not exists {schema}.outputs (
  number bigint primary key, day timestamp not null, "user" varchar not null, original varchar not null,
  query varchar not null, decision varchar not null, cells bigint not null, suppressed bigint not null,
  rules varchar, approved_by varchar, why varchar, digits bigint not null, labels blob not null,
  atoms bigint not null, members blob not null, statistics varchar[] not null, hidden boolean[] not null);
create table if not exists {schema}.output_rows (
  original varchar not null, part bigint not null, probe ubigint not null, hashes blob not null);
create table if not exists {schema}.output_keys (
  original varchar primary key, probe ubigint not null, key varchar not null)"""
# differs where DuckDB's hash of a type does: short and long text, numbers, times, lists
_PROBE = (
    "hash({'a': 'a', 'b': repeat('ab', 20), 'c': 1, 'd': 1.5::double, 'e': 12.34, 'f': date '2000-02-29', "
    "'g': timestamp '2000-02-29 01:02:03', 'h': true, 'i': [1, null], 'j': 1::hugeint, 'k': '\\x00'::blob})"
)


@dataclass(frozen=True)
class Population:
    """Cells of an answer as sets of rows."""

    planes: NDArray[np.uint8]  # digits x bytes: binary digits of the atom's label of each row, the lowest first
    cells: Bools  # cells x atoms
    kinds: tuple[str, ...]  # of each cell, the statistic
    hidden: Bools  # of each cell

    @classmethod
    def none(cls) -> Population:
        """No cells."""
        return cls(np.zeros((0, 0), np.uint8), np.zeros((0, 0), bool), (), np.zeros(0, bool))

    @classmethod
    def of(cls, labels: Ints, cells: Bools, kinds: Sequence[str]) -> Population:
        """The population of labels: of each row that the ledger knows, its atom from 1; 0 outside the query."""
        small = labels.astype(np.min_scalar_type(int(labels.max(initial=0))))
        planes = [np.packbits(small & (1 << digit)) for digit in range(int(small.max(initial=0)).bit_length())]
        shape = (len(planes), -(-len(labels) // 8))
        return cls(np.array(planes, np.uint8).reshape(shape), cells, tuple(kinds), np.zeros(len(cells), bool))

    def at(self, rows: Ints) -> csr_array:
        """Cells x rows, sparse: 1 where a cell contains a row, which is the number of one in the ledger."""
        labels = np.zeros(len(rows), np.int64)
        known = rows < 8 * self.planes.shape[1]
        place = rows[known]
        for digit, plane in enumerate(self.planes):
            labels[known] |= ((plane[place >> 3] >> (7 - (place & 7))) & 1).astype(np.int64) << digit
        outside = np.zeros((len(self.kinds), 1))
        return csr_array(csc_array(np.concatenate([outside, self.cells], axis=1))[:, labels])


@dataclass(frozen=True)
class Rows:
    """The rows of a table, in its order."""

    hashes: Hashes  # of their content
    labels: Ints  # atom of each row from 1; 0 outside the query
    persons: Hashes | None  # of each row; None where each row is an individual
    magnitudes: dict[str, Floats]  # of each row

    @cached_property
    def person(self) -> Ints | None:
        """The individual of each row, numbered; None where each row is one."""
        return None if self.persons is None else np.unique(self.persons, return_inverse=True)[1]

    @cached_property
    def most(self) -> int:
        """Most rows of an individual."""
        return 1 if self.person is None or not len(self.person) else int(np.bincount(self.person).max())


def numbered(hashes: Hashes, known: Hashes) -> tuple[Ints, Hashes]:
    """The number of each row in a ledger of `known` rows, and the hashes of new rows, which follow those.

    Equal rows are distinguished by their count: the second one of a table is the second one of the ledger.
    """
    same = min(len(hashes), len(known))
    if (hashes[:same] == known[:same]).all():  # the table as it was, or shortened or continued
        return np.arange(len(hashes)), hashes[len(known) :]
    both = np.concatenate([known, hashes])
    order = np.argsort(both, kind="stable")  # of equal ones, those of the ledger come first
    place = np.arange(len(both))
    starts = np.concatenate([[True], both[order][1:] != both[order][:-1]])
    first = np.maximum.accumulate(np.where(starts, place, 0))
    is_known = order < len(known)
    before: Ints = np.cumsum(is_known) - is_known
    in_ledger = np.diff(np.append(before[starts], len(known)))[np.cumsum(starts) - 1]  # equal rows of the ledger
    copy = place - first - in_ledger  # of a row of the table, among its equals
    found = ~is_known & (copy < in_ledger)
    numbers = np.full(len(hashes), -1)
    numbers[order[found] - len(known)] = order[(first + copy)[found]]
    fresh = numbers < 0
    numbers[fresh] = len(known) + np.arange(int(fresh.sum()))
    return numbers, hashes[fresh]


class Ledger:
    """The ledger of one original, in the database that holds it."""

    def __init__(self, con: duckdb.DuckDBPyConnection, database: str, original: str) -> None:
        """Open the ledger; nothing is written."""
        self._con, self._schema, self.original = con, f"{ident(database)}.{SCHEMA}", original
        found = con.execute(
            "select count(*) from duckdb_tables() where (database_name, schema_name, table_name) = (?, ?, 'outputs')",
            [database, SCHEMA],
        ).fetchall()
        self._exists = found[0][0] > 0

    def answered(self, user: str | None) -> list[Population]:
        """Populations of earlier answers, of one user or (None) of all."""
        if not self._exists:
            return []
        rows = self._con.execute(
            f"select digits, labels, atoms, members, statistics, hidden from {self._schema}.outputs "
            'where original = $1 and ($2 is null or "user" = $2) '
            "order by number",
            [self.original, user],
        ).fetchall()
        found = []
        for digits, labels, atoms, members, kinds, hidden in rows:
            planes = np.frombuffer(labels, np.uint8).reshape(digits, -1) if digits else np.zeros((0, 0), np.uint8)
            cells = np.unpackbits(np.frombuffer(members, np.uint8), count=len(kinds) * atoms).astype(bool)
            found.append(Population(planes, cells.reshape(len(kinds), atoms), tuple(kinds), np.array(hidden, bool)))
        return found

    def known(self) -> Hashes:
        """Hashes of the rows that the ledger numbers, in their order."""
        if not self._exists:
            return np.zeros(0, np.uint64)
        parts = self._checked("hashes", "output_rows", "part")
        return np.concatenate([np.zeros(0, np.uint64), *(np.frombuffer(part, np.uint64) for part in parts)])

    def secret(self) -> str:
        """The secret of record keys, which is made and kept where there is none."""
        self._make()
        found = self._checked("key", "output_keys", "key")
        if not found:
            found = [new_secret()]
            self._run(f"insert into {self._schema}.output_keys select $1, {_PROBE}, $2", [self.original, *found])
        return str(found[0])

    def _checked(self, column: str, table: str, order: str) -> list[Any]:
        """A column of a table of the ledger, if this version of DuckDB computes its hashes."""
        found = self._con.execute(
            f"select {column}, probe = {_PROBE} from {self._schema}.{table} where original = ? order by {order}",
            [self.original],
        ).fetchall()
        if not all(is_same for _, is_same in found):
            raise AnonError(
                f"safe_output: the ledger of {self.original} was written by a version of DuckDB whose hashes differ, "
                "so earlier answers cannot be compared. Answer with that version, or begin a new ledger: drop "
                f"{SCHEMA}.outputs and {SCHEMA}.output_rows",
                code="no-ledger",
            )
        return [value for value, _ in found]

    def _make(self) -> None:
        for statement in _TABLES.format(schema=self._schema).split(";") if not self._exists else ():
            self._run(statement)
        self._exists = True

    def _run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._con.execute(statement, list(values)).fetchall()
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise AnonError(
                f"safe_output: the ledger of {self.original} cannot be written, so nothing is answered. Open the "
                "database for writing, and ask again",
                code="no-ledger",
            ) from cause_of(error)

    def write(
        self, user: str, query: str, entry: tuple[Population, Hashes], rules: Sequence[str],
        approval: tuple[str, str] | None = None,
    ) -> int:  # fmt: skip
        """Enter an answer: its population with the hashes of rows that the ledger had not numbered, and the rules.

        Returns:
            The number of the entry.
        """
        population, fresh = entry
        schema = self._schema
        hidden = [rule for rule in rules if rule]
        self._make()
        if len(fresh):
            self._run(
                f"insert into {schema}.output_rows select $1, "
                f"(select count(*) from {schema}.output_rows where original = $1), {_PROBE}, $2",
                [self.original, fresh.tobytes()],
            )
        places = ", ".join(f"${place}" for place in range(1, 16))
        ((number,),) = self._run(
            f"insert into {schema}.outputs select coalesce(max(number), 0) + 1, now()::timestamp, "
            f"{places} from {schema}.outputs returning number",
            [user, self.original, query, "approved" if approval else decision(rules), len(rules), len(hidden),
             "; ".join(dict.fromkeys(hidden)) or None, *(approval or (None, None)),
             len(population.planes), population.planes.tobytes(), population.cells.shape[1],
             np.packbits(population.cells).tobytes(), list(population.kinds), population.hidden.tolist()],
        )  # fmt: skip
        return int(number)


def decision(rules: Sequence[str]) -> str:
    """What is said of an answer, of the rules that its values break; '' for none."""
    return "answered" if not any(rules) else "refused" if all(rules) else "partly answered"
