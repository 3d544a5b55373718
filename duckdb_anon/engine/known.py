"""A release may hold texts that are values or nodes of a tree; only what is known is read.

A text column whose type is the original's is read as values, unless a hierarchy makes its texts nodes; so are the
members of lists, and the keys of counts, which are values in any case. Where a text is neither a value of the original
nor a node of its hierarchy, reading it would be a guess (`WHERE edu = 'BA'` on nodes answers 0 for certain), so the
release is refused with the remedy. A release whose comment names its method was labelled by it and needs no values to
compare with. What is compared is what is committed; where low and high are asked for, it is told which texts these
were, so that the rewritten query holds of no others (`rewrite.bounds.same_values`). A number reads as itself in any
case, so numbers are compared only where something is stated for certain.
Cost: the distinct texts of both tables, or of the columns that a query reads (`engine.release_looks`); so of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.quoting import ident, literal
from duckdb_anon.engine.release_labels import is_described
from duckdb_anon.engine.sensitive_edges import REST
from duckdb_anon.engine.shown_cells import cells_told, found_by, is_numeric, others, shown_values, structs, whole
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.folding import fold
from duckdb_anon.model.hierarchy import NULL_LEAF
from duckdb_anon.model.shapes import CHANNELS, EDGES
from duckdb_anon.model.shapes.types import (
    comparable,
    is_channels,
    is_text,
    list_type,
    slice_fields,
    struct_fields,
    without_enums,
)
from duckdb_anon.rewrite.query.seen_values import DIGEST, ROWS, SHOWN, SeenValues

_LEAVES = f"nullif(s.t, {literal(NULL_LEAF)})"
"""In a tree NULL is a leaf of its own."""


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


class _Compared(NamedTuple):
    """Values of a release beside those of a column of its original, or of that attribute's tree."""

    own: str
    tree: Relation | None
    values: SeenValues


def require_known_values(pair: Beside, told: str = "", read: Collection[str] | None = None) -> tuple[SeenValues, ...]:
    """Refuse a release with a text that neither the original nor the attribute's tree knows.

    Args:
        pair: the release and its original.
        told: what is asked of the texts besides, see `others`.
        read: the original's columns that are compared, in lower case; all of them by default.

    Returns:
        The texts that were compared with the original's, and what was asked of them.

    Raises:
        ColumnError: naming the column, how many texts are unknown, and what to do.
    """
    if not pair.visible:
        return ()
    original, release = pair.original, pair.release
    coarser = any(EDGES.stands_for(name) and name not in _folded(original) for name in map(fold, release.columns))
    rest = f" union all select {literal(REST)}" if coarser else ""
    asked = list(_compared(pair, _may_be_of, read))
    counts = []
    for own, tree, values in asked:
        if tree is None:
            known = f"select {_own(own, original, values)}::varchar from {whole(original)}{rest}"
            counts.append(others(values, release, known, _counted_of(values, original, release), told=told))
        else:
            counts.append(others(values, release, _nodes(tree), _LEAVES))
    found = found_by(pair.catalog, counts, [original, release, *pair.trees.values()])
    for (own, tree, values), (unknown, _) in zip(asked, found, strict=True):
        if unknown:
            any_row = f"select count(*), null from (from {whole(original)} limit 1)"
            if tree is None and found_by(pair.catalog, [any_row], [original]) == [(0, None)]:
                raise ColumnError(
                    f"{pair.function}: {original.given} has no rows, so nothing tells whether the texts of "
                    f"'{own}' in {release.given} are values or nodes of a hierarchy; {_remedy(own, release, values)}"
                )
            where = f"hierarchy {tree.given}" if tree is not None else original.given
            raise ColumnError(
                f"{pair.function}: {unknown} distinct text(s) of '{own}' in {release.given} are not in {where} (NULL "
                f"is one where it has none), so they cannot be read; {_remedy(own, release, values)}"
            )
    return tuple(
        replace(one.values, digest=digest) for one, (_, digest) in zip(asked, found, strict=True) if one.tree is None
    )


def texts_told(pair: Beside, read: Collection[str]) -> dict[SeenValues, str | None]:
    """What tells the cells of the texts that `require_known_values` compares with the original's; None where nothing.

    Args:
        pair: the release and its original.
        read: the original's columns that are compared, in lower case.
    """
    if not pair.visible:
        return {}
    texts = [one.values for one in _compared(pair, _may_be_of, read) if one.tree is None]
    found = found_by(pair.catalog, [cells_told(values, pair.release) for values in texts], [pair.release])
    return dict(zip(texts, (told for _, told in found), strict=True))


def require_known_numbers(pair: Beside, read: Collection[str]) -> tuple[SeenValues, ...]:
    """Refuse a release with a number, moment or truth that its original does not have, before anything is certain.

    Such a value reads as another one, but not for certain: that nobody has what the release does not show.

    Args:
        pair: the release and its original; labels of a tree are texts, so that no number is one.
        read: the original's columns that are compared, in lower case.

    Returns:
        The values that were compared.

    Raises:
        ColumnError: naming the column, how many values are unknown, and what to do.
    """
    if not pair.visible:
        return ()
    original, release = pair.original, pair.release
    compared = _compared(replace(pair, trees={}), _is_of_numbers, read)
    asked = [(own, replace(values, by_rows=not _counted(values))) for own, _, values in compared]
    counts = []
    for own, values in asked:
        cast, told = ("", ROWS) if values.by_rows else ("::varchar", DIGEST)
        known = f"select {_own(own, original, values)}{cast} from {whole(original)}"
        counts.append(others(values, release, known, _counted_of(values, original, release), cast, told))
    found = found_by(pair.catalog, counts, [original, release])
    for (own, _), (unknown, _) in zip(asked, found, strict=True):
        if unknown:
            raise ColumnError(
                f"{pair.function}: {unknown} distinct value(s) of '{own}' in {release.given} are not in "
                f"{original.given} (NULL is one where it has none), so low and high would not hold; compare with the "
                "table that the release was made of, or ask without them: bounds := 'none'. If the release is of it "
                f"all the same, let it say so: COMMENT ON COLUMN {release.given}.{ident(own)} IS 'anon: insensitive', "
                "or whatever its role is; duckdb_anon.release() and .release write it"
            )
    return tuple(replace(values, digest=digest) for (_, values), (_, digest) in zip(asked, found, strict=True))


def require_whole_counts(pair: Beside, bucket: str, read: Collection[str]) -> None:
    """Refuse a release whose counts leave rows of buckets out, before anything is certain: these would be NULL.

    Args:
        pair: the release and its original.
        bucket: the column with the numbers of buckets; '' where there is none.
        read: the original's columns that are compared, in lower case.

    Raises:
        ColumnError: naming the column, and how many buckets have fewer counts than rows.
    """
    if not pair.visible or not bucket:
        return
    original, release = pair.original, pair.release
    for own, _, values in _compared(replace(pair, trees={}), lambda *_: True, read):
        if not _counted(values) or _counted_of(values, original, release) != "*":
            continue
        counted = f"max(list_sum(map_values({'.'.join(map(ident, values.path))})))"
        buckets = f"select count(*) as n, {counted} as s from {whole(release)} group by {ident(bucket)}"
        nothing = f"exists(from {whole(original)} where {ident(own)} is null)"
        asked = f"select count(*) filter (where coalesce(s, 0) < n and not {nothing}), null from ({buckets})"
        ((short, _),) = found_by(pair.catalog, [asked], [original, release])
        if short:
            raise ColumnError(
                f"{pair.function}: in {short} bucket(s) of {release.given} the counts of '{own}' are of fewer rows "
                f"than the bucket has, and {original.given} has no NULL there, so low and high would not hold; put the "
                "counts back that were taken away, or ask without low and high: bounds := 'none'"
            )


def attributes_with_nodes(pair: Beside) -> frozenset[str]:
    """Attributes with a tree of which the release shows an inner node, in lower case.

    A release that shows leaves alone may have had its values exchanged or replaced by others, so nothing that holds of
    generalized cells holds of it for certain; what the planner cannot see shows nothing.

    Args:
        pair: the release and its original; the first column of a tree are the leaves.
    """
    release = pair.release
    if not pair.catalog.sees or not release.visible:
        return frozenset()
    folded = {fold(name): tree for name, tree in pair.trees.items()}
    asked = [
        (fold(values.attribute), f"select {ident(next(iter(tree.columns)))}::varchar from {whole(tree)}", values)
        for values, kind in shown_values(release, pair.original)
        if not is_numeric(kind) and not _counted(values) and (tree := folded.get(fold(values.attribute))) is not None
    ]
    numbers = [others(values, release, leaves, _LEAVES) for _, leaves, values in asked]
    inner = found_by(pair.catalog, numbers, [release, *pair.trees.values()])
    return frozenset(attribute for (attribute, *_), (number, _) in zip(asked, inner, strict=True) if number)


def _compared(pair: Beside, may_be_of: Callable[[str, str], bool], read: Collection[str] | None) -> Iterator[_Compared]:
    """Values that may be an original's and of which nothing else says what they are."""
    original, release = pair.original, pair.release
    spelled = _folded(original)
    randomized = {
        fold(field)
        for name, kind in release.columns.items()
        if CHANNELS.stands_for(name) and is_channels(kind) and fold(name) not in spelled
        for field, _ in struct_fields(kind)
    }
    folded_trees = {fold(name): tree for name, tree in pair.trees.items()}
    for values, kind in shown_values(release, original, read):
        attribute = fold(values.attribute)
        own = spelled.get(attribute)
        if own is None or not may_be_of(kind, original.columns[own]):
            continue
        tree = None if _counted(values) else folded_trees.get(attribute)
        if tree is None and (is_described(release) or attribute in randomized or _says_values(release, own)):
            continue
        yield _Compared(own, tree, values)


def _folded(table: Relation) -> dict[str, str]:
    """The names of a table's columns by what they are in lower case."""
    return {fold(name): name for name in table.columns}


def _own(own: str, original: Relation, values: SeenValues) -> str:
    """SQL of an original's values, one a row, as the release shows them."""
    listing = values.shown == "member" and list_type(original.columns[own]) is not None
    return SHOWN["member" if listing else "value"].format(path=ident(own))


def _counted_of(values: SeenValues, original: Relation, release: Relation) -> str:
    """Which values count as others: rows that are made up beside slices show NULL."""
    own = structs(original)
    sliced = any(slice_fields(kind) and fold(name) not in own for name, kind in release.columns.items())
    return "s.t" if sliced else "*"


def _counted(values: SeenValues) -> bool:
    return values.shown == "key"


def _may_be_of(kind: str, original: str) -> bool:
    """Whether texts of a column, a list or counts are an original's, or values of another type with texts inside."""
    if is_text(kind):
        return is_text(list_type(original) or original)
    return not is_numeric(kind) and without_enums(kind) == without_enums(original)


def _is_of_numbers(kind: str, original: str) -> bool:
    return is_numeric(kind) and comparable(kind, list_type(original) or original)


def _says_values(release: Relation, column: str) -> bool:
    """Whether the release's own comment gives the column a role and no tree: it shows values then."""
    said = next((text for name, text in release.comments.items() if fold(name) == fold(column)), "")
    return "anon:" in fold(said)


def _remedy(column: str, release: Relation, values: SeenValues) -> str:
    comment = f"COMMENT ON COLUMN {release.given}.{ident(column)} IS"
    if _counted(values):
        return (
            "counts are of values, so compare with the table that the release was made of; if they are its values all "
            f"the same, say so: {comment} 'anon: sensitive'; duckdb_anon.release() and .release write it"
        )
    return (
        f"if they are nodes, name the tree: hierarchies := {{{literal(column)}: 'TREE'}}, or {comment} "
        "'anon: quasi hierarchy=TREE'; duckdb_anon.release() and .release write it"
    )


def _nodes(tree: Relation) -> str:
    return " union all ".join(f"select {ident(level)}::varchar from {whole(tree)}" for level in tree.columns)
