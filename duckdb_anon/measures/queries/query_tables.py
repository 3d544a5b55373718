"""The tables a query function works with, as the rewriter sees them, and what is learnt or drawn from the release.

Shares of the values inside generalized cells are learnt when a query is planned (`kernels.cell_shares`: expectation
maximisation, Dempster, Laird and Rubin 1977), and stand in its text as numbers. They are kept for further queries of
the process, by the rows of the release: where these have changed, they are learnt again. More than `MOST` distinct ends
are put together to fewer segments; a column that lists more than `MOST` distinct values is spread evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from duckdb_anon.engine.catalog import Relation, require_visible
from duckdb_anon.engine.column_roles import ROLE_PARAMETERS
from duckdb_anon.engine.duckdb_metadata import functions_there, number_of, typing_of
from duckdb_anon.engine.planner import plan
from duckdb_anon.engine.pseudonyms import pseudonyms, stand_in
from duckdb_anon.engine.release_digest import row_checksum
from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.kernels.cell_shares import NODE_ROUNDS, SET_ROUNDS, Boxes, member_shares
from duckdb_anon.measures.queries.impute import free_name, impute
from duckdb_anon.measures.queries.replay import replay_of
from duckdb_anon.model.errors import ParameterError, RewriteError, listed, nearest, planning
from duckdb_anon.model.function_specs import Parameter
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import QUERY, Description, read_description, table_name
from duckdb_anon.rewrite.query.parse import parse, tables_of
from duckdb_anon.rewrite.query.refusals import require_understood
from duckdb_anon.rewrite.query.tables import (
    Bounds,
    MakePlausible,
    Member,
    PlausibleTables,
    Segment,
    TableInfo,
    contents_of,
    same_name,
)

DRAWS, FEWER_DRAWS = 10, 5
_LARGE = 500_000
"""Releases of more rows have fewer draws."""
MOST, PUT_TOGETHER = 5000, 1000
"""Distinct ends or values of a column whose shares are learnt one by one, and segments that more ends are put in."""
_learnt: dict[tuple[str, ...], Any] = {}
"""What was learnt, by the query that it was learnt from and the rows that this read."""
_MOST_LEARNT = 200


@contextmanager
def in_name_of(function: str) -> Iterator[None]:
    """Let errors of the rewriter, and those that its SQL raises, name the SQL function that was called."""
    try:
        with planning(function):
            yield
    except RewriteError as error:
        text = str(error)
        raise RewriteError(text if text.startswith(f"{function}: ") else f"{function}: {text}") from error


PAIRS = "or the release of each original of a database, {'patients': 'release.patients', 'visits': 'release.visits'}"
"""How parameters say that they take several originals with their releases."""


def query_tables(context: Any, query: str, bounds: Bounds = "sure") -> tuple[TableInfo, TableInfo, list[TableInfo]]:
    """Resolve the arguments `original` and `release` and the other tables a query reads.

    `original` may be a mapping from originals to releases, without `release`.
    """
    pairs = pairs_of(context, "original")
    if pairs:
        return several_tables(context, query, pairs, bounds)
    for parameter in ("original", "release"):
        relation = context.relation(parameter)
        if not relation.visible:
            names = context.catalog.table_names()
            raise RewriteError(
                f"{context.function}: {parameter} := '{relation.given}' is not a committed table, and the type of its "
                f"columns decides how a query is answered{nearest(relation.given, names)}. Commit it, or make an "
                "ordinary table of a temporary one or a DataFrame first (CREATE TABLE t AS FROM ...)"
            )
    return tables_around(context, query, context.relation("original"), context.relation("release"), bounds)


def pairs_of(context: Any, parameter: str) -> dict[str, str]:
    """Originals and their releases, where an argument is a mapping of them; otherwise nothing.

    Raises:
        ParameterError: the mapping has no pair, or something else than names.
    """
    given = context.arguments.get(parameter)
    if given is None or isinstance(given, str):
        return {}
    pairs: dict[str, str] = Parameter(parameter, PAIRS, "mapping").check(context.function, given)
    if not pairs or not all(isinstance(name, str) for name in pairs.values()):
        raise ParameterError(
            f"{context.function}: {parameter} := {literal(given)} has no originals with the names of their releases. "
            "Write {'patients': 'release.patients', 'visits': 'release.visits'}"
        )
    return pairs


def several_tables(
    context: Any, query: str, pairs: Mapping[str, str], bounds: Bounds = "sure"
) -> tuple[TableInfo, TableInfo, list[TableInfo]]:
    """What a rewrite needs of the originals that a query reads, of their releases, and of its other tables."""
    releases = {original: context.relation("release", release) for original, release in pairs.items()}
    for release in releases.values():
        require_visible(context.function, release)
    read = tables_of(query)
    found = [name for name in pairs if any(same_name(name, table) for table in read)]
    if not found:
        raise RewriteError(
            f"{context.function}: the query reads {listed(read) or 'no table'}, and there are releases of "
            f"{listed(pairs)}{nearest(read[0], list(pairs)) if read else ''}"
        )
    database = {name: pairs[name] for name, release in releases.items() if pseudonyms(release)}
    together = database if len(database) > 1 else {}
    one, *others = [
        tables_around(context, query, _original(context, name, releases[name]), releases[name], bounds, together)
        for name in found
    ]
    known = [same for name in found for same in (name, context.relation("original", name).sql)]
    tables = [info for info in one[2] if not any(same_name(info.name, name) for name in known)]
    return one[0], replace(one[1], joined=tuple((original, release) for original, release, _ in others)), tables


def _original(context: Any, name: str, release: Relation) -> Relation:
    original: Relation = context.relation("original", name)
    if pseudonyms(release) or not original.visible or original.sql == release.sql:
        return stand_in(context, name, release)
    return original


def tables_around(
    context: Any,
    query: str,
    original: Any,
    release: Any,
    bounds: Bounds = "sure",
    together: Mapping[str, str] | None = None,
) -> tuple[TableInfo, TableInfo, list[TableInfo]]:
    """What a rewrite needs of an original and a release that are visible, and of the query's other tables."""
    require_understood(parse(query), lambda names: functions_there(context.catalog, names))
    both = {fold(original.given), fold(original.sql), fold(release.given), fold(release.sql)}
    others = [context.relation("query", name) for name in tables_of(query) if fold(name) not in both]
    tables = [TableInfo(r.sql, tuple(r.columns.items()), given=r.given) for r in others]
    keys = pseudonyms(release)
    if keys and not together:
        original = stand_in(context, original.given, release)
    info = replace(context.table_info(original, [release]), pseudonyms=frozenset(map(fold, keys)))
    trees = {name: tree.given or tree.sql for name, tree in info.hierarchies.items()}
    released = context.release_info(original, release, trees, bounds=bounds != "none")
    released = replace(released, shares=ReleaseShares(context.catalog.cursor, release.sql, context.verified))
    if all(
        weight.meaning != "rows" for weight in contents_of(released, info).weights
    ):  # of noisy counts no rows are drawn
        drawn = plausible_tables_of(context, original, release, together if keys else None)
        released = replace(released, drawn=drawn)
    description = read_description(release.comment)
    if bounds == "likely":
        released = replace(released, replay=replay_of(context, original, release))
    if description is not None:
        released = replace(
            released,
            of_another=_is_of_another(context, original, description),
            binned=_binned(description),
            counted_rows=description.method == "anatomy",
        )
    return info, released, tables


def _binned(description: Description) -> frozenset[str]:
    """Columns of which a release says that their values were put into bins before they were randomized."""
    bins = description.parameters.get("bins")
    return frozenset(map(fold, bins)) if isinstance(bins, Mapping) else frozenset()


def _is_of_another(context: Any, original: Any, description: Description) -> bool:
    """Whether a release says that it was made of a query, or of another table that is here too.

    A table that is not here may have had another name then.
    """
    if not description.original or original.given.strip().startswith("("):
        return False
    if description.original == QUERY:
        return True
    requested = table_name(original.given)
    return not same_name(description.original, requested) and bool(
        context.relation("original", description.original).visible
    )


def plausible_tables_of(
    context: Any, original: Relation, release: Relation, together: Mapping[str, str] | None = None
) -> MakePlausible:
    """Give what makes plausible tables: a call of `impute`, whose fixed seed lets draws serve the next question.

    `together`: originals and releases of the database that the release is a table of.
    """

    def drawn(columns: Sequence[str]) -> PlausibleTables:
        draws = FEWER_DRAWS if _rows(context, release) > _LARGE else DRAWS
        roles = {p.name: context.arguments.get(p.name) for p in ROLE_PARAMETERS}
        named = {"original": original.given, **roles} if not together else {"together": dict(together)}
        given = {**named, "seed": 1, "columns": list(columns)}
        given = {name: value for name, value in given.items() if value is not None}
        call = replace(context, function="impute", arguments={"release": release.given, "draws": draws, **given})
        plan(impute, call)  # says now what the release cannot give
        arguments = "".join(f", {name} := {literal(value)}" for name, value in given.items())
        text = f"select * from impute({literal(release.given)}, {draws}{arguments})"
        return PlausibleTables(text, free_name("draw", columns), draws, typing_of(context.catalog))

    return drawn


def _rows(context: Any, release: Relation) -> int:
    return int(context.catalog.cursor.execute(f"select count(*) from {release.sql}").fetchall()[0][0])


@dataclass(frozen=True)
class ReleaseShares:
    """Learns from a release.

    Attributes:
        cursor: a connection that sees the release.
        release: FROM item of the release.
        verified: FROM item to what tells its rows from others, where this plan has read them.
    """

    cursor: Any
    release: str
    verified: dict[str, str]

    def segments(self, cells: str, discrete: bool, read_from: Sequence[str]) -> list[Segment]:
        """Segments of an ordered column, each with the share of records per unit; none where nothing is learnt.

        Args:
            cells: SELECT of low, high and the number of records of each interval; ends are NULL of one without ends.
            discrete: whether values are counted, so that both ends of a segment are values.
            read_from: FROM items of what is learnt from, the release's first.
        """
        found: list[Segment] = self._kept(cells, read_from, lambda: self._segments(cells, discrete))
        return found

    def _segments(self, cells: str, discrete: bool) -> list[Segment]:
        rows = [row for row in self.cursor.execute(cells).fetchall() if row[0] is not None]
        if not rows:
            return []
        kind = np.int64 if discrete else np.float64
        try:
            lower, upper = (np.array([row[end] for row in rows], dtype=kind) for end in (0, 1))
        except OverflowError:
            return []
        records = np.array([float(row[2]) for row in rows])
        starts, density = Boxes(lower, upper, records, int(discrete)).density()
        if len(density) > MOST:
            mass = np.append(0.0, np.cumsum(density * np.diff(starts)))
            kept = np.linspace(0, len(density), PUT_TOGETHER + 1).astype(np.int64)
            starts, density = starts[kept], np.diff(mass[kept]) / np.diff(starts[kept])
        if len(density) < 2:  # one segment is spread evenly
            return []
        ends = starts[1:] - int(discrete)
        pairs = zip(starts[:-1].tolist(), ends.tolist(), density.tolist(), strict=True)
        return [(first, last, share) for first, last, share in pairs if share > 0]

    def members(self, cells: str, nodes: bool, read_from: Sequence[str]) -> list[Member]:
        """The values of a column that lists them, as texts, each with its share; none where nothing is learnt.

        Args:
            cells: SELECT of the number of a cell, a member as text, its share of the cell when spread evenly, and the
                number of records of the cell.
            nodes: whether cells are nodes of a hierarchy.
            read_from: FROM items of what is learnt from, the release's first.
        """
        found: list[Member] = self._kept(cells, read_from, lambda: self._members(cells, nodes))
        return found

    def _members(self, cells: str, nodes: bool) -> list[Member]:
        rows = self.cursor.execute(f"select * from ({cells}) as c(cell, value, prior, size) order by cell").fetchall()
        values = list(dict.fromkeys(row[1] for row in rows))
        if not 1 < len(values) <= MOST:
            return []
        code = {value: number for number, value in enumerate(values)}
        codes = np.array([code[row[1]] for row in rows], dtype=np.int64)
        prior = np.array([float(row[2]) for row in rows])
        _, first = np.unique([row[0] for row in rows], return_index=True)
        offsets = np.append(first, len(rows)).astype(np.int64)
        records = np.array([float(rows[position][3]) for position in first])
        rounds = NODE_ROUNDS if nodes else SET_ROUNDS
        shares = member_shares(codes, prior if nodes else np.ones(len(codes)), offsets, records, rounds)
        return list(zip(values, shares.tolist(), strict=True))

    def _kept(self, cells: str, read_from: Sequence[str], learn: Callable[[], Any]) -> Any:
        """What was learnt of the same rows before, or is now; texts and groups follow two settings."""
        if not read_from:
            return learn()
        settings = "select current_setting('TimeZone'), current_setting('default_collation')"
        if self.release in self.verified:
            read_from = [self.release, *read_from[1:]]
        for source in read_from:
            if source not in self.verified:
                self.verified[source] = row_checksum(self.cursor, source)
        rows = [self.verified[source] for source in read_from]
        key = (cells, *rows, *map(str, self.cursor.execute(settings).fetchall()[0]))
        if key not in _learnt:
            if len(_learnt) >= _MOST_LEARNT:
                _learnt.clear()
            _learnt[key] = learn()
        return _learnt[key]

    def number(self, query: str, read_from: Sequence[str] = ()) -> float:
        """As `Shares.number`."""
        if self.release in read_from and self.release not in self.verified:
            read_from = ()  # to read all of its columns takes longer
        found: float = self._kept(query, read_from, lambda: number_of(self.cursor, query))
        return found
