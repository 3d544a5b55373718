"""Runs `impute`: the rows of a release in, rows of plausible tables out, each value by its place among the different.

Values travel back as text, the one form that every type reads exactly: the SQL around the call casts each different one
to the original's type. What a draw has from the release as it is, the SQL takes from the release itself.
Drawn tables are stored for the next query on the same release, by the database, the planned call and a hash of the rows
and hierarchies it read, so a release that has changed is drawn anew, in a transaction too.
Cost: see `kernels.plausible`; one text for each different value.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from duckdb_anon.engine.arrow import listed_rows
from duckdb_anon.engine.column_coding import value_texts
from duckdb_anon.engine.hierarchy_io import read_tree
from duckdb_anon.engine.number_formatting import texts
from duckdb_anon.engine.release_reader import read_tables
from duckdb_anon.engine.result_encoding import Result, error_result
from duckdb_anon.engine.rng import generator
from duckdb_anon.kernels import thread_pool
from duckdb_anon.kernels.plausible import plausible_tables, read_release
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray
from duckdb_anon.model.errors import RequirementError, reported
from duckdb_anon.model.function_specs import ColumnInfo
from duckdb_anon.model.hierarchy import NULL_LEAF
from duckdb_anon.model.release_formats import Contents, read

FUNCTION, KEPT = "_anon_impute", "_anon_impute_kept"
_MOST_BYTES = 1 << 30
"""Of all stored tables together."""


@dataclass(frozen=True)
class DrawnTables:
    """Plausible tables, one after another."""

    rows: IntArray  # the released row that each row has its exact values from, shape (rows,)
    draw: IntArray  # number of the table of each row from 1, shape (rows,)
    places: dict[str, CodeArray]  # by column, place of each value among the texts
    texts: dict[str, list[str | None]]  # by column, the different values

    @property
    def size(self) -> int:
        """Bytes of the arrays, about."""
        listed = sum(64 * len(texts) for texts in self.texts.values())
        return self.rows.nbytes + self.draw.nbytes + sum(array.nbytes for array in self.places.values()) + listed


_drawn_tables: OrderedDict[tuple[object, ...], DrawnTables] = OrderedDict()
_storing = threading.Lock()


def _find(key: tuple[object, ...]) -> DrawnTables | None:
    """The stored tables of a key."""
    with _storing:
        found = _drawn_tables.get(key)
        if found is not None:
            _drawn_tables.move_to_end(key)
        return found


def _store(key: tuple[object, ...], tables: DrawnTables) -> None:
    """Store tables; the least recently used go where all together are too large."""
    with _storing:
        _drawn_tables[key] = tables
        _drawn_tables.move_to_end(key)
        while len(_drawn_tables) > 1 and sum(each.size for each in _drawn_tables.values()) > _MOST_BYTES:
            _drawn_tables.popitem(last=False)


def forget_draws(instance: int) -> None:
    """Drop the tables of a database that nothing is connected to any more."""
    with _storing:
        for key in [key for key in _drawn_tables if key[0] == instance]:
            del _drawn_tables[key]


@dataclass(frozen=True)
class ImputeCall:
    """A planned call."""

    table: str  # the release, for messages
    types: Mapping[str, str]  # DuckDB type of each column of the release
    original: Mapping[str, str] | None  # the same of the original; None where it is not there
    labelled: list[str]  # columns with a role
    sensitive: list[str]  # those of them that are sensitive
    kinds: Mapping[str, Any]  # 'ordered', 'nominal' or 'hierarchy' of columns that have a role
    trees: Mapping[str, str]  # hierarchy table of each column that has one
    drawn: list[str]  # the original's columns whose values are drawn
    draws: int  # how many tables
    seed: int | None
    threads: int | None

    def contents(self) -> Contents:
        """What the release carries."""
        return read(
            self.types,
            self.original,
            labelled=self.labelled,
            sensitive=self.sensitive,
            trees=list(self.trees),
            table=self.table,
            function="impute",
        )

    def text(self) -> str:
        """The call as it travels inside SQL."""
        return json.dumps(vars(self))


def are_stored(calls: pa.StructArray) -> pa.Array:
    """Whether the tables of each call are kept from an earlier one."""
    return pa.array([_find(_key(call)) is not None for call in calls.to_pylist()], pa.bool_())


def _key(call: Mapping[str, Any]) -> tuple[object, ...]:
    return call["instance"], call["call"], call["key"]


def run(call: pa.StructArray) -> pa.Array:
    """Answer one call; a one-element array of type `result_encoding.RETURN_TYPE`."""
    planned = ImputeCall(**json.loads(call.field("call")[0].as_py()))
    names = ("instance", "caller", "statement", "call", "key", "kept", "wanted")
    facts = {name: call.field(name)[0].as_py() for name in names}
    try:
        with progress.running("impute"), thread_pool.allowed(planned.threads):
            tables = _find(_key(facts))
            if tables is None:
                if facts["kept"]:
                    raise RequirementError(
                        f"impute: the drawn tables of {planned.table} were dropped while the query ran. Run it again"
                    )
                tables = _drawn(planned, call)
                if facts["key"] is not None:
                    _store(_key(facts), tables)
            result = Result()
            result.rows.numbers |= {"row": tables.rows, "draw": tables.draw}
            result.rows.codes |= {name: tables.places[name] for name in facts["wanted"]}
            result.looked_up.texts |= {name: tables.texts[name] for name in facts["wanted"]}
            statement = facts["instance"], facts["caller"], facts["statement"]
            return result.to_arrow("impute", len(tables.rows), statement)
    except Exception as error:
        return error_result(reported("impute", error))


def _drawn(call: ImputeCall, given: pa.StructArray) -> DrawnTables:
    """Read the release and draw."""
    names = dict.fromkeys(call.trees.values())
    forest = {
        name: read_tree("impute", name, listed_rows(given.field(f"h{k}")).flatten()) for k, name in enumerate(names)
    }
    infos = {name: ColumnInfo(name, "", kind, call.trees.get(name)) for name, kind in call.kinds.items()}
    trees = {name: forest[table] for name, table in call.trees.items()}
    table = read_tables("impute", [listed_rows(given.field("rows"))], infos, trees, contents=[call.contents()])[0]
    if not table.rows:
        raise RequirementError("impute: the release is empty. No rows can be drawn from it. Give a release with rows")
    rng = generator(call.seed)
    release = read_release("impute", table, call.sensitive, rng)
    columns = [name for name in call.drawn if name in table.columns]
    drawn: dict[str, list[tuple[CodeArray, Any]]] = {name: [] for name in columns}
    for draw in plausible_tables(release, call.draws, rng):
        for name in columns:
            drawn[name].append(draw[name])
    found = {name: _placed(table.columns[name].domain, drawn.pop(name)) for name in columns}
    return DrawnTables(
        np.tile(release.rows, call.draws),
        np.repeat(np.arange(1, call.draws + 1), len(release.rows)),
        {name: places for name, (places, _) in found.items()},
        {name: texts for name, (_, texts) in found.items()},
    )


def _placed(domain: Attribute, draws: list[tuple[CodeArray, Any]]) -> tuple[CodeArray, list[str | None]]:
    """Place of each drawn value among the different ones, and their texts."""
    codes = np.concatenate([code for code, _ in draws])
    if draws[0][1] is None or domain.scale is None:
        distinct, places = _different(codes)
        return places, _texts(domain, distinct)
    numbers = np.concatenate([number for _, number in draws])
    special = codes >= 0
    distinct, position = _different(codes[special])
    # a place of its own for each number, and behind them those of what is no number
    different, places = _different(np.where(special, numbers.min(where=~special, initial=numbers.max()), numbers))
    places[special] = position + len(different)
    return places, [*texts(domain.scale, different).to_pylist(), *_texts(domain, distinct)]


def _different(values: NDArray[Any]) -> tuple[NDArray[Any], CodeArray]:
    """The different values, and the place of each value among them."""
    encoded = pa.array(values).dictionary_encode()
    return encoded.dictionary.to_numpy(), encoded.indices.to_numpy().copy()


def _texts(domain: Attribute, codes: NDArray[Any]) -> list[str | None]:
    """Values as texts; of an attribute with a hierarchy the numbers are those of leaves."""
    if domain.hierarchy is None:
        listed = value_texts(domain).to_pylist()
        return [listed[code] if code < domain.size else None for code in codes.tolist()]
    labels = [domain.hierarchy.labels[node] for node in domain.hierarchy.node_of_leaf[codes]]
    return [None if label == NULL_LEAF and domain.null_code >= 0 else label for label in labels]
