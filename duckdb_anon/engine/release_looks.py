"""A release is looked at whole once; of each query after that, what it reads is looked at.

Whether a release holds what nothing knows (`engine.known`) takes the different texts of all columns of both tables,
which is longer than the rest of planning. Of tables by their names it is asked when they first stand beside one
another; after that it is asked anew of the columns that a query reads, on which alone its answer rests. A table that
was replaced is another one, and so is one whose columns, types or comments were changed. Views, files and SELECTs have
no name that tells whether they are the same: they are looked at whole for each query.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import duckdb

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.known import require_known_numbers, require_known_values
from duckdb_anon.engine.sent import collated
from duckdb_anon.engine.shown_cells import whole
from duckdb_anon.model.folding import fold
from duckdb_anon.model.progress import tick
from duckdb_anon.rewrite.query.seen_values import SeenValues

_MOST = 1000  # pairs of tables that are kept in mind
_looked_at: dict[object, None] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class ReleaseLooks:
    """Looks at a release for one call; see `rewrite.query.seen_values.Looks`.

    Attributes:
        function: SQL function, for messages.
        catalog: what the planner can see.
        original: the original, or the empty table of its columns.
        release: its release.
        trees: hierarchy table of each attribute that has one.
        certain: whether low and high are asked for.
        seen: the texts that were seen when it was looked at whole; None where an earlier call did that.
    """

    function: str
    catalog: Catalog
    original: Relation
    release: Relation
    trees: Mapping[str, Relation]
    certain: bool
    seen: tuple[SeenValues, ...] | None

    @property
    def source(self) -> str:
        """The release, as SQL of a FROM item that `numbers` finds."""
        return whole(self.release)

    def texts(self, read: Collection[str]) -> tuple[SeenValues, ...]:
        """Texts of the columns `read` on which what is stated for certain rests; raises where one is not known."""
        if self.seen is None:
            given = self.function, self.catalog, self.original, self.release, self.trees
            return require_known_values(*given, self.certain, read)
        return tuple(values for values in self.seen if fold(values.attribute) in read)

    def recollated(self, read: Collection[str]) -> frozenset[str]:
        """Columns among `read` with a collation that only one of the tables has."""
        one, other = (
            {
                fold(name)
                for name in collated(
                    self.function, self.catalog, table, [name for name in table.columns if fold(name) in read]
                )
            }
            for table in (self.original, self.release)
        )
        return frozenset(one ^ other)

    def require_values(self, read: Collection[str]) -> None:
        """Refuse numbers, moments and truths in the columns `read` that the original does not have."""
        if self.certain:
            require_known_numbers(self.function, self.catalog, self.original, self.release, self.trees, read)

    def numbers(self, select: str) -> Sequence[object]:
        """The one row of a SELECT over the release; none where the planner cannot read that."""
        cursor = self.catalog.cursor_for([self.release])
        try:
            found = cursor.execute(select).fetchone() if cursor is not None else None
        except duckdb.Error:
            tick()  # an interrupt is none of these
            return ()
        return found or ()


def looks_at(
    function: str,
    catalog: Catalog,
    original: Relation,
    release: Relation,
    trees: Mapping[str, Relation],
    certain: bool,
) -> ReleaseLooks:
    """Look at a release as far as it has to be before a query is read.

    Args:
        function: SQL function, for messages.
        catalog: what the planner can see.
        original: the original, or the empty table of its columns.
        release: its release.
        trees: hierarchy table of each attribute that has one.
        certain: whether low and high are asked for.

    Raises:
        ColumnError: a text is neither a value of the original nor a node of the attribute's tree.
    """
    pair = _identity(catalog, [original, release, *trees.values()])
    seen = None
    if pair is None or pair not in _looked_at:
        seen = require_known_values(function, catalog, original, release, trees, certain)
        if pair is not None:
            with _lock:
                _looked_at[pair] = None
                for old in list(_looked_at)[:-_MOST]:
                    del _looked_at[old]
    return ReleaseLooks(function, catalog, original, release, trees, certain, seen)


def _identity(catalog: Catalog, tables: Collection[Relation]) -> object:
    """What no other tables have, nor these when they are replaced or altered; None where nothing tells."""
    if catalog.instance is None or not all(table.number for table in tables):
        return None
    return catalog.instance, *(
        (table.number, table.comment, tuple(table.columns.items()), tuple(table.comments.items())) for table in tables
    )
