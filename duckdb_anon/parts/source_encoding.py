"""The original of a run in parts: the columns a call needs, their codes and values, in the run's own database.

Every quasi-identifier and sensitive column is coded by joining its values, so that what follows (counting, cutting, the
method) reads small whole numbers. Cost: a GROUP BY and a hash join a column.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from duckdb_anon.engine.catalog import sensitive_coarsening as edges
from duckdb_anon.engine.catalog.catalog import Catalog
from duckdb_anon.engine.catalog.collation import check_types, guard
from duckdb_anon.engine.input_sql import NUMBER, as_texts, declaring, source_column, truth_of
from duckdb_anon.engine.memory_estimate import written
from duckdb_anon.engine.records.call_text import Recorded, seed_of_part
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.engine.transport.column_coding import code_counted
from duckdb_anon.kernels.rng_streams import generator
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.errors import AnonError, RequirementError
from duckdb_anon.model.function_specs import ColumnInfo
from duckdb_anon.parts.placement import CodedRows
from duckdb_anon.parts.run_part import FullTable
from duckdb_anon.parts.split_planner import CODE, PERSON

_TYPES = ((2**8, "utinyint"), (2**16, "usmallint"), (2**32, "uinteger"))
DATABASE = "_anon_parts"
"""Name under which the run's database is attached."""
_SOURCE, _EDGED = f"{DATABASE}.source", f"{DATABASE}.edged"


class Original(CodedRows):
    """The columns of one call's table; see the module."""

    def __init__(self, con: duckdb.DuckDBPyConnection, recorded: Recorded, folder: Path) -> None:
        """Prepare to read."""
        super().__init__(recorded)
        self.con, self.folder, self.source = con, folder, recorded.relation.sql
        self.relation, self.persons = _SOURCE, ""
        if self.roles.person is not None:
            person = f"{ident(self.roles.person.name)} as {PERSON}"
            self.relation, self.persons = (
                f"(select *, {person} from {_SOURCE})",
                f"(select {person} from {self.source})",
            )

    def ask(self, sql: str) -> pa.Table:  # noqa: D102
        progress.tick()
        return self.con.sql(sql).to_arrow_table()

    def copy(self) -> int:
        """Make the table `source`: the codes of a call's columns and other columns; return its rows."""
        rows = self.ask(f"select count(*) as n from {self.source}").to_pylist()[0]["n"]
        if rows == 0:
            raise RequirementError(f"{self.name}: the table is empty. Give a table with rows")
        progress.say("reading")
        self._check_disk(rows)
        check_types(self.name, self.coded)
        self.ask(f"select {guard(self.name, self.coded, self.source)}")
        self._join_rare_values()
        for k, info in enumerate(self.coded):
            self._store_values(k, info)
        joins = "".join(
            f" left join (select value as _anon_value{k}, code as {CODE}{k} from {DATABASE}.v{k}) "
            f"on {ident(info.name)} is not distinct from _anon_value{k}"
            for k, info in enumerate(self.coded)
        )
        columns = [*(f"_anon_s.{ident(name)}" for name in self.passthrough), NUMBER, *self.codes]
        self.con.execute(
            f"create or replace table {_SOURCE} as select {', '.join(columns)} from "
            f"(select {self._read(self.columns)}, row_number() over () - 1 as {NUMBER} "
            f"from {self.source}) as _anon_s{joins}"
        )
        self._check_codes()
        self.con.execute(f"drop table if exists {_EDGED}")
        return int(rows)

    def _join_rare_values(self) -> None:
        """Where the call has `sensitive_edges`, read a copy of the original in which rare values are joined."""
        params = self.recorded.params
        if not edges.are_joined(params):
            return
        relation = self.recorded.relation
        needed_alone = replace(relation, sql=f"(select {self._read(self.columns)} from {self.source})")
        by_default = edges.PARAMETER.name not in self.recorded.arguments
        name, k = self.recorded.entry.name, params[edges.PARAMETER.name]
        rows = edges.joined_rows(name, needed_alone, self.roles, k, by_default)
        self.con.execute(f"create or replace table {_EDGED} as {rows}")
        self.source = _EDGED

    def lay_out(self, part: str, relation: str) -> None:
        """Make the table `parted`, rows part by part, and `parts`, with the rows and the first row of each."""
        columns = [*map(ident, self.passthrough), *self.codes]
        self.con.execute(
            f"create or replace table {DATABASE}.parted as select {', '.join(columns)}, {part} as _anon_part "
            f"from {relation} order by _anon_part, {NUMBER}"
        )
        self.con.execute(
            f"create or replace table {DATABASE}.parts as select _anon_part as part, count(*) as rows, "
            f"min(rowid) as first from {DATABASE}.parted group by all"
        )

    def part(self, part: int) -> tuple[pa.Table, str]:
        """The rows of a part as `run_part` reads them, and SELECT of what is released unchanged."""
        first = self.ask(f"select first from {DATABASE}.parts where part = {part}").to_pylist()[0]["first"]
        number, person = f"rowid - {first} as {NUMBER}", self.roles.person
        rows = f"from {DATABASE}.parted where _anon_part = {part}"
        coded = [*self.codes, *([f"{ident(person.name)} as {PERSON}"] if person is not None else []), number]
        typed = (f"(select value from {DATABASE}.v{k} limit 0) as {ident(i.name)}" for k, i in enumerate(self.coded))
        unchanged = [*map(ident, self.passthrough), *typed, number]
        return self.ask(f"select {', '.join(coded)} {rows}"), f"select {', '.join(unchanged)} {rows}"

    @cached_property
    def full_table(self) -> FullTable:
        """What a part needs to know of the table."""
        truths = {}
        for k, name in enumerate(self.conditions):
            found = [self.ask(f"select x{k} from {DATABASE}.v{j} order by code") for j in range(len(self.coded))]
            truths[name] = pa.concat_tables(found).column(0).combine_chunks()
        return FullTable.of(self.recorded, self.attributes, truths)

    def _read(self, names: Iterable[str]) -> str:
        """SELECT list of columns of the original."""
        kept_enums = declaring(self.recorded.layout)
        return ", ".join(source_column(name, self.recorded.relation, kept_enums) for name in names)

    def store(self, name: str, select: str) -> str:
        """Store rows in the database of the run, where an interrupted run may have stored them already."""
        self.con.execute(f"create table if not exists {DATABASE}.{name} as {select}")
        return f"{DATABASE}.{name}"

    def deal(self, columns: Sequence[str], parts: int) -> str:
        """Parts by chance. A hash of the number alone would reveal who shares a part, whatever the salt."""
        order = f"sha256('{self.salt}' || {NUMBER}::varchar)"
        if not columns:
            return f"(('0x' || {order}[:15])::bigint % {parts})"
        return f"((row_number() over (order by {', '.join(columns)}, {order}) - 1) % {parts})"

    @cached_property
    def salt(self) -> str:
        """What makes hashes of numbers unpredictable."""
        return generator(seed_of_part(self.recorded.params["seed"], -1)).bytes(32).hex()

    @cached_property
    def attributes(self) -> list[Attribute]:  # type: ignore[override]
        """The values of every coded column with their counts, in the order of their codes."""
        return [
            self._attribute(info, f"select value, n from {DATABASE}.v{k} order by code")
            for k, info in enumerate(self.coded)
        ]

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
                f"{written(least)} or more while they are worked on. Free some space, or write to another disk"
            )

    def _store_values(self, k: int, info: ColumnInfo) -> None:
        """Table v{k}: each value of a column, its code, its rows, and the truths of conditions in one of them."""
        person = self.roles.person
        many = f"count(distinct {PERSON})" if person is not None else "count(*)"
        persons = f", {ident(person.name)} as {PERSON}" if person is not None else ""
        names = dict.fromkeys([info.name, *([person.name] if person is not None else [])])
        truths = "".join(f", {truth_of(sql)} as x{j}" for j, sql in enumerate(self.conditions.values()))
        listed = "".join(f", x{j}" for j in range(len(self.conditions)))
        any_truths = "".join(f", any_value(x{j}) as x{j}" for j in range(len(self.conditions)))
        self.con.execute(
            f"create or replace table {DATABASE}.raw as select *, row_number() over () - 1 as place from (select "
            f"_anon_value as value, {many} as n{any_truths} from "
            f"(select {ident(info.name)} as _anon_value{persons}{listed} from "
            f"(select {self._read(names)}{truths} from {self.source})) group by _anon_value)"
        )
        attribute = self._attribute(info, f"select value, n from {DATABASE}.raw order by place")
        codes = pa.table({"code": attribute.codes, "place": np.arange(len(attribute.codes))})
        kind = next(name for bound, name in _TYPES if len(attribute.codes) < bound)
        with self.registered("_anon_codes", codes) as view:
            self.con.execute(
                f"create or replace table {DATABASE}.v{k} as select value, n, code::{kind} as code{listed} "
                f"from {DATABASE}.raw join {view} using (place) order by code"
            )
        self.con.execute(f"drop table {DATABASE}.raw")

    def _attribute(self, info: ColumnInfo, sql: str) -> Attribute:
        """A column coded from a SELECT of its values and their rows."""
        found = self.ask(f"select value{as_texts(info.type)} as value, n from ({sql})")
        counts = found.column("n").combine_chunks().to_numpy(zero_copy_only=False)
        return code_counted(self.name, info, found.column("value"), counts, self.tree(info))

    def values(self, k: int) -> str:  # noqa: D102
        return f"{DATABASE}.v{k}"

    def _tree_rows(self, info: ColumnInfo) -> pa.Table:
        database, schema = self.con.execute("select current_database(), current_schema()").fetchall()[0]
        tree = Catalog(self.con, database, schema).relation(self.name, f"hierarchy of {info.name}", info.hierarchy)
        return self.ask(f"select columns(*)::varchar from {tree.sql}")

    def _check_codes(self) -> None:
        missing = " or ".join(f"{code} is null" for code in self.codes) or "false"
        if self.ask(f"select count(*) as n from {_SOURCE} where {missing}").to_pylist()[0]["n"]:
            raise AnonError(f"{self.name}: the original changed while it was read. Run the call again")
