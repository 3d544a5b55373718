"""The original of a run in parts: the columns a call needs, their codes and values, in the run's own database.

Every column is coded by joining its values, so that what follows (counting, cutting, telling a part of the whole's
values) reads small whole numbers. Cost: a GROUP BY and a hash join a column.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from duckdb_anon.engine.call_text import Recorded
from duckdb_anon.engine.catalog import Catalog
from duckdb_anon.engine.collation import check_types, guard
from duckdb_anon.engine.hierarchy_io import read_tree
from duckdb_anon.engine.memory_estimate import written
from duckdb_anon.engine.partition_context import NUMBER
from duckdb_anon.engine.sql_quoting import ident, idents, literal
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import CodeArray, CodedTable, IntArray
from duckdb_anon.model.errors import AnonError, ParameterError, RequirementError
from duckdb_anon.model.function_specs import ColumnInfo, Cutting
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.release_formats.duckdb_types import equal_is_same
from duckdb_anon.parts.run_directory import DATABASE
from duckdb_anon.parts.split_tree import CODE
from duckdb_anon.parts.value_dictionaries import Values, most_told, values_of

_TYPES = ((2**8, "utinyint"), (2**16, "usmallint"), (2**32, "uinteger"))
_FEW = 2**16
"""Values of a column that are looked up by their codes when a part is worked; columns with more are kept."""
_OFTEN = 4


class Original:
    """The columns of one call's table; see the module."""

    def __init__(self, con: duckdb.DuckDBPyConnection, recorded: Recorded, folder: Path) -> None:
        """Prepare to read.

        Args:
            con: a loaded connection that sees the table.
            recorded: the call.
            folder: the run's own.
        """
        self.con, self.recorded, self.folder = con, recorded, folder
        self.name, roles = recorded.entry.name, recorded.roles
        self.coded = roles.qi + roles.sensitive
        others = roles.keep + ((roles.person,) if roles.person else ())
        self.columns = list(dict.fromkeys(info.name for info in self.coded + others))
        self.looked_up: dict[str, int] = {}

    def ask(self, sql: str) -> pa.Table:
        """Answer a query."""
        progress.tick()
        return self.con.sql(sql).to_arrow_table()

    def copy(self) -> int:
        """Make the table `source`: the codes of a call's columns and what they do not say; return its rows."""
        rows = self.ask(f"select count(*) as n from {self.recorded.relation.sql}").to_pylist()[0]["n"]
        if rows == 0:
            raise RequirementError(f"{self.name}: the table is empty; there is nothing to work on")
        progress.say("reading")
        self._check_disk(rows)
        check_types(self.name, self.coded)
        self.ask(f"select {guard(self.name, self.coded, self.recorded.relation.sql)}")
        for k, info in enumerate(self.coded):
            many = self._store_values(k, info)
            exact = info.type != "" and equal_is_same(info.type)
            if many <= _FEW and exact:
                self.looked_up[info.name] = k
        joins = "".join(
            f" left join (select _key as _anon_key{k}, code as {CODE}{k} from {DATABASE}.v{k}) "
            f"on {ident(info.name)} is not distinct from _anon_key{k}"
            for k, info in enumerate(self.coded)
        )
        codes = "".join(f", {CODE}{k}" for k in range(len(self.coded)))
        own = "".join(f"_anon_s.{ident(name)}, " for name in self.columns if name not in self.looked_up)
        self.con.execute(
            f"create or replace table {DATABASE}.source as select {own}{NUMBER}{codes} from "
            f"(select {idents(self.columns)}, row_number() over () - 1 as {NUMBER} "
            f"from {self.recorded.relation.sql}) as _anon_s{joins}"
        )
        self._check_codes()
        return int(rows)

    def lay_out(self, part: str, relation: str) -> None:
        """Make the table `parted`, rows part by part, and `parts`, which says how many and from which row on.

        Args:
            part: SQL of the part of a row.
            relation: the relation it is asked of.
        """
        held = [ident(name) for name in self.columns if name not in self.looked_up]
        held += [f"{CODE}{k}" for k in self.looked_up.values()]
        self.con.execute(
            f"create or replace table {DATABASE}.parted as select {', '.join(held)}, {part} as _anon_part "
            f"from {relation} order by _anon_part, {NUMBER}"
        )
        self.con.execute(
            f"create or replace table {DATABASE}.parts as select _anon_part as part, count(*) as rows, "
            f"min(rowid) as first from {DATABASE}.parted group by all"
        )

    def piece(self, part: int, rows: int) -> str:
        """SELECT of the rows of a part as the original has them, numbered, and after them those that stand for values.

        Args:
            part: number of the part.
            rows: its rows.
        """
        held = {row["column_name"] for row in self.ask(f"describe {DATABASE}.parted").to_pylist()}
        columns, joins = [], ""
        for name in self.columns:
            if name in held:
                columns.append(f"_anon_p.{ident(name)}")
                continue
            k = next(k for k, info in enumerate(self.coded) if info.name == name)
            columns.append(f"_anon_v{k}.value as {ident(name)}")
            joins += f" join {DATABASE}.v{k} as _anon_v{k} on _anon_v{k}.code = _anon_p.{CODE}{k}"
        first = self.ask(f"select first from {DATABASE}.parts where part = {part}").to_pylist()[0]["first"]
        return (
            f"select {', '.join(columns)}, _anon_p.rowid - {first} as {NUMBER} "
            f"from {DATABASE}.parted as _anon_p{joins} where _anon_part = {part} union all "
            f"select {idents(self.columns)}, {NUMBER} + {rows} as {NUMBER} from {DATABASE}.told"
        )

    def counted(self, columns: int) -> tuple[str, str]:
        """Relation of the first so many codes, and SQL of how many rows it stands for.

        Where rows repeat often their combinations are counted once, and levels of cuts are counted on them.
        """
        source, codes = f"{DATABASE}.source", ", ".join(f"{CODE}{k}" for k in range(columns))
        found = self.ask(f"select {_OFTEN} * approx_count_distinct(hash({codes})) < count(*) as often from {source}")
        if not found.to_pylist()[0]["often"]:
            return source, "count(*)"
        self.con.execute(
            f"create or replace table {DATABASE}.counted as select {codes}, count(*) as _anon_many from {source} "
            "group by all"
        )
        return f"{DATABASE}.counted", "cast(sum(_anon_many) as bigint)"

    @cached_property
    def values(self) -> list[Values]:
        """The values of every coded column."""
        return [self._values(k, info) for k, info in enumerate(self.coded)]

    def cutting(self) -> Cutting:
        """How the method cuts, asked with the combinations of sensitive values that occur."""
        entry = self.recorded.entry
        if entry.parts is None:
            raise ParameterError(
                f"{self.name}: decides for the table as a whole, so it cannot be worked in parts; leave part_rows and "
                "memory out, with a larger memory_limit, or use mondrian, muco or anatomy"
            )
        attributes = [value.attribute for value in self.values]
        codes, _ = self.combinations
        q = len(self.recorded.roles.qi)
        rows = np.arange(len(codes))
        sensitive = tuple(replace(a, codes=codes[rows, k]) for k, a in enumerate(attributes[q:]))
        table = CodedTable(len(codes), tuple(attributes[:q]), sensitive)
        return entry.parts(table, self.recorded.params, self.repeated)

    @cached_property
    def combinations(self) -> tuple[CodeArray, IntArray]:
        """Codes of the combinations of sensitive values that occur, and their rows (persons)."""
        q = len(self.recorded.roles.qi)
        names = [f"{CODE}{k}" for k in range(q, len(self.coded))]
        if not names:
            return np.zeros((1, 0), dtype=np.int32), np.ones(1, dtype=np.int64)
        stored = {row["table_name"] for row in self.ask(
            f"select table_name from duckdb_tables() where database_name = {literal(DATABASE)}"
        ).to_pylist()}  # fmt: skip
        if "combinations" not in stored:
            person = self.recorded.roles.person
            many = f"count(distinct {ident(person.name)})" if person is not None and self.repeated else "count(*)"
            self.con.execute(
                f"create table {DATABASE}.combinations as select {', '.join(names)}, {many} as n "
                f"from {DATABASE}.source group by all order by all"
            )
        found = self.ask(f"from {DATABASE}.combinations order by all")
        *codes, rows = (c.cast(pa.int64()).combine_chunks().to_numpy(zero_copy_only=False) for c in found.columns)
        return np.stack(codes, axis=1).astype(np.int32), rows

    @cached_property
    def repeated(self) -> bool:
        """Whether somebody has several rows."""
        person = self.recorded.roles.person
        if person is None or self.recorded.entry.unit != "person":
            return False
        column = ident(person.name)
        found = self.ask(
            f"select count(*) > count(distinct {column}) + count(*) filter ({column} is null) as several "
            f"from {self.recorded.relation.sql}"
        )
        return bool(found.to_pylist()[0]["several"])

    def store_told(self) -> None:
        """Rows that stand for values: as many as the column with the most values, shorter ones told again."""
        many = max(most_told(self.values), 1)
        columns, joins = [], ""
        by_name = {info.name: k for k, info in enumerate(self.coded)}
        for name in self.columns:
            if name not in by_name:
                columns.append(f"(select any_value({ident(name)}) from {DATABASE}.parted limit 1) as {ident(name)}")
                continue
            k = by_name[name]
            columns.append(f"t{k}.value as {ident(name)}")
            joins += (
                f" join (select value, row_number() over (order by code) - 1 as i from {DATABASE}.v{k} where told) "
                f"as t{k} on t{k}.i = r.i % {max(1, len(self.values[k].told))}"
            )
        self.con.execute(
            f"create or replace table {DATABASE}.told as select {', '.join(columns)}, r.i as {NUMBER} "
            f"from range({many}) as r(i){joins}"
        )

    @contextmanager
    def registered(self, name: str, table: pa.Table) -> Iterator[str]:
        """Let SQL see an arrow table under a name until the block ends."""
        self.con.register(name, table)
        try:
            yield name
        finally:
            self.con.unregister(name)

    def _check_disk(self, rows: int) -> None:
        """Refuse before anything is copied where it will not fit."""
        free = shutil.disk_usage(self.folder).free
        least = rows * 8 * (len(self.columns) + 2)
        if least > free:
            raise AnonError(
                f"release: {self.folder.parent} has {written(free)} left, and {rows:,} rows take "
                f"{written(least)} or more while they are worked on; free some space, or write to another disk"
            )

    def _catalog(self) -> Catalog:
        database, schema = self.con.execute("select current_database(), current_schema()").fetchall()[0]
        return Catalog(self.con.cursor(), database, schema)

    def _store_values(self, k: int, info: ColumnInfo) -> int:
        """Table v{k}: each value of a column, its key, its code, and its rows; return how many."""
        person = self.recorded.roles.person
        many = f"count(distinct {ident(person.name)})" if person is not None else "count(*)"
        column = ident(info.name)
        read = f"{column}, {column} as _anon_key" + (f", {ident(person.name)}" if person is not None else "")
        self.con.execute(
            f"create or replace table {DATABASE}.raw as select *, row_number() over () - 1 as place from (select "
            f"any_value({column}) as value, _anon_key as _key, {many} as n from "
            f"(select {read} from {self.recorded.relation.sql}) group by _anon_key)"
        )
        found = self.ask(f"select _key, n from {DATABASE}.raw order by place")
        counts = found.column("n").combine_chunks().to_numpy(zero_copy_only=False)
        values = values_of(self.name, info, found.column("_key"), counts, self._tree(info))
        told = np.zeros(len(counts), dtype=bool)
        told[values.told] = True
        codes = pa.table({"code": values.attribute.codes, "place": np.arange(len(counts)), "told": told})
        kind = next(name for bound, name in _TYPES if len(counts) < bound)
        with self.registered("_anon_codes", codes) as view:
            self.con.execute(
                f"create or replace table {DATABASE}.v{k} as select value, _key, n, code::{kind} as code, told "
                f"from {DATABASE}.raw join {view} using (place) order by code"
            )
        self.con.execute(f"drop table {DATABASE}.raw")
        return len(counts)

    def _values(self, k: int, info: ColumnInfo) -> Values:
        """The values of the k-th coded column, in the order of their codes."""
        found = self.ask(f"select _key, n from {DATABASE}.v{k} order by code")
        counts = found.column("n").combine_chunks().to_numpy(zero_copy_only=False)
        return values_of(self.name, info, found.column("_key"), counts, self._tree(info))

    def _tree(self, info: ColumnInfo) -> Hierarchy | None:
        if not info.hierarchy:
            return None
        catalog = self._catalog()
        relation = catalog.relation(self.name, f"hierarchy of {info.name}", info.hierarchy)
        rows = self.ask(f"select columns(*)::varchar from {relation.sql}").combine_chunks().to_struct_array()
        whole = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
        return read_tree(self.name, info.hierarchy, whole)

    def _check_codes(self) -> None:
        missing = " or ".join(f"{CODE}{k} is null" for k in range(len(self.coded))) or "false"
        if self.ask(f"select count(*) as n from {DATABASE}.source where {missing}").to_pylist()[0]["n"]:
            raise AnonError(f"{self.name}: the original changed while it was read; run the call again")
