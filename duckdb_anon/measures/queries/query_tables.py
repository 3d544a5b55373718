"""The tables a query function works with, as the rewriter sees them, and what is drawn from the release."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from duckdb_anon.engine.catalog.catalog import Relation, require_visible
from duckdb_anon.engine.catalog.column_roles import ROLE_PARAMETERS, pseudonyms, stand_in
from duckdb_anon.engine.catalog.duckdb_metadata import functions_there, rows_of
from duckdb_anon.engine.records.release_texts import ReleasePair
from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.measures.queries.impute import free_name
from duckdb_anon.measures.queries.replay import is_replayed, replay_of
from duckdb_anon.model.errors import ParameterError, RewriteError, listed, nearest, planning
from duckdb_anon.model.function_specs import Parameter
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import QUERY, Description, read_description, table_name
from duckdb_anon.rewrite.query.parse import parse, tables_of
from duckdb_anon.rewrite.query.refusals import require_understood
from duckdb_anon.rewrite.query.tables import (
    Bounds,
    PlausibleTables,
    ReleaseReader,
    Replay,
    TableInfo,
    contents_of,
    same_name,
)

DRAWS, FEWER_DRAWS = 10, 5
_LARGE = 500_000
"""Releases of more rows have fewer draws."""


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
    described = [read_description(releases[name].comment) for name in found]
    if len(found) > 1 and any(one is not None and one.together.get("linked") is False for one in described):
        raise RewriteError(
            f"{context.function}: {listed(found)} were released with linked := false: each has its own pseudonyms, "
            "and they do not join. Ask about one table at a time, or release them with linked := true"
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
    pair = context.release_pair(original, release, trees)
    description = read_description(release.comment)
    released = TableInfo(
        release.sql,
        tuple(release.columns.items()),
        given=release.given,
        generalized=pair.attributes_with_nodes() if bounds != "none" else frozenset(),
        of_another=description is not None and _is_of_another(context, original, description),
        binned=frozenset() if description is None else _binned(description),
        reader=(reader := _Reader(context, pair, bounds, together if keys else None)),
    )
    # of noisy counts no rows are drawn
    reader.can_draw = all(weight.meaning != "rows" for weight in contents_of(released, info).weights)
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


class _Reader(ReleaseReader):
    """Reads a release through the planner's cursor."""

    def __init__(self, context: Any, pair: ReleasePair, bounds: Bounds, together: Mapping[str, str] | None) -> None:
        """`together`: originals and releases of the database that the release is a table of."""
        self._context, self._pair, self._together = context, pair, together
        self._found: dict[str, list[tuple[Any, ...]]] = {}
        self._replay: Replay | None = None
        self.can_replay = bounds == "likely" and is_replayed(context, pair.release)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """As of any reader; a query is run once."""
        if query not in self._found:
            self._found[query] = rows_of(self._context.catalog.cursor, query)
        return self._found[query]

    def size(self) -> int:
        """As its description says, or counted."""
        release = self._pair.release
        description = read_description(release.comment)
        if description is not None and description.checksum:
            return int(description.checksum.split(":")[0])
        return int(next((n for (n,) in self.rows(f"select count(*) from {release.sql}")), 0))

    def require_clear_texts(self, columns: Collection[str]) -> None:
        """As of any reader."""
        self._pair.require_clear_texts(columns)

    def why_unbounded(self) -> str:
        """As of any reader."""
        return str(self._context.why_unbounded(self._pair.release))

    def draws(self) -> int:
        """Fewer of a large release."""
        return FEWER_DRAWS if self.size() > _LARGE else DRAWS

    def drawn(self, columns: Sequence[str]) -> PlausibleTables:
        """A call of `impute`, whose fixed seed lets draws serve the next question."""
        self.has_drawn = True
        named: dict[str, Any] = {p.name: self._context.arguments.get(p.name) for p in ROLE_PARAMETERS}
        named["original"] = self._pair.original.given
        if self._together:
            named = {"together": dict(self._together)}
        given = {**named, "seed": 1, "columns": list(columns)}
        arguments = "".join(f", {name} := {literal(value)}" for name, value in given.items() if value is not None)
        text = f"select * from impute({literal(self._pair.release.given)}, {self.draws()}{arguments})"
        return PlausibleTables(text, free_name("draw", columns), self.draws())

    def replay(self) -> Replay:
        """As of any reader; once."""
        if self._replay is None:
            self._replay = replay_of(self._context, self._pair.original, self._pair.release)
        return self._replay
