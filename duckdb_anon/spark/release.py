"""A release of a DataFrame: parts planned by Spark SQL, worked by DuckDB inside its tasks, shuffled as one.

Every method: those that decide for the table as a whole are worked by one task, on tables of up to `part_rows` rows.
What a part needs to know of the whole (values, counts, hierarchies) is sent with the task. The result is computed once
and kept (`localCheckpoint`): a DataFrame that Spark computes again would draw again, and two draws tell more than one.
Rows come in the order of random keys, numbers of buckets and persons are random.

Cost: a count a column, a sample and a count of the parts, one shuffle by part and one sort. A task holds one part:
about 0.4 GB a million rows, in addition to what Spark itself needs.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from duckdb_anon.engine.input_sql import NUMBER, truth_of
from duckdb_anon.engine.memory_estimate import needed, written
from duckdb_anon.engine.records.call_text import call_on
from duckdb_anon.engine.sql_quoting import ident, idents
from duckdb_anon.engine.transport.column_coding import code_counted
from duckdb_anon.kernels.rng_streams import generator
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.errors import AnonError, ParameterError, RequirementError, cause_of
from duckdb_anon.model.function_specs import ColumnInfo, Cutting
from duckdb_anon.parts.placement import CodedRows
from duckdb_anon.parts.release_checks import check
from duckdb_anon.parts.run_part import FullTable, message_of, numbered_columns, work_part
from duckdb_anon.parts.split_planner import CODE, PERSON
from duckdb_anon.rewrite.dialects import spoken
from duckdb_anon.spark.dataframe_planning import TABLE, Planned, create_tables, message_in_task, planned, quoted
from duckdb_anon.sql_functions import connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEY = "_anon_key"
_PART = "_anon_part"
_RANDOM = "_anon_random"
_NUMBERS = 2**62


def release(
    df: DataFrame,
    call: str,
    *,
    qi: Sequence[str] | None = None,
    sensitive: Sequence[str] | str | None = None,
    keep: Sequence[str] | None = None,
    person: str | None = None,
    categorical: Sequence[str] | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    part_rows: int = 1_000_000,
) -> DataFrame:
    """Release a DataFrame with any method.

    Args:
        df: the original.
        call: the method and its own parameters, without a table: "muco(0.2)", "mondrian(10, l := 3)".
        qi: quasi-identifiers; by default the columns whose metadata has the comment 'anon: quasi'.
        sensitive: sensitive column or columns, likewise.
        keep: columns released as they are, likewise.
        person: column that says whose row it is, likewise.
        categorical: numbers to be taken as names.
        hierarchies: DataFrame of the hierarchy of a column (Spark, pandas or arrow; one row a leaf), by column.
        part_rows: most rows of a part, which one task works on; 1,000 or more. Methods that decide for the table as a
            whole take tables of up to so many rows.

    Returns:
        The release, computed once; column metadata 'comment' says each column's role.

    Raises:
        AnonError: whatever the method refuses; nothing is released then.

    Example:
        release = duckdb_anon.spark.release(df, "mondrian(10)", qi=["age", "sex"], sensitive="disease")
    """
    if part_rows < 1000:
        raise ParameterError(f"spark.release: part_rows={part_rows} is too few. Give 1000 or more")
    roles = {"qi": qi, "sensitive": sensitive, "keep": keep, "person": person, "categorical": categorical}
    found = planned(df, call, roles, hierarchies or {})
    try:
        return _Run(df, found, part_rows).run()
    except Exception as error:
        if (message := message_in_task(str(error))) is None:
            raise
        raise AnonError(message) from None  # Spark's own words are a traceback, with paths
    finally:
        found.con.close()


class _Run(CodedRows):
    """One release of one DataFrame."""

    def __init__(self, df: DataFrame, plan: Planned, part_rows: int) -> None:
        super().__init__(plan.recorded)
        self.df, self.plan, self.part_rows, self.spark = df, plan, part_rows, df.sparkSession
        self.keys: list[pa.Array] = []
        self.attributes: list[Attribute] = []
        self.relation = self.persons = f"_anon_{secrets.token_hex(6)}"
        self.views = [self.relation]

    def run(self) -> DataFrame:
        """Code, plan, work, shuffle, check."""
        from pyspark import StorageLevel
        from pyspark.sql.functions import lit
        from pyspark.sql.pandas.types import from_arrow_schema

        for info in self.coded:
            self._read_values(info)
        coded = self._coded().persist(StorageLevel.MEMORY_AND_DISK)
        try:
            rows = coded.count()
            if rows == 0:
                raise RequirementError(f"{self.name}: the table is empty. Give a table with rows")
            coded.createOrReplaceTempView(self.relation)
            self._check_size(rows)
            cutting = self.cutting if self.recorded.entry.parts else None
            placed = coded.withColumn(_PART, lit(0))
            if cutting is not None:
                part, relation = self.placed(cutting, rows, self.part_rows)
                placed = self.spark.sql(spoken(f"select *, {part} as {_PART} from {relation}", "spark"))
            placed = placed.select(*self._read(cutting), NUMBER, _PART)
            schema = from_arrow_schema(self.plan.columns.append(pa.field(_KEY, pa.int64())))
            released = placed.groupBy(_PART).applyInArrow(self._worker(cutting), schema)
            result = self._labelled(released.orderBy(_KEY).drop(_KEY)).localCheckpoint(eager=True)
        finally:
            for view in self.views:
                self.spark.catalog.dropTempView(view)
            coded.unpersist()
        self._check(result, rows)
        return result

    def ask(self, sql: str) -> pa.Table:
        progress.tick()
        return self.spark.sql(spoken(sql, "spark")).toArrow()

    def _read_values(self, info: ColumnInfo) -> None:
        """The values of a column with their counts, by Spark."""
        from pyspark.sql import functions as f

        person = self.roles.person
        many = f.count(f.lit(1)) if person is None else f.count_distinct(f.col(quoted(person.name)))
        found = self.df.groupBy(f.col(quoted(info.name)).alias("value")).agg(many.alias("n")).toArrow()
        if found.num_rows == 0:
            raise RequirementError(f"{self.name}: the table is empty. Give a table with rows")
        found = found.combine_chunks()
        keys, counts = found.column("value").combine_chunks(), found.column("n").to_numpy()
        self.keys.append(keys)
        self.attributes.append(code_counted(self.name, info, keys, counts, self.tree(info)))

    def _tree_rows(self, info: ColumnInfo) -> pa.Table:
        return self.plan.con.sql(f"select columns(*)::varchar from {ident(str(info.hierarchy))}").to_arrow_table()

    def _coded(self) -> DataFrame:
        """The needed columns with their codes, numbered, and a number by chance."""
        from pyspark.sql import functions as f

        coded = self.df.select(*(f.col(quoted(name)) for name in self.columns))
        coded = coded.withColumn(NUMBER, f.monotonically_increasing_id())
        for k, (info, attribute, keys) in enumerate(zip(self.coded, self.attributes, self.keys, strict=True)):
            table = pa.table({f"_anon_v{k}": keys, f"{CODE}{k}": attribute.codes.astype(np.int32)})
            known = f.broadcast(self.spark.createDataFrame(table))
            values = f.col(quoted(info.name))
            coded = coded.join(known, values.eqNullSafe(f.col(f"_anon_v{k}")), "left").drop(f"_anon_v{k}")
        hashed = f.sha2(f.concat(f.lit(secrets.token_hex(32)), f.col(NUMBER).cast("string")), 256)
        coded = coded.withColumn(_RANDOM, f.conv(f.substring(hashed, 1, 15), 16, 10).cast("bigint"))
        person = self.roles.person
        return coded if person is None else coded.withColumn(PERSON, f.col(quoted(person.name)))

    def store(self, name: str, select: str) -> str:
        """Keep rows in a view."""
        self.views.append(f"{self.relation}_{name}")
        self.spark.sql(spoken(select, "spark")).localCheckpoint().createOrReplaceTempView(self.views[-1])
        return self.views[-1]

    def _check_size(self, rows: int) -> None:
        """Refuse a table that is worked whole and is too large for a task."""
        if self.recorded.entry.parts is None and rows > self.part_rows:
            needs = written(needed(rows, len(self.coded)))
            raise ParameterError(
                f"{self.name}: decides for the table as a whole, so one task works all {rows:,} rows, and "
                f"part_rows={self.part_rows:,}. Give part_rows={rows} where a task may take about {needs}, or use "
                "mondrian, muco or anatomy"
            )

    def deal(self, columns: Sequence[str], parts: int) -> str:
        """Parts by chance; the rows of one value stand in one task, so values begin with different parts."""
        if not columns:
            return f"({_RANDOM} % {parts})"
        ranked = f"row_number() over (partition by {', '.join(columns)} order by {_RANDOM})"
        return f"(({ranked} + {' + '.join(columns)}) % {parts})"

    def _read(self, cutting: Cutting | None) -> list[str]:
        """Columns that a task reads: codes and what is released as it is, or the table as it is."""
        if cutting is None:
            return [quoted(name) for name in self.columns]
        person = [PERSON] if self.roles.person is not None else []
        return [*(quoted(name) for name in self.passthrough), *person, *self.codes]

    def _truths(self) -> dict[str, pa.Array]:
        """Truth of the call's conditions for each value of each column, by its code."""
        found: dict[str, list[pa.Array]] = {}
        con = self.plan.con
        for info, attribute, keys in zip(self.coded, self.attributes, self.keys, strict=True):
            order = pa.array(np.argsort(attribute.codes))
            con.register("_anon_values", pa.table({info.name: keys.take(order)}))
            typed = f"(from {TABLE} limit 0) union all by name from _anon_values"
            for name, sql in self.conditions.items():
                truth = con.sql(f"select {truth_of(sql)} as x from ({typed})").to_arrow_table().column("x")
                found.setdefault(name, []).append(truth.combine_chunks())
        return {name: pa.concat_arrays(truths) for name, truths in found.items()}

    def _worker(self, cutting: Cutting | None) -> Callable[[pa.Table], pa.Table]:
        """What a task does with the rows of one part. Nothing of Spark may be in it."""
        name, call, trees = self.name, call_on(self.recorded, "rows"), dict(self.plan.trees)
        params = {**self.recorded.params, **((cutting.settled if cutting else None) or {})}
        full = FullTable.of(self.recorded, self.attributes, self._truths()) if cutting else None
        typed = pa.table({info.name: keys.slice(0, 0) for info, keys in zip(self.coded, self.keys, strict=True)})
        names = idents([*self.passthrough, *typed.column_names, NUMBER])
        source = f"select {names} from _anon_rows left join _anon_typed on false"
        schema, numbered = self.plan.columns, numbered_columns(self.recorded)

        def work(rows: pa.Table) -> pa.Table:
            with connect() as con:
                con.execute("set threads = 1; set python_enable_replacements = false")
                con.register("_anon_rows", rows)
                if full is None:
                    _work_table(con, name, call, trees)
                else:
                    con.register("_anon_typed", typed)
                    work_part(con, full, params, rows, source, "released")
                out = con.sql("from released").to_arrow_table()
            rng = generator(None)
            for k in numbered:
                values, index = np.unique(out.column(k).to_numpy(), return_inverse=True)
                fresh = rng.integers(1, _NUMBERS, len(values), dtype=np.int64)
                out = out.set_column(k, out.schema.field(k).name, pa.array(fresh[index], pa.int64()))
            keys_of_rows = pa.array(rng.integers(-(2**63), 2**63 - 1, out.num_rows, dtype=np.int64))
            return out.cast(schema).append_column(_KEY, keys_of_rows)

        return work

    def _labelled(self, released: DataFrame) -> DataFrame:
        """Column metadata that says what each column is, as comments do on DuckDB."""
        comments = self.recorded.column_comments()
        for name in released.columns:
            if name in comments:
                released = released.withMetadata(name, {"comment": comments[name]})
        return released

    def _check(self, result: DataFrame, rows: int) -> None:
        """The checks of the finished release, in Spark's own SQL."""
        views = [f"{self.relation}_released", *(self.values(k) for k in range(len(self.roles.qi)))]
        frames = [result]
        for attribute, keys in zip(self.attributes, self.keys[: len(views) - 1], strict=False):
            counted = pa.table({"value": keys, "n": attribute.counts[attribute.codes]})
            frames.append(self.spark.createDataFrame(counted))
        for view, frame in zip(views, frames, strict=True):
            frame.createOrReplaceTempView(view)
        try:
            check(self, views[0], result.columns, rows, ident)
        finally:
            for view in views:
                self.spark.catalog.dropTempView(view)

    def values(self, k: int) -> str:
        """The view of values that `_check` makes."""
        return f"{self.relation}_values{k}"


def _work_table(con: duckdb.DuckDBPyConnection, name: str, call: str, trees: Mapping[str, pa.Table]) -> None:
    """Make the table `released` by the ordinary call on a full table, the view `_anon_rows`."""
    create_tables(con, trees)
    con.execute(f"create table rows as select * exclude ({NUMBER}, {_PART}) from _anon_rows")
    try:
        con.execute(f"create table released as from {call}")
    except duckdb.Error as error:
        raise AnonError(message_of(error, name)) from cause_of(error)
