"""What the parts released, gathered as small numbers until all of it is shuffled.

A column of a release has few different cells as a rule (boxes, sets, values of a domain), so the rows hold places in
lists of them, and only these small rows are sorted; cells are read off the lists as the rows are written. Columns with
many different cells stay as they are.

The order is that of a key of 63 random bits for each row, drawn by the run's own generator: all orders are equally
likely (two keys that are equal aside, one chance in 10^5 with ten million rows, and then two neighbours stand as they
came), so neither a row's place nor its neighbours reveal its part.
Cost: a GROUP BY and a hash join a column and part, a sort of the small rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb
import pyarrow as pa

from duckdb_anon.engine.sql_quoting import ident, idents
from duckdb_anon.model.release_formats.duckdb_types import equal_is_same
from duckdb_anon.parts.run_directory import DATABASE

KEY = "_anon_key"
RELEASED = f"{DATABASE}.main.released"
_FEW = 1000


class Gathered:
    """The rows released so far; see the module."""

    def __init__(self, con: duckdb.DuckDBPyConnection, ask: Callable[[str], pa.Table]) -> None:
        """Find what an earlier run has gathered."""
        self.con, self.ask = con, ask

    @property
    def names(self) -> list[str]:
        """Columns of the release."""
        return [row["column_name"] for row in self._described(RELEASED) if row["column_name"] != KEY]

    def begin(self, out: str, numbered: Sequence[str]) -> None:
        """Make the table of all rows, unless it is there, for rows like those of `out`."""
        there = self.ask(
            f"select 1 as n from duckdb_tables() where database_name = '{DATABASE}' and table_name = 'released'"
        )
        if there.num_rows:
            return
        columns = []
        for k, column in enumerate(self._described(out)):
            name, kind = ident(column["column_name"]), column["column_type"]
            few = f"select count(*) as n from (select distinct {name} from {out} limit {_FEW + 1})"
            as_it_is = column["column_name"] in numbered or not equal_is_same(kind)
            if as_it_is or self.ask(few).to_pylist()[0]["n"] > _FEW:
                columns.append(name)
                continue
            columns.append(f"0::uinteger as {name}")
            self.con.execute(
                f"create or replace table {DATABASE}.cells{k} as select {name} as cell, hash({name}) as h, "
                f"0::uinteger as place from {out} limit 0"
            )
        self.con.execute(
            f"create table {RELEASED} as select {', '.join(columns)}, 0::bigint as {KEY} from {out} limit 0"
        )

    def add(self, out: str, keys: str, first: int, numbered: Sequence[str]) -> None:
        """Add what a part released, in the caller's transaction."""
        listed, columns, joins = self._listed(), [], ""
        for k, name in enumerate(self.names):
            column = ident(name)
            if k not in listed:
                columns.append(f"_anon_o.{column}" + (f" + {first} as {column}" if name in numbered else ""))
                continue
            columns.append(f"_anon_l{k}.place as {column}")
            joins += f" join {DATABASE}.cells{k} as _anon_l{k} on {self._add_cells(k, column, out)}"
        rows = f"(select {', '.join(columns)} from {out} as _anon_o{joins})"
        self.con.execute(f"insert into {RELEASED} from {rows} positional join {keys}")

    def _add_cells(self, k: int, column: str, out: str) -> str:
        """List the cells of a column that are new; return the condition that a row has a listed one."""
        cells = f"{DATABASE}.cells{k}"
        self.con.execute(
            f"insert into {cells} select cell, h, (select count(*) from {cells}) + row_number() over () - 1 from "
            f"(select distinct {column} as cell, hash({column}) as h from {out}) as _anon_n where not exists "
            f"(select 1 from {cells} as _anon_k where _anon_k.h = _anon_n.h "
            "and _anon_k.cell is not distinct from _anon_n.cell)"
        )
        same = f"_anon_l{k}.h = hash(_anon_o.{column})"
        distinct = self.ask(f"select count(*) = count(distinct h) as yes from {cells}").to_pylist()[0]["yes"]
        return same if distinct else f"{same} and _anon_l{k}.cell is not distinct from _anon_o.{column}"

    def released(self, rows: str = RELEASED) -> str:
        """SELECT of released cells."""
        listed = self._listed()
        cells = ", ".join(
            f"(select list(cell order by place) from {DATABASE}.cells{k})[{ident(name)} + 1] as {ident(name)}"
            if k in listed else ident(name)
            for k, name in enumerate(self.names)
        )  # fmt: skip
        return f"select {cells} from {rows}"

    def shuffled(self, rows: str = RELEASED, first: str = "") -> str:
        """SELECT of the release in random order, of which the small rows are stored."""
        order = f"{first}, {KEY}" if first else KEY
        self.con.execute(
            f"create or replace table {DATABASE}.shuffled as select {idents(self.names)} from {rows} order by {order}"
        )
        return self.released(f"{DATABASE}.shuffled")

    def _listed(self) -> set[int]:
        found = self.ask(
            f"select table_name as t from duckdb_tables() where database_name = '{DATABASE}' "
            "and regexp_full_match(table_name, 'cells[0-9]+')"
        )
        return {int(row["t"].removeprefix("cells")) for row in found.to_pylist()}

    def _described(self, relation: str) -> list[dict[str, str]]:
        return list(self.ask(f"describe {relation}").to_pylist())
