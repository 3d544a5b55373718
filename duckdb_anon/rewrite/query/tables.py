"""What a rewrite knows of a table: how SQL names it, its columns with their DuckDB types, their roles.

Nothing here looks at data: a release explains itself by the types of its columns, so an estimator can be
written before a single row is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal

from sqlglot import exp

from duckdb_anon.model.errors import ColumnError, RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import unquoted
from duckdb_anon.model.release_formats import Contents, read
from duckdb_anon.rewrite.query.trees import leftmost, step_of

Bounds = Literal["none", "hard", "sure", "likely"]
"""Which low and high a rewritten query gives: none; hard bounds; hard bounds where there are any, else 95% intervals;
95% intervals where there are any, else hard bounds."""


@dataclass(frozen=True)
class PlausibleTables:
    """Plausible tables of a release.

    Attributes:
        sql: SELECT of their columns, one table after another, and of the number of each.
        number: name of the column with the number, from 1.
        draws: how many there are.
    """

    sql: str
    number: str
    draws: int


Describe = Callable[[str], Sequence[tuple[str, str]]]
"""Gives names and types of the columns of a query's result; raises RewriteError, in DuckDB's words, without any."""


@dataclass(frozen=True)
class Replay:
    """Tables that stood for the original, and plausible tables of the release that was made of each.

    Attributes:
        truth: one of the tables, as one draw.
        answered: what answers queries about it.
        rows: answers of a query over these for each truth; other tables are given by the names that the query reads.
        confidence: share of the intervals that hold the truth.
        wider: factor of the width of intervals by kind of measure; other kinds have none.
    """

    truth: PlausibleTables
    answered: PlausibleTables
    rows: Callable[[str, Mapping[str, TableInfo]], list[list[tuple[Any, ...]]]]
    confidence: float
    wider: Mapping[str, float] = field(default_factory=dict)


class ReleaseReader:
    """What a planner may read of a release beyond its columns. This one reads nothing; its caller vouches for the rows.

    Attributes:
        can_draw: whether there are plausible tables.
        can_replay: whether the release is made again where intervals are wanted.
        has_drawn: whether any were asked for.
    """

    can_draw = False
    can_replay = False
    has_drawn = False

    def rows(self, query: str) -> list[tuple[Any, ...]] | None:
        """The rows of a query, none where it fails; None where no rows are read."""
        return None

    def size(self) -> int | None:
        """Number of rows of the release; None where it is unknown."""
        return None

    def require_clear_texts(self, columns: Collection[str]) -> None:
        """Raise where texts of columns that a query reads, in lower case, may be values or nodes."""

    def why_unbounded(self) -> str:
        """Why the release gives no low and high; '' where it does."""
        return ""

    def draws(self) -> int:
        """Number of plausible tables."""
        return 0

    def drawn(self, columns: Sequence[str]) -> PlausibleTables:
        """Plausible tables that have some of the original's columns, where there are any."""
        raise NotImplementedError

    def replay(self) -> Replay:
        """The release made again from tables that stand for its original."""
        raise NotImplementedError


_UNREAD = ReleaseReader()


@dataclass(frozen=True)
class TableInfo:
    """A table as the planner sees it.

    Attributes:
        sql: text that can follow FROM.
        columns: (name, DuckDB type) in table order; empty when the planner cannot see the table.
        roles: column name to role ('quasi', 'sensitive', ...); only the original's are used.
        hierarchies: column name to its hierarchy table (first column the leaf, last the root).
        given: the name the user wrote, by which queries call the table; `sql` when empty.
        collated: columns whose collation takes different texts for equal, in lower case.
        generalized: of a release, text columns with a tree that are known to show inner nodes, in lower case; None
            where the caller vouches for all of them.
        of_another: of a release, whether it says that it stands for something else than the original that is asked of.
        hidden: of a hierarchy, whether labels that few records carry are numbers, as publish writes them.
        binned: of a release, columns that it says hold one value for each bin of the original's, in lower case.
        reader: of a release, reads what its columns do not say.
        describe: of an original, gives DuckDB's names and types of a query's columns; None where there is no DuckDB.
        pseudonyms: of an original, its keys, for which the release has pseudonyms, in lower case.
        joined: of a release, the further originals that a query reads, each with its release.
    """

    sql: str
    columns: tuple[tuple[str, str], ...]
    roles: Mapping[str, str] = field(default_factory=dict)
    hierarchies: Mapping[str, TableInfo] = field(default_factory=dict)
    given: str = ""
    collated: frozenset[str] = frozenset()
    generalized: frozenset[str] | None = None
    of_another: bool = False
    binned: frozenset[str] = frozenset()
    hidden: bool = False
    reader: ReleaseReader = field(default=_UNREAD, compare=False)
    describe: Describe | None = field(default=None, compare=False)
    pseudonyms: frozenset[str] = frozenset()
    joined: tuple[tuple[TableInfo, TableInfo], ...] = ()

    @property
    def name(self) -> str:
        """The name queries use."""
        return self.given or self.sql

    @cached_property
    def types(self) -> dict[str, str]:
        """Column name in lower case to type."""
        return {fold(column): kind for column, kind in self.columns}

    def spelled(self, column: str) -> str:
        """Give a column's own spelling."""
        return next((name for name, _ in self.columns if fold(name) == fold(column)), column)


Columns = tuple[tuple[str, str], ...]
Tables = Sequence[TableInfo]
"""Tables of a query: the original first, then the originals it is joined with, then others."""


def contents_of(release: TableInfo, original: TableInfo) -> Contents:
    """What a release carries, held against its original.

    Raises:
        RewriteError: a column is called like a carrier, but its type is none a carrier has.
    """
    sensitive = tuple(name for name, role in original.roles.items() if role == "sensitive")
    return _contents(release.columns, original.columns, sensitive, tuple(original.hierarchies), release.name)


@lru_cache(maxsize=64)
def _contents(
    release: Columns, original: Columns, sensitive: tuple[str, ...], trees: tuple[str, ...], name: str
) -> Contents:
    try:
        return read(dict(release), dict(original), sensitive=sensitive, trees=trees, table=name)
    except ColumnError as error:
        raise RewriteError(str(error)) from error


def columns_of_item(item: exp.Expr, tables: Sequence[TableInfo]) -> list[str]:
    """Names of the columns of an item of FROM; none where they cannot be seen."""
    step = step_of(item) if isinstance(item, exp.Table) else None
    alias = (step or item).args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.columns:
        return [column.name for column in alias.columns]
    if isinstance(item, exp.Table) and step is None:
        return next(([name for name, _ in info.columns] for info in tables if same_table(item, info)), [])
    inner = (step or item).this
    return [] if not isinstance(inner, exp.Query) or leftmost(inner).is_star else list(inner.named_selects)


def same_table(table: exp.Table, info: TableInfo) -> bool:
    """Tell whether a table of a query is the one `info` describes, comparing as many parts as both give."""
    given = [fold(part.name) for part in table.parts]
    if given == [fold(info.name)]:  # a file
        return True
    return any(_alike(_parts(name), given) for name in (info.name, info.sql))


def same_name(node: str, other: str) -> bool:
    """Tell whether two names may be those of one table, comparing as many parts as both give.

    >>> same_name("main.People", '"people"'), same_name("people", "visits")
    (True, False)
    """
    return _alike(_parts(node), _parts(other))


def _alike(node: list[str], other: list[str]) -> bool:
    shared = min(len(node), len(other))
    return shared > 0 and node[-shared:] == other[-shared:]


_PART = re.compile(r'"(?:[^"]|"")*"|[^."]+')


def _parts(name: str) -> list[str]:
    """The parts of a table's name; a file or a SELECT is one part."""
    parts = _PART.findall(name)
    if ".".join(parts) != name or name.startswith(("'", "(")):
        return [fold(name.strip("'"))]
    return [fold(unquoted(part)) for part in parts]
