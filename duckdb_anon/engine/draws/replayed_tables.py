"""A release made again: its own call runs on tables that stand for the original, and what comes of it is imputed again.

How far answers of the second releases are from the tables they were made of says how far those of the release may be
from its original (parametric bootstrap: Efron 1979). Tables live in a database in memory of their own and are kept for
later queries, by the digest of the release.
Guarantee: nothing is read but the release, hierarchies, and the names and types of the original's columns.
Cost: `TRUTH_COUNT` runs of the method and `TRUTH_COUNT * REDRAWS` draws, once a release.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import duckdb

from duckdb_anon.engine.arrow import batches
from duckdb_anon.engine.catalog.catalog import Relation
from duckdb_anon.engine.catalog.sensitive_coarsening import DEFAULT
from duckdb_anon.engine.interrupts import stoppable
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import RewriteError, cause_of, one_line
from duckdb_anon.model.release_formats import EDGES
from duckdb_anon.model.release_formats.duckdb_types import is_number

TRUTH_COUNT, REDRAWS = 10, 3
MOST_ROWS = 200_000
_MOST_KEPT = 2
TRUTH, ANSWERED, DRAW = "_anon_truth", "_anon_answered", "_anon_draw_number"
"""Names, while a query runs, of one truth and of the draws of its release, and the column with their number from 1."""
_RELEASE, _ORIGINAL, _TRUTHS, _AGAIN = "_anon_release", "_anon_original", "_anon_truths", "_anon_again"
_NUMBER = "_anon_truth_number"


@dataclass(frozen=True)
class ReplayCall:
    """What is replayed."""

    release: Relation
    original: Relation  # the original, or the shape of it
    trees: Mapping[str, Relation]  # hierarchy table of each attribute that has one
    method: str  # SQL name of the method
    arguments: Mapping[str, Any]  # those of its call, without roles and seed
    roles: Mapping[str, Any]  # roles as arguments, without hierarchies
    seeded: bool  # whether the method takes a seed
    as_released: bool  # whether rows of the release are read as rows of the original, and nothing is imputed
    threads: int | None  # how many threads run it


@dataclass(frozen=True)
class ReplayedTables:
    """The tables of one replay."""

    con: duckdb.DuckDBPyConnection  # the database they are in
    as_released: bool  # whether every truth is the release itself
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def redraws(self) -> int:
        """Number of draws of each release."""
        return 1 if self.as_released else REDRAWS

    def rows(
        self, query: str, cursor: duckdb.DuckDBPyConnection, tables: Mapping[str, Relation]
    ) -> list[list[tuple[Any, ...]]]:
        """Answers of a query for each truth."""
        truths = f"select *, 1 as {DRAW} from {_RELEASE}"
        if not self.as_released:
            truths = f"select * exclude ({_NUMBER}), 1 as {DRAW} from {_TRUTHS} where {_NUMBER} = {{}}"
        answered = f"select * exclude ({_NUMBER}) from {_AGAIN} where {_NUMBER} = {{}}"
        found = []
        with self._lock, _working_on(self.con):
            for name, relation in tables.items():
                _copied(self.con, cursor, name, relation)
            for number in range(1, TRUTH_COUNT + 1):
                self.con.execute(f"create or replace view {TRUTH} as {truths.format(number)}")
                self.con.execute(f"create or replace view {ANSWERED} as {answered.format(number)}")
                found.append(self.con.execute(query).fetchall())
        return found


_kept: OrderedDict[tuple[object, ...], ReplayedTables] = OrderedDict()
_making = threading.Lock()


def replayed(
    key: tuple[object, ...],
    call: ReplayCall,
    cursor: duckdb.DuckDBPyConnection,
    opened: Callable[[], duckdb.DuckDBPyConnection],
) -> ReplayedTables:
    """The tables of a replay, made at the first call."""
    with _making:
        found = _kept.get(key)
        if found is None:
            found = _kept[key] = ReplayedTables(_made(call, cursor, opened()), call.as_released)
            while len(_kept) > _MOST_KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(key)
        return found


def _made(
    call: ReplayCall, cursor: duckdb.DuckDBPyConnection, con: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyConnection:
    """Run the call on each truth, and impute what it gives."""
    with _working_on(con):
        con.execute(f"set threads = {call.threads or 1}")
        _copied(con, cursor, _RELEASE, call.release)
        con.execute(f"create table {_ORIGINAL} ({_typed(call.original)})")
        hierarchies = {}
        for number, (attribute, tree) in enumerate(call.trees.items()):
            hierarchies[attribute] = f"_anon_tree{number}"
            _copied(con, cursor, hierarchies[attribute], tree)
        roles = _written({**call.roles, **({"hierarchies": hierarchies} if hierarchies else {})})
        if not call.as_released:
            drawn = f"impute({literal(_RELEASE)}, {TRUTH_COUNT}, original := {literal(_ORIGINAL)}, seed := 1{roles})"
            con.execute(f"create table {_TRUTHS} as select * rename (draw as {_NUMBER}) from {drawn}")
        _spread_joined(con, call)
        for number in range(1, TRUTH_COUNT + 1):
            _replay_once(con, call, roles, number)
    return con


def _spread_joined(con: duckdb.DuckDBPyConnection, call: ReplayCall) -> None:
    """Draw sensitive values that may stand for the mean of rare ones: between the middles to the next ones, unbiased.

    The call joins them again; without this, the truths would have no values that joining changes.
    """
    table, copies = (_RELEASE, 1) if call.as_released else (_TRUTHS, TRUTH_COUNT)
    least = call.arguments.get(EDGES.word, DEFAULT)
    for name in call.roles["sensitive"]:
        kind = call.original.columns[name]
        moment = kind.startswith(("DATE", "TIMESTAMP"))
        if least == 1 or name in call.trees or not (moment or is_number(kind)):
            continue
        column = ident(name)
        number = f"epoch_us({column}::timestamp)::double" if moment else f"{column}::double"
        side, share = (f"hash(t.rowid, {draw}) / 18446744073709551616" for draw in range(2))
        drawn = f"x + if({side} * (below + above) < above, -below, above) * {share}"
        back = f"make_timestamp(({drawn})::bigint)" if moment else drawn
        con.execute(
            f"create or replace table {table} as with e as (select v, n, x, "
            "(x - coalesce(lag(x) over w, x)) / 2 as below, (coalesce(lead(x) over w, x) - x) / 2 as above from ("
            f"select {column} as v, {number} as x, count(*) as n from {table} where isfinite({number}) group by all) "
            "window w as (order by x)) select t.* replace ("
            f"coalesce(case when n < {2 * least * copies} then try_cast({back} as {kind}) end, {column}) as {column}) "
            f"from {table} as t left join e on {column} = v"
        )


@contextmanager
def _working_on(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let what runs on a database of ours be interrupted, and say of what fails that there is no interval."""
    try:
        with stoppable():
            yield
    except duckdb.Error as error:
        raise RewriteError(f"no interval: the release cannot be replayed: {one_line(error)}") from cause_of(error)


def _replay_once(con: duckdb.DuckDBPyConnection, call: ReplayCall, roles: str, number: int) -> None:
    """Release one truth, and append the draws of that release."""
    truth = f"select * from {_RELEASE}"
    if not call.as_released:
        truth = f"select * exclude ({_NUMBER}) from {_TRUTHS} where {_NUMBER} = {number}"
    con.execute(f"create or replace table _anon_one as {truth}")
    seed = f", seed := {number}" if call.seeded else ""
    made = f"{call.method}('_anon_one'{_written(call.arguments)}{roles}{seed})"
    rows = f"select {number} as {_NUMBER}, 1 as {DRAW}, * from {made}"
    if not call.as_released:
        con.execute(f"create or replace table _anon_released as from {made}")
        drawn = f"impute('_anon_released', {REDRAWS}, original := '_anon_one', seed := {number}{roles})"
        rows = f"select {number} as {_NUMBER}, * rename (draw as {DRAW}) from {drawn}"
    con.execute(f"{'insert into' if number > 1 else 'create table'} {_AGAIN} {'as ' * (number == 1)}{rows}")


def _written(arguments: Mapping[str, Any]) -> str:
    """Arguments as they follow the first one."""
    return "".join(f", {name} := {literal(value)}" for name, value in arguments.items())


def _typed(relation: Relation) -> str:
    return ", ".join(f"{ident(name)} {kind}" for name, kind in relation.columns.items())


def _copied(con: duckdb.DuckDBPyConnection, cursor: duckdb.DuckDBPyConnection, name: str, relation: Relation) -> None:
    """Copy a table from one database to another."""
    rows = batches(cursor, f"select * from {relation.sql}").read_all()
    con.execute(f"create or replace table {name} ({_typed(relation)})")
    con.register("_anon_rows", rows)
    try:
        con.execute(f"insert into {name} select * from _anon_rows")
    finally:
        con.unregister("_anon_rows")
