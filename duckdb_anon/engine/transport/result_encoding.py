"""What a kernel returns, as one row of named columns for SQL: `result_sql` writes the SELECT that reads them.

A released column is a dictionary: `codes` hold the place of each row's value among the different values of the column,
which are lists that depend on the class of its cells. Places count from 1, as in DuckDB's lists; 0 is
NULL. Values travel as text, once each, which DuckDB casts to the type of the column. Rows are shuffled here, before SQL
sees them. Cost: a sort of the groups and a pass over the rows of each column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from duckdb_anon.engine.arrow import MOST_ROWS, in_one_piece
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.engine.transport.column_coding import value_texts
from duckdb_anon.engine.transport.input_scan import Statement, pop, put
from duckdb_anon.engine.transport.number_formatting import texts
from duckdb_anon.kernels.array_ops import gathered
from duckdb_anon.kernels.partition.sort_count import order_by, ranges
from duckdb_anon.kernels.row_keys import keys_of, keys_of_lists
from duckdb_anon.kernels.thread_pool import parallel_map
from duckdb_anon.model import released_columns as c
from duckdb_anon.model.coded_table import Attribute, IntArray
from duckdb_anon.model.errors import ColumnError, RequirementError
from duckdb_anon.model.function_specs import ColumnPlan
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_formats import BUCKET, SOURCE

Array = NDArray[Any]
_TYPES = {"codes": pa.int32(), "numbers": pa.int64(), "reals": pa.float64(), "texts": pa.string()}
_MAPS = [(name, pa.map_(pa.string(), pa.list_(kind))) for name, kind in _TYPES.items()]
_LISTS = ("lists", pa.map_(pa.string(), pa.list_(pa.list_(pa.int32()))))
_ARROW_TYPE = pa.struct([("error", pa.string()), ("n", pa.int64()), ("rows", pa.int64()), *_MAPS, _LISTS])
_ROWS_TYPE = (
    "codes MAP(VARCHAR, INTEGER[]), numbers MAP(VARCHAR, BIGINT[]), reals MAP(VARCHAR, DOUBLE[]), "
    "texts MAP(VARCHAR, VARCHAR[])"
)
ROWS_TYPE = f"STRUCT({_ROWS_TYPE})"
RETURN_TYPE = f'STRUCT(error VARCHAR, n BIGINT, "rows" BIGINT, {_ROWS_TYPE}, lists MAP(VARCHAR, INTEGER[][]))'
_RAREST, _MOST_VALUES = 1000, 2
"""A channel stands in one row in as many as its domains have values, and in so many at most, for DuckDB stores a list
once a row; and a row holds so many values of domains at most."""


@dataclass
class Columns:
    """Named columns by type; a column of lists is their offsets and their values."""

    codes: dict[str, Array] = field(default_factory=dict)
    numbers: dict[str, Array | Sequence[Any]] = field(default_factory=dict)
    reals: dict[str, Array | Sequence[Any]] = field(default_factory=dict)
    texts: dict[str, Sequence[str | None]] = field(default_factory=dict)
    lists: dict[str, tuple[IntArray, Array]] = field(default_factory=dict)

    def maps(self, function: str) -> list[pa.Array]:
        """A map from names to columns for each type but lists; columns go as they are copied."""
        maps = []
        for name, kind in _TYPES.items():
            columns = getattr(self, name)
            arrays = [pa.array(values, kind) for values in columns.values()]
            maps.append(_map(function, list(columns), arrays, kind))
            columns.clear()
        return maps


@dataclass
class Result:
    """What SQL reads."""

    # columns with an entry a row, which SQL takes in the last step: they would be copied with each step before
    rows: Columns = field(default_factory=Columns)
    looked_up: Columns = field(default_factory=Columns)  # lists of what rows look up

    def to_arrow(self, function: str, count: int, statement: Statement, handed: object = None) -> pa.StructArray:
        """An array of one struct, with the number under which its rows, or what is handed over, are stored."""
        rows = handed
        if rows is None:
            rows = pa.StructArray.from_arrays(self.rows.maps(function), fields=[pa.field(*pair) for pair in _MAPS])
        lists = [
            pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.int32()))
            for offsets, values in self.looked_up.lists.values()
        ]
        fields = [
            pa.array([None], pa.string()),
            pa.array([count], pa.int64()),
            pa.array([put(statement, rows)], pa.int64()),
            *self.looked_up.maps(function),
            _map(function, list(self.looked_up.lists), lists, pa.list_(pa.int32())),
        ]
        return pa.StructArray.from_arrays(fields, fields=list(_ARROW_TYPE))


def take(call: pa.StructArray) -> pa.Array:
    """The rows stored under a number, which are handed over once."""
    (number,) = in_one_piece(call).field("rows").to_pylist()
    rows: pa.StructArray = pop(number)
    return rows


def _map(function: str, names: list[str], columns: list[pa.Array], kind: pa.DataType) -> pa.MapArray:
    offsets = np.cumsum([0, *map(len, columns)])
    if offsets[-1] > MOST_ROWS:
        raise RequirementError(
            f"{function}: the answer has {offsets[-1]:,} entries and DuckDB's lists hold {MOST_ROWS:,}. Work in parts "
            "(duckdb-anon release ... --part-rows 1000000, or duckdb_anon.release(..., part_rows=1000000)), or name "
            "fewer columns"
        )
    values = pa.concat_arrays([*columns, pa.array([], kind)])  # a copy, in Arrow's own memory
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
    return pa.MapArray.from_arrays(pa.array([0, len(names)], pa.int32()), pa.array(names, pa.string()), lists)


def error_result(text: str) -> pa.Array:
    """The result of a call that failed."""
    empty: dict[str, Any] = {name: [] for name in (*_TYPES, "lists")}
    return pa.array([{"error": text, "n": 0, "rows": 0, **empty}], _ARROW_TYPE)


def encode_rows(returns: Mapping[str, str], columns: Mapping[str, Sequence[Any]]) -> Result:
    """Columns of an answer, by the type of each as `result_sql.report_select` reads them; None is NULL."""
    result = Result()
    for name, kind in returns.items():
        values, key = columns[name], ident(name)
        if kind in ("VARCHAR", "CODE"):
            result.rows.texts[key] = values
        elif kind.startswith("DOUBLE"):
            result.rows.reals[key] = values
        elif kind == "BOOLEAN":
            result.rows.numbers[key] = [None if value is None else int(value) for value in values]
        else:
            result.rows.numbers[key] = values
    return result


def length(cells: Any) -> int:
    """Number of released rows of some cells."""
    if isinstance(cells, c.Struct):
        return length(next(iter(cells.fields.values())))
    per_row = {c.Source: "rows", c.Coded: "codes", c.Whole: "values", c.Real: "values"}.get(type(cells), "index")
    return len(vars(cells)[per_row])


def in_buckets(order: IntArray, cells: Mapping[str, c.Cells]) -> IntArray:
    """An order in which the rows of a bucket stand together, by number, which is released as well."""
    bucket = cells.get(BUCKET.key)
    if not isinstance(bucket, c.Whole):
        return order
    return order[order_by(bucket.values[order], np.zeros(1, dtype=np.int64), 1)]


def encode_release(
    plans: Sequence[ColumnPlan], cells: dict[str, c.Cells], encoder: ReleaseEncoder, function: str
) -> Result:
    """The columns of a release, encoded side by side; `cells` are taken out one by one."""
    release = Result()

    def encode(plan: ColumnPlan) -> None:
        given = cells.pop(plan.name, cells.get(c.ROWS) if plan.cells is c.Source else None)
        if given is None:
            raise TypeError(f"{function} planned the column '{plan.name}' and did not release it")
        encoder.column(release, plan, given, ident(plan.name))

    parallel_map(encode, plans)
    return release


@dataclass(frozen=True)
class ReleaseEncoder:
    """Encodes released columns."""

    attributes: Mapping[str, Attribute]  # what the codes of cells belong to, by name
    source_row: IntArray  # the source row number of each kernel row
    order: Array  # the kernel's rows in the order in which they are released

    def column(self, result: Result, plan: ColumnPlan, cells: Any, key: str) -> None:
        """Add a released column to `result` under the name `key`."""
        tick()
        if plan.cells is c.Real and isinstance(cells, c.Whole):
            cells = c.Real(cells.values.astype(np.float64))
        if not isinstance(cells, plan.cells):
            raise TypeError(f"column '{plan.name}' was planned as {plan.cells.__name__}, got {type(cells).__name__}")
        if is_channel(plan):
            self._channels(result, plan, cells, key)
        elif isinstance(cells, c.Struct):
            for part in plan.fields:
                self.column(result, part, cells.fields[part.name], f"{key}.{ident(part.name)}")
        elif isinstance(cells, c.Source):
            rows = np.where(cells.rows < 0, -1, self.source_row[cells.rows])
            result.rows.numbers[source_key(plan, key)] = gathered(rows, self.order)
        elif isinstance(cells, c.Whole):
            result.rows.numbers[key] = gathered(cells.values, self.order)
        elif isinstance(cells, c.Real):
            result.rows.reals[key] = gathered(cells.values, self.order)
        else:
            self._looked_up(result, plan.column or plan.name, cells, key)

    def _looked_up(self, result: Result, name: str, cells: Any, key: str) -> None:
        """A column whose values are listed once."""
        if isinstance(cells, (c.Coded, c.ValueSet, c.Counts)):
            result.looked_up.texts[key] = value_texts(self.attributes[name])
        if isinstance(cells, c.Coded):
            result.rows.codes[key] = self._places(cells.codes)
            return
        if isinstance(cells, c.Value):
            result.looked_up.texts[key] = texts(self.attributes[name].scale_for("Value"), cells.numbers)
            result.rows.codes[key] = self._places(cells.index)
            return
        if isinstance(cells, c.Counts):
            result.looked_up.lists[key] = cells.offsets, cells.codes + 1
            result.looked_up.lists[f"{key}.counts"] = cells.offsets, cells.counts
            result.rows.codes[key] = self._places(cells.index)
            return
        keys = _different(cells)
        group_cell = keys.of_row.astype(np.int32)
        if isinstance(cells, c.Interval) and self.attributes[name].null_code >= 0:
            group_cell[cells.lower == self.attributes[name].null_code] = -1  # a group of NULLs alone is NULL
        result.rows.codes[key] = self._places(gathered(group_cell, cells.index))
        if isinstance(cells, c.Interval):
            ends = self._ends(name, cells)
            for end, codes in (("lower", cells.lower[keys.first]), ("upper", cells.upper[keys.first])):
                result.looked_up.texts[f"{key}.{end}"] = ends.take(pa.array(codes, mask=codes < 0))
        elif isinstance(cells, c.Node):
            result.looked_up.texts[key] = [cells.labels[node] for node in cells.node[keys.first].tolist()]
        else:
            members = cells.codes if isinstance(cells, c.ValueSet) else cells.nodes
            sizes = np.diff(cells.offsets)[keys.first]
            offsets = np.concatenate([[0], np.cumsum(sizes)])
            result.looked_up.lists[key] = offsets, members[ranges(cells.offsets[keys.first], sizes)] + 1
            if isinstance(cells, c.NodeSet):
                result.looked_up.texts[key] = cells.labels

    def _channels(self, result: Result, plan: ColumnPlan, cells: Any, key: str) -> None:
        """How columns were randomized, in every row or, where the domains are long, in some of them."""
        channels = [(plan, cells, key)]
        if isinstance(cells, c.Struct):
            channels = [(part, cells.fields[part.name], f"{key}.{ident(part.name)}") for part in plan.fields]
        listed = 0
        for part, channel, name in channels:
            attribute = self.attributes[part.column or part.name]
            if not part.declared_type and (channel.codes >= attribute.domain).any():
                raise ColumnError(
                    f"column '{attribute.name}' declares values that no row has, but the planner cannot see its type. "
                    "Commit the table first, or take the table's values: domain := 'observed'"
                )
            result.looked_up.reals[name] = np.array([channel.p])
            result.looked_up.texts[name] = value_texts(attribute).take(pa.array(channel.codes))
            listed += len(channel.codes)
        every = max(1, min(_RAREST, listed), listed // _MOST_VALUES)
        result.rows.codes[key] = (np.arange(len(self.order)) % every == 0).astype(np.int32)

    def _ends(self, name: str, cells: c.Interval) -> pa.Array:
        """Texts of the values of an attribute by code, and of those that no row has."""
        attribute = self.attributes[name]
        values = value_texts(attribute)[: attribute.size]
        if attribute.scale is None or cells.new is None:
            return values
        return pa.concat_arrays([values, texts(attribute.scale, cells.new)])

    def _places(self, codes: Array) -> Array:
        """Codes in the released order, as places in a list."""
        places = gathered(codes.astype(np.int32, copy=False), self.order)
        places += np.int32(1)
        return places


def source_key(plan: ColumnPlan, key: str) -> str:
    """Name of the row numbers by which a column is read from the source; `row_id` is these numbers itself."""
    return key if plan.name == SOURCE.key else "rows"


def is_channel(plan: ColumnPlan) -> bool:
    """Whether a column has the channels of others."""
    fields = plan.fields if plan.cells is c.Struct else (plan,)
    return all(part.cells is c.Channel for part in fields)


def _different(cells: Any) -> Any:
    """The different cells of groups."""
    if isinstance(cells, c.Interval):
        return keys_of([cells.lower, cells.upper])
    if isinstance(cells, c.Node):
        return keys_of([cells.node])
    return keys_of_lists(cells.offsets, cells.codes if isinstance(cells, c.ValueSet) else cells.nodes)
