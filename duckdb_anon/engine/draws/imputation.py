"""Runs `impute`: the rows of a release in, the columns of plausible tables out; those of a database are drawn together.

Numbers travel back as they are. Other values travel by their place among the different ones, which are texts, the one
form that every type reads exactly: the SQL around the call casts each to the original's type.
Drawn tables are stored whole, with the exact columns that they have from the release, for the next query on the same
release: by the database, the planned call and a hash of the rows and hierarchies it read, so a release that has changed
is drawn anew, in a transaction too. A query that they answer takes the columns it reads, and copies none.
Cost: see `kernels.plausible`; one text for each different value.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from duckdb_anon.engine.arrow import MOST_ROWS, by_duckdb, in_one_piece, listed_rows, owned, plain
from duckdb_anon.engine.transport.column_coding import value_texts
from duckdb_anon.engine.transport.hierarchy_io import read_tree
from duckdb_anon.engine.transport.input_scan import get, pop
from duckdb_anon.engine.transport.number_formatting import texts
from duckdb_anon.engine.transport.release_reader import read_tables
from duckdb_anon.engine.transport.result_encoding import Result, error_result
from duckdb_anon.kernels import thread_pool
from duckdb_anon.kernels.plausible import Drawing, LinkedRelease, Release, read_release
from duckdb_anon.kernels.rng_streams import generator
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import Attribute, CodeArray, IntArray
from duckdb_anon.model.errors import RequirementError, reported
from duckdb_anon.model.function_specs import ColumnInfo
from duckdb_anon.model.hierarchy import NULL_LEAF, Hierarchy
from duckdb_anon.model.release_formats import Contents, read

FUNCTION, KEPT = "_anon_impute", "_anon_impute_kept"
NUMBERS, REALS, PLACES = "_anon_drawn_numbers", "_anon_drawn_reals", "_anon_drawn_places"
LISTS = {NUMBERS: "BIGINT[]", REALS: "DOUBLE[]", PLACES: "INTEGER[]"}
"""Functions that hand a column over, and the types of its lists."""
ROW = ""
"""Name of the column of released rows."""
_MOST_BYTES, _MOST_BEGUN = 1 << 30, 2
"""Of all stored tables together; interrupted calls whose draws are kept."""


@dataclass(frozen=True)
class StoredColumn:
    """A column of plausible tables."""

    # numbers, or places from 1 among the texts: of all tables, one after another, or of one where all have the same
    values: pa.Array
    texts: pa.Array | None = None  # the different values

    @property
    def size(self) -> int:
        """Bytes of the arrays."""
        return int(self.values.nbytes) + (int(self.texts.nbytes) if self.texts is not None else 0)


@dataclass(frozen=True)
class DrawnTables:
    """Plausible tables."""

    rows: int  # number of rows of each table
    draws: int  # number of tables
    columns: dict[str, StoredColumn]  # by name; ROW is the released row that each row is of

    @property
    def size(self) -> int:
        """Bytes of the arrays."""
        return sum(column.size for column in self.columns.values())


@dataclass(frozen=True)
class Begun:
    """Releases that were read, and what is drawn of them."""

    read: list[tuple[Release, dict[str, Attribute]]]  # each release with the domains of its columns
    drawing: Drawing
    places: dict[int, int]  # place of each table in the drawing


@dataclass
class HandedOver:
    """Tables that a query takes columns from, until it has all of them."""

    tables: DrawnTables
    left: int  # lists that it has still to take
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def lists(self, name: str, draws: list[int]) -> pa.ListArray:
        """A column of some tables, a list each."""
        column, rows = self.tables.columns[name].values, self.tables.rows
        first = draws[0] - 1
        if draws == list(range(draws[0], draws[0] + len(draws))):
            values = column.slice(first * rows, len(draws) * rows)
        else:
            values = pa.concat_arrays([column.slice((draw - 1) * rows, rows) for draw in draws])
        return pa.ListArray.from_arrays(owned(pa.array(np.arange(len(draws) + 1) * rows, pa.int32())), values)


_drawn_tables: OrderedDict[tuple[object, ...], DrawnTables] = OrderedDict()
_begun: dict[tuple[object, ...], Begun] = {}
"""What interrupted queries drew; as many as `_MOST_BEGUN`."""
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
        stores: tuple[dict[tuple[object, ...], Any], ...] = (_drawn_tables, _begun)
        for stored in stores:
            for key in [key for key in stored if key[0] == instance]:
                del stored[key]


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
    copied: Mapping[str, str]  # the release's column behind each that draws have as it is, and that is stored with them
    integers: Mapping[str, str]  # type of each column whose values are whole numbers of at most 64 bits
    keys: list[str]  # columns of the release that are pseudonyms, by which the tables of a database join
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


def text_of(calls: Sequence[ImputeCall]) -> str:
    """The calls of tables that are drawn together as they travel inside SQL."""
    return json.dumps([vars(call) for call in calls])


def are_stored(calls: pa.StructArray) -> pa.Array:
    """Whether the tables of each call are kept from an earlier one."""
    return pa.array([_find(_key(call)) is not None for call in calls.to_pylist()], pa.bool_())


def _key(call: Mapping[str, Any]) -> tuple[object, ...]:
    return call["instance"], call["call"], call["key"], call["place"]


def run(call: pa.StructArray) -> pa.Array:
    """Answer one call; a one-element array of type `result_encoding.RETURN_TYPE`."""
    planned = [ImputeCall(**one) for one in json.loads(call.field("call")[0].as_py())]
    names = ("instance", "caller", "statement", "call", "key", "place", "kept", "wanted")
    facts = {name: call.field(name)[0].as_py() for name in names}
    try:
        with progress.running("impute"), thread_pool.allowed(planned[0].threads):
            tables = _find(_key(facts))
            if tables is None:
                if facts["kept"]:
                    raise RequirementError(
                        f"impute: the drawn tables of {planned[facts['place']].table} were dropped while the query "
                        "ran. Run it again"
                    )
                drawn = _drawn(planned, call, _key({**facts, "place": 0}))
                tables = drawn[facts["place"]]
                for number, each in enumerate(drawn) if facts["key"] is not None else ():
                    _store(_key({**facts, "place": number}), each)
            result = Result()
            columns = {name: tables.columns[name] for name in facts["wanted"]}
            result.looked_up.texts |= {name: c.texts for name, c in columns.items() if c.texts is not None}
            handed = HandedOver(tables, sum(len(c.values) for c in columns.values()) // max(tables.rows, 1))
            statement = facts["instance"], facts["caller"], facts["statement"]
            return result.to_arrow("impute", tables.rows, statement, handed)
    except Exception as error:
        return error_result(reported("impute", error))


def take(calls: pa.StructArray) -> pa.Array:
    """A column of the tables that were handed over under a number, a list a call."""
    asked = in_one_piece(calls)
    (number,) = set(asked.field("rows").to_pylist())
    (name,) = set(asked.field("name").to_pylist())
    handed: HandedOver = get(number)
    lists = handed.lists(name, asked.field("draw").to_pylist())
    with handed.lock:
        handed.left -= len(lists)
        if handed.left == 0:
            pop(number)
    return lists


def _drawn(calls: Sequence[ImputeCall], given: pa.StructArray, key: tuple[object, ...]) -> list[DrawnTables]:
    """Read the releases of a call and draw their tables, or draw on where an interrupt ended an equal call."""
    rows = [listed_rows(given.field(f"t{k}")) for k, _ in enumerate(calls)]
    with _storing:
        begun = _begun.pop(key, None)
    begun = begun or _begin(calls, given, rows)
    try:
        draws = begun.drawing.draws(calls[0].draws)
    except BaseException:
        if calls[0].seed is not None:
            with _storing:
                _begun[key] = begun
                while len(_begun) > _MOST_BEGUN:
                    del _begun[next(iter(_begun))]
        raise
    found = []
    for table, (call, each, (release, domains)) in enumerate(zip(calls, rows, begun.read, strict=True)):
        columns = {ROW: StoredColumn(owned(pa.array(release.rows))), **_copied(call, each, release.rows)}
        for name in [name for name in call.drawn if name in domains]:
            values = [draw[begun.places[table]].pop(name) for draw in draws]
            columns[name] = _stored(*_placed(domains[name], values), call.integers.get(name, ""))
        found.append(DrawnTables(len(release.rows), call.draws, columns))
    return found


def _begin(calls: Sequence[ImputeCall], given: pa.StructArray, rows: Sequence[pa.StructArray]) -> Begun:
    """Read the releases of a call, the tables of a database by the links of their keys."""
    rng = generator(calls[0].seed)
    names = dict.fromkeys(tree for call in calls for tree in call.trees.values())
    forest = {
        name: read_tree("impute", name, listed_rows(given.field(f"h{k}")).flatten()) for k, name in enumerate(names)
    }
    read = [_read(call, each, forest, rng) for call, each in zip(calls, rows, strict=True)]
    releases = [release for release, _ in read]
    if len(calls) == 1:
        return Begun(read, Drawing([LinkedRelease(releases[0])], rng), {0: 0})
    links = key_links([{name: _by_number(each).field(name) for name in call.keys}
                       for call, each in zip(calls, rows, strict=True)])  # fmt: skip
    places = {table: place for place, (table, _, _) in enumerate(links)}
    linked = [
        LinkedRelease(releases[table], places.get(parent, -1), _row_above(releases, table, parent, row))
        for table, parent, row in links
    ]
    return Begun(read, Drawing(linked, rng), places)


def _read(
    call: ImputeCall, rows: pa.StructArray, forest: Mapping[str, Hierarchy], rng: np.random.Generator
) -> tuple[Release, dict[str, Attribute]]:
    """A release as the model sees it, and the domains of its columns."""
    infos = {name: ColumnInfo(name, "", kind, call.trees.get(name)) for name, kind in call.kinds.items()}
    trees = {name: forest[table] for name, table in call.trees.items()}
    fields = [rows.field(k) for k in range(rows.type.num_fields)]
    kept = [k for k, field in enumerate(rows.type) if field.name not in call.keys]
    seen = pa.StructArray.from_arrays([fields[k] for k in kept], fields=[rows.type[k] for k in kept])
    table = read_tables("impute", [seen], infos, trees, contents=[call.contents()])[0]
    if not table.rows:
        raise RequirementError(f"impute: {call.table} is empty. No rows can be drawn from it. Give a release with rows")
    release = read_release("impute", table, call.sensitive, rng)
    if call.draws * len(release.rows) > MOST_ROWS:
        raise RequirementError(
            f"impute: {call.draws} tables of {len(release.rows):,} rows are drawn, and DuckDB's lists hold "
            f"{MOST_ROWS:,}. Ask for fewer draws"
        )
    return release, {name: column.domain for name, column in table.columns.items()}


def _row_above(releases: Sequence[Release], table: int, parent: int, row: IntArray) -> IntArray:
    """Drawn row of the parent for each drawn row of a table, from released rows to released rows."""
    if parent < 0:
        return np.full(len(releases[table].rows), -1)
    above = releases[parent].rows
    first = np.full(int(above.max(initial=-1)) + 2, -1)
    first[above[::-1]] = np.arange(len(above))[::-1]
    return np.asarray(first[row[releases[table].rows]])


def _by_number(rows: pa.StructArray) -> pa.StructArray:
    """Rows of a release in the order of their numbers."""
    return rows.take(pa.array(np.argsort(rows.field("_anon_rn").to_numpy(zero_copy_only=False))))


def _copied(call: ImputeCall, rows: pa.StructArray, released: IntArray) -> dict[str, StoredColumn]:
    """The columns that draws have as the release has them."""
    if not call.copied:
        return {}
    place = np.empty(len(rows), dtype=np.int64)
    place[rows.field("_anon_rn").to_numpy(zero_copy_only=False)] = np.arange(len(rows))
    taken = pa.array(place[released])
    found = {}
    for name, carrier in call.copied.items():
        values = rows.field(carrier).take(taken)
        if pa.types.is_floating(values.type):
            found[name] = StoredColumn(values.cast(pa.float64()))
        elif name in call.integers:
            found[name] = StoredColumn(values.cast(pa.int64()))
        else:
            encoded = plain(values).dictionary_encode()
            texts = by_duckdb(encoded.dictionary, "v::varchar")
            found[name] = StoredColumn(pc.add(encoded.indices, pa.scalar(1, pa.int32())), texts)
    return found


def _stored(places: CodeArray, texts: list[str | None], integer: str) -> StoredColumn:
    """A drawn column."""
    listed = pa.array(texts, pa.string())
    if not integer:
        return StoredColumn(owned(pa.array(places + np.int32(1), pa.int32())), listed)
    numbers = by_duckdb(listed, f"v::{integer}").cast(pa.int64())
    return StoredColumn(numbers.take(pa.array(places)))


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


# Which table of a released database belongs to which: the columns of pseudonyms say it. A pseudonym stands for a key of
# the original, and the same one in two tables for the same key. A table belongs to the table in which one of its
# pseudonyms is unique; of several to the one that is furthest below. Cost: a pass over the columns of pseudonyms for
# each pair of tables.
def key_links(tables: Sequence[Mapping[str, pa.Array]]) -> list[tuple[int, int, IntArray]]:
    """Order tables so that each comes after its parent.

    Args:
        tables: of each table the columns of its pseudonyms.

    Returns:
        Of each table its number, that of its parent (-1 for none), and the row of the parent that each row belongs to
        (-1 for none), shape (rows,).

    >>> patients, visits = {"id": pa.array(["a", "b"])}, {"patient": pa.array(["b", "b", "c"])}
    >>> [(table, parent, rows.tolist()) for table, parent, rows in key_links([visits, patients])]
    [(1, -1, []), (0, 1, [1, 1, -1])]
    """
    columns = [[plain(column) for column in table.values()] for table in tables]
    unique = [[column for column in each if _is_unique(column)] for each in columns]
    found = {
        (child, parent): rows
        for child, _ in enumerate(tables)
        for parent, _ in enumerate(tables)
        if child != parent and (rows := _rows_above(columns[child], unique[child], unique[parent])) is not None
    }
    order: list[int] = []
    links: list[tuple[int, int, IntArray]] = []
    while len(order) < len(tables):
        left = [table for table, _ in enumerate(tables) if table not in order]
        # next a table whose parents are all placed; where keys go in a circle, the first one
        ready = [table for table in left if not any((table, other) in found for other in left)]
        table = (ready or left)[0]
        above = [other for other in order if (table, other) in found]
        parent = above[-1] if above else -1
        links.append((table, parent, found[table, parent] if above else np.empty(0, dtype=np.int64)))
        order.append(table)
    return links


def _is_unique(column: pa.Array) -> bool:
    present = column.drop_null()
    return len(present) > 0 and pc.count_distinct(present).as_py() == len(present)


def _rows_above(columns: Sequence[pa.Array], own: Sequence[pa.Array], keys: Sequence[pa.Array]) -> IntArray | None:
    """Row of a table with unique keys for each row of another one; None where no key is shared."""
    for column in columns:
        for key in keys:
            if column.type != key.type:
                continue
            rows = pc.fill_null(pc.index_in(column, value_set=key, skip_nulls=True), -1)
            places: IntArray = rows.to_numpy(zero_copy_only=False).astype(np.int64)
            # of two tables with one row for each key, the larger one is above
            one_to_one = any(column is mine for mine in own) and len(key) <= len(column)
            if (places >= 0).any() and not one_to_one:
                return places
    return None
