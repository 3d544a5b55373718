"""A release beside its original: which of its values are held against which column, and which are not found there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.column_roles import is_described
from duckdb_anon.engine.shown_cells import others, shown_values, structs, whole
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import Contents, may_carry, read
from duckdb_anon.model.release_formats.duckdb_types import list_type, slice_fields
from duckdb_anon.rewrite.query.seen_values import DIGEST, SHOWN, SeenValues


@dataclass(frozen=True)
class Beside:
    """A release beside its original, as a call names them.

    Attributes:
        function: SQL function, for messages.
        catalog: what the planner can see.
        original: the original, or the empty table of its columns.
        release: its release.
        trees: hierarchy table of each attribute that has one.
    """

    function: str
    catalog: Catalog
    original: Relation
    release: Relation
    trees: Mapping[str, Relation]

    @property
    def visible(self) -> bool:
        """Whether the planner can see both."""
        return self.catalog.sees and self.original.visible and self.release.visible

    @cached_property
    def contents(self) -> Contents:
        """What the release carries, nothing where no column may be a carrier; raises where that is in doubt."""
        original, release = self.original.columns, self.release.columns
        if not any(map(may_carry, release)):
            return Contents()
        return read(release, original, trees=self.trees, table=self.release.given, function=self.function)

    def cells(self, values: SeenValues) -> str:
        """SQL of the cells that show some values; of counts, beside the number of the bucket that they are of."""
        path, bucket = ".".join(map(ident, values.path)), self.contents.bucket if values.counted else ""
        return f"{ident(bucket)}, {path}" if bucket else path


@dataclass(frozen=True)
class Compared:
    """Values of a release beside those of a column of its original, or of that attribute's tree.

    Attributes:
        pair: the release and its original.
        own: the original's column, as it is spelled there.
        tree: the attribute's tree, if it has one.
        values: which values of the release.
    """

    pair: Beside
    own: str
    tree: Relation | None
    values: SeenValues

    @property
    def counts_nulls(self) -> bool:
        """Whether a NULL that the original does not have is another value; rows made up beside slices show some."""
        columns, own = self.pair.release.columns, structs(self.pair.original)
        return not any(slice_fields(kind) and fold(name) not in own for name, kind in columns.items())

    def not_found(self, told: str = "", cast: str = "::varchar", more: str = "") -> str:
        """SELECT of how many different values the original does not have, and of what tells all of them.

        Args:
            told: what that is: `DIGEST` of the different ones, or SQL of all `{cell}`; nothing by default.
            cast: what makes of values of both what is compared.
            more: SQL that goes on with what is known besides.
        """
        original, shown = self.pair.original, self.values.shown
        listing = shown == "member" and list_type(original.columns[self.own]) is not None
        own = SHOWN["member" if listing else "value"].format(path=ident(self.own))
        known = f"select {own}{cast} from {whole(original)}{more}"
        told = told.format(cell=self.pair.cells(self.values)) if told != DIGEST else told
        return others(self.values, self.pair.release, known, "*" if self.counts_nulls else "s.t", cast, told)


def compared(
    pair: Beside, may_be_of: Callable[[str, str], bool], asked: Collection[str] | None = None
) -> Iterator[Compared]:
    """Values that may be an original's and of which nothing else says what they are.

    Args:
        pair: the release and its original.
        may_be_of: whether values of a type may be those of a column of the original, by its type.
        asked: the original's columns that are asked for, in lower case; all of them by default.
    """
    original, release = pair.original, pair.release
    spelled = {fold(name): name for name in original.columns}
    randomized = {name for name, content in pair.contents.columns.items() if content.truth == "randomized"}
    folded_trees = {fold(name): tree for name, tree in pair.trees.items()}
    for values, kind in shown_values(release, original, asked):
        attribute = fold(values.attribute)
        own = spelled.get(attribute)
        if own is None or not may_be_of(kind, original.columns[own]):
            continue
        tree = None if values.counted else folded_trees.get(attribute)
        if tree is None and (is_described(release) or attribute in randomized or _says_values(release, own)):
            continue
        yield Compared(pair, own, tree, values)


def _says_values(release: Relation, column: str) -> bool:
    """Whether the release's own comment gives the column a role and no tree: it shows values then."""
    said = next((text for name, text in release.comments.items() if fold(name) == fold(column)), "")
    return "anon:" in fold(said)
