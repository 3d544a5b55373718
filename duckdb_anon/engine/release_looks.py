"""A release is looked at whole once; of each query after that, what it reads is looked at.

Whether a release holds what nothing knows (`engine.known`) takes the different texts of all columns of both tables,
which is longer than the rest of planning. Of tables by their names it is asked when they first stand beside one
another; after that it is asked anew of the columns that a query reads, on which alone its answer rests. Where nothing
is stated for certain it is enough that the release's cells are those that were compared: texts that were the original's
are no nodes. A table that was replaced is another one, and so is one whose columns, types or comments were changed.
Views, files and SELECTs have no name that tells whether they are the same: they are looked at whole for each query.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import duckdb

from duckdb_anon.engine.beside import Beside
from duckdb_anon.engine.bucket_kinds import bucket_of
from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.known import require_known_values, texts_told
from duckdb_anon.engine.known_numbers import require_known_numbers, require_whole_counts
from duckdb_anon.engine.sent import collated
from duckdb_anon.model.folding import fold
from duckdb_anon.model.progress import tick
from duckdb_anon.rewrite.query.seen_values import CELLS, DIGEST, SeenValues

_MOST = 1000  # pairs of tables that are kept in mind
_looked_at: dict[object, dict[SeenValues, str | None]] = {}  # and what told the cells of texts that were compared
_lock = threading.Lock()


@dataclass(frozen=True)
class ReleaseLooks:
    """Looks at a release for one call; see `rewrite.query.seen_values.Looks`.

    Attributes:
        pair: the release and its original.
        certain: whether low and high are asked for.
        counts_whole: whether counts are known to be those of all rows of their buckets.
        compared: what told the cells of texts when they were last compared with the original's.
        seen: the texts that were seen when it was looked at whole; None where an earlier call did that.
    """

    pair: Beside
    certain: bool
    counts_whole: bool
    compared: dict[SeenValues, str | None]
    seen: tuple[SeenValues, ...] | None

    @property
    def source(self) -> str:
        """The release, as SQL of a FROM item that `row` finds, without a name of its own."""
        return self.pair.release.full or self.pair.release.unnamed

    def texts(self, read: Collection[str]) -> tuple[SeenValues, ...]:
        """Texts of the columns `read` on which what is stated for certain rests; raises where one is not known."""
        if not self.certain:
            if self.seen is None:
                for values in require_known_values(self.pair, CELLS, self._not_as_compared(read)):
                    self.compared[replace(values, digest=None)] = values.digest
            return ()
        seen = require_known_values(self.pair, DIGEST, read) if self.seen is None else self.seen
        return tuple(values for values in seen if fold(values.attribute) in read)

    def _not_as_compared(self, read: Collection[str]) -> set[str]:
        """Columns among `read` but those of which all texts stand in cells that were compared before."""
        told = texts_told(self.pair, read)
        changed = {values for values, cells in told.items() if cells is None or cells != self.compared.get(values)}
        same = {fold(values.attribute) for values in told} - {fold(values.attribute) for values in changed}
        return set(read) - same

    def recollated(self, read: Collection[str]) -> frozenset[str]:
        """Columns among `read` with a collation that only one of the tables has."""
        function, catalog = self.pair.function, self.pair.catalog
        one, other = (
            {fold(name) for name in collated(function, catalog, table, [c for c in table.columns if fold(c) in read])}
            for table in (self.pair.original, self.pair.release)
        )
        return frozenset(one ^ other)

    def numbers(self, read: Collection[str]) -> tuple[SeenValues, ...]:
        """Numbers, moments and truths in the columns `read`; raises where the original does not have one of them."""
        if not self.certain:
            return ()
        if not self.counts_whole:
            require_whole_counts(self.pair, bucket_of(self.pair.release), read)
        return require_known_numbers(self.pair, read)

    def row(self, select: str) -> Sequence[object]:
        """The one row of a SELECT over the release; none where the planner cannot read that."""
        cursor = self.pair.catalog.cursor_for([self.pair.release])
        try:
            found = cursor.execute(select).fetchall() if cursor is not None else []
        except duckdb.Error:
            tick()  # an interrupt is none of these
            return ()
        return found[0] if found else ()


def looks_at(pair: Beside, certain: bool, counts_whole: bool) -> ReleaseLooks:
    """Look at a release as far as it has to be before a query is read.

    Args:
        pair: the release and its original.
        certain: whether low and high are asked for.
        counts_whole: whether counts are known to be those of all rows of their buckets.

    Raises:
        ColumnError: a text is neither a value of the original nor a node of the attribute's tree.
    """
    identity = _identity(pair.catalog, [pair.original, pair.release, *pair.trees.values()])
    compared, seen = _looked_at.get(identity), None
    if compared is None:
        compared, seen = {}, require_known_values(pair, DIGEST if certain else "")
        if identity is not None:
            with _lock:
                _looked_at[identity] = compared
                for old in list(_looked_at)[:-_MOST]:
                    del _looked_at[old]
    return ReleaseLooks(pair, certain, counts_whole, compared, seen)


def _identity(catalog: Catalog, tables: Collection[Relation]) -> object:
    """What no other tables have, nor these when they are replaced or altered; None where nothing tells."""
    if catalog.instance is None or not all(table.number for table in tables):
        return None
    return catalog.instance, *(
        (table.number, table.comment, tuple(table.columns.items()), tuple(table.comments.items())) for table in tables
    )
