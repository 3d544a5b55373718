"""A release is looked at whole once; of each query after that, what it reads is looked at.

Whether a release holds what nothing knows (`engine.known`) takes the different texts of all columns of both tables,
which is longer than the rest of planning. Of tables by their names it is asked when they first stand beside one
another; after that it is asked anew of the columns that a query reads, on which alone its answer rests. What its
buckets say of one another is looked at where a query reads their counts. Where nothing is stated for certain it is
enough that cells are those that were looked at before: texts that were the original's are no nodes, and buckets are
what they were. A table that was replaced is another one, and so is one whose columns, types or comments were changed.
Views, files and SELECTs have no name that tells whether they are the same: they are looked at whole for each query.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import duckdb

from duckdb_anon.engine.beside import Beside
from duckdb_anon.engine.bucket_counts import counts_on_every_row
from duckdb_anon.engine.bucket_kinds import bucket_of_kinds
from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.collation import collated
from duckdb_anon.engine.column_roles import is_described
from duckdb_anon.engine.known import require_known_values, texts_compared
from duckdb_anon.engine.known_numbers import require_known_numbers, require_weights, require_whole_counts
from duckdb_anon.engine.shown_cells import found_by, shown_values, whole
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_formats.duckdb_types import bag_type
from duckdb_anon.rewrite.query.seen_values import CELLS, DIGEST, SeenValues

_MOST = 1000  # pairs of tables that are kept in mind
_looked_at: dict[object, _Kept] = {}
_lock = threading.Lock()


@dataclass
class _Kept:
    """What told the cells that were looked at, and what was found of them.

    Attributes:
        texts: of texts that were compared with the original's.
        buckets: of the last buckets that were looked at.
    """

    texts: dict[SeenValues, str | None] = field(default_factory=dict)
    buckets: tuple[str, tuple[str, bool]] | None = None


@dataclass(frozen=True)
class ReleaseLooks:
    """Looks at a release for one call; see `rewrite.query.seen_values.Looks`.

    Attributes:
        pair: the release and its original.
        certain: whether low and high are asked for.
        kept: what earlier calls found; None where nothing tells that these are the same tables.
        seen: the texts that were seen when it was looked at whole; None where an earlier call did that.
        told: what tells the cells that this call has asked for.
    """

    pair: Beside
    certain: bool
    kept: _Kept | None
    seen: tuple[SeenValues, ...] | None
    told: dict[SeenValues, str | None] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The release, as SQL of a FROM item that `row` finds, without a name of its own."""
        return self.pair.release.full or self.pair.release.unnamed

    def buckets(self, read: Collection[str]) -> tuple[str, bool]:
        """The column of numbers of buckets that tell their kinds, or '', and whether each row carries all its counts.

        Either says that counts are of all rows of their buckets.
        """
        counts = {fold(name) for name, kind in self.pair.release.columns.items() if bag_type(kind) is not None}
        return self._of_buckets if counts.intersection(read) else ("", False)

    @cached_property
    def _of_buckets(self) -> tuple[str, bool]:
        original, release = self.pair.original, self.pair.release
        counts = [values for values, _ in shown_values(release, original) if values.counted]
        if self.kept is None or self.certain or is_described(release) or len(counts) != 1:
            return self._look_at_buckets()
        if self.kept.buckets is not None and self.kept.buckets[0] == self._cells_of(counts)[counts[0]]:
            return self.kept.buckets[1]
        with self.pair.catalog.one_state([release]):
            self.told.clear()
            found, told = self._look_at_buckets(), self._cells_of(counts)[counts[0]]
        self.kept.buckets = (told, found) if told is not None else None
        return found

    def _look_at_buckets(self) -> tuple[str, bool]:
        given = self.pair.catalog, self.pair.release, self.pair.contents.bucket, self.certain
        kinds = bucket_of_kinds(*given)
        return kinds, not kinds and counts_on_every_row(*given)

    def _cells_of(self, wanted: Collection[SeenValues]) -> dict[SeenValues, str | None]:
        """What tells the cells that show some values, which is asked once a call; None where nothing does."""
        asked, release = [values for values in wanted if values not in self.told], self.pair.release
        told = [f"select 0, {CELLS.format(cell=self.pair.cells(values))} from {whole(release)}" for values in asked]
        found = found_by(self.pair.catalog, told, [release])
        self.told.update(zip(asked, (told for _, told in found), strict=True))
        return {values: self.told[values] for values in wanted}

    def texts(self, read: Collection[str]) -> tuple[SeenValues, ...]:
        """Texts of the columns `read` on which what is stated for certain rests; raises where one is not known."""
        if not self.certain:
            if self.kept is not None and self.seen is None:
                left = self._not_as_compared(self.kept.texts, read)
                for values in require_known_values(self.pair, CELLS, left):
                    self.kept.texts[replace(values, digest=None)] = values.digest
            return ()
        seen = require_known_values(self.pair, DIGEST, read) if self.seen is None else self.seen
        return tuple(values for values in seen if fold(values.attribute) in read)

    def _not_as_compared(self, before: Mapping[SeenValues, str | None], read: Collection[str]) -> set[str]:
        """Columns among `read` but those of which all texts stand in cells that were compared before."""
        told = self._cells_of(texts_compared(self.pair, read))
        changed = {values for values, cells in told.items() if cells is None or cells != before.get(values)}
        same = {fold(values.attribute) for values in told} - {fold(values.attribute) for values in changed}
        return set(read) - same

    def recollated(self, read: Collection[str]) -> frozenset[str]:
        """Columns among `read` with a collation that only one of the tables has."""
        catalog = self.pair.catalog
        one, other = (
            {fold(name) for name in collated(catalog, table, [c for c in table.columns if fold(c) in read])}
            for table in (self.pair.original, self.pair.release)
        )
        return frozenset(one ^ other)

    def numbers(self, read: Collection[str]) -> tuple[SeenValues, ...]:
        """Numbers, moments and truths in the columns `read`; raises where the original does not have one of them."""
        if not self.certain:
            return ()
        if not any(self.buckets(read)):
            require_whole_counts(self.pair, read)
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


def looks_at(pair: Beside, certain: bool) -> ReleaseLooks:
    """Look at a release as far as it has to be before a query is read.

    Args:
        pair: the release and its original.
        certain: whether low and high are asked for.

    Raises:
        ColumnError: a text is neither a value of the original nor a node of the attribute's tree, or a row stands for
            no number of rows.
    """
    require_weights(pair)
    identity = _identity(pair.catalog, [pair.original, pair.release, *pair.trees.values()])
    kept, seen = _looked_at.get(identity), None
    if kept is None:
        seen = require_known_values(pair, DIGEST if certain else "")
        if identity is not None:
            kept = _Kept()
            with _lock:
                _looked_at[identity] = kept
                for old in list(_looked_at)[:-_MOST]:
                    del _looked_at[old]
    return ReleaseLooks(pair, certain, kept, seen)


def _identity(catalog: Catalog, tables: Collection[Relation]) -> object:
    """What no other tables have, nor these when they are replaced or altered; None where nothing tells."""
    if catalog.instance is None or not all(table.number for table in tables):
        return None
    return catalog.instance, *(
        (table.number, table.comment, tuple(table.columns.items()), tuple(table.comments.items())) for table in tables
    )
