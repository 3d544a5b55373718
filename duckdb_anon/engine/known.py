"""A release may hold texts that are values or nodes of a tree; only what is known is read.

A text column whose type is the original's is read as values, unless a hierarchy makes its texts nodes; so are the
members of lists, and the keys of counts, which are values in any case. Where a text is neither a value of the original
nor a node of its hierarchy, reading it would be a guess (`WHERE edu = 'BA'` on nodes answers 0 for certain), so the
release is refused with the remedy. A release whose comment names its method was labelled by it and needs no values to
compare with. What is compared is what is committed; where low and high are asked for, it is told which texts these
were, so that the rewritten query holds of no others (`rewrite.bounds.same_texts`).
Cost: the distinct texts of both tables, once while planning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import duckdb

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.quoting import ident, literal
from duckdb_anon.engine.release_labels import is_described
from duckdb_anon.engine.sensitive_edges import REST
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.folding import fold
from duckdb_anon.model.hierarchy import NULL_LEAF
from duckdb_anon.model.progress import tick
from duckdb_anon.model.shapes import CHANNELS, EDGES
from duckdb_anon.model.shapes.types import (
    bag_type,
    is_boolean,
    is_channels,
    is_moment,
    is_number,
    is_text,
    list_type,
    slice_fields,
    struct_fields,
    without_enums,
)
from duckdb_anon.rewrite.query.seen_texts import DIFFERENT, DIGEST, SHOWN, SeenTexts

_LEAVES = f"nullif(t, {literal(NULL_LEAF)})"
"""In a tree NULL is a leaf of its own."""


def require_known_values(
    function: str,
    catalog: Catalog,
    original: Relation,
    release: Relation,
    trees: Mapping[str, Relation],
    certain: bool = False,
) -> tuple[SeenTexts, ...]:
    """Refuse a release with a text that neither the original nor the attribute's tree knows.

    Args:
        function: SQL function, for messages.
        catalog: what the planner can see.
        original: the original, or the empty table of its columns.
        release: its release.
        trees: hierarchy table of each attribute that has one.
        certain: whether something will be stated for certain.

    Returns:
        The texts that were compared with the original's, where something will be stated for certain.

    Raises:
        ColumnError: naming the column, how many texts are unknown, and what to do.
    """
    if not catalog.sees or not (original.visible and release.visible):
        return ()
    spelled = {fold(name): name for name in original.columns}
    randomized = {
        fold(field)
        for name, kind in release.columns.items()
        if CHANNELS.stands_for(name) and is_channels(kind) and fold(name) not in spelled
        for field, _ in struct_fields(kind)
    }
    coarser = any(EDGES.stands_for(name) and name not in spelled for name in map(fold, release.columns))
    rest = f" union all select {literal(REST)}" if coarser else ""
    folded_trees = {fold(name): tree for name, tree in trees.items()}
    asked: list[tuple[str, Relation | None, SeenTexts]] = []
    counts = [f"select count(*), null from (from {_read(original)} limit 1)"]
    sliced = _is_sliced(release, original)
    for texts, kind in _texts_of(release, original):
        own = spelled.get(fold(texts.attribute))
        if own is None or not _may_be_of(kind, original.columns[own]):
            continue
        tree = None if _counted(texts) else folded_trees.get(fold(own))
        if tree is None and (is_described(release) or fold(own) in randomized or _says_values(release, own)):
            continue
        listing = texts.shown == "member" and list_type(original.columns[own]) is not None
        values = SHOWN["member" if listing else "value"].format(path=ident(own))
        known = _nodes(tree) if tree is not None else f"select distinct {values}::varchar from {_read(original)}{rest}"
        # rows that are made up beside slices show NULL, and counts have no key of it
        strange = _LEAVES if tree is not None else "t" if sliced or _counted(texts) else "*"
        asked.append((own, tree, texts))
        counts.append(_others(texts, release, known, strange, certain and tree is None))
    (rows, _), *others = _counts(catalog, counts, [original, release, *trees.values()]) if asked else [(0, None)]
    for (own, tree, texts), (unknown, _) in zip(asked, others, strict=True):
        if tree is None and rows == 0:
            raise ColumnError(
                f"{function}: {original.given} has no rows, so nothing tells whether the texts of "
                f"'{own}' in {release.given} are values or nodes of a hierarchy; {_remedy(own, release, texts)}"
            )
        if unknown:
            where = f"hierarchy {tree.given}" if tree is not None else original.given
            raise ColumnError(
                f"{function}: {unknown} distinct text(s) of '{own}' in {release.given} are not in {where} (NULL is one "
                f"where it has none), so they cannot be read; {_remedy(own, release, texts)}"
            )
    return tuple(
        replace(texts, digest=digest)
        for (_, tree, texts), (_, digest) in zip(asked, others, strict=True)
        if certain and tree is None
    )


def attributes_with_nodes(
    catalog: Catalog, original: Relation, release: Relation, trees: Mapping[str, Relation]
) -> frozenset[str]:
    """Attributes with a tree of which the release shows an inner node, in lower case.

    A release that shows leaves alone may have had its values exchanged or replaced by others, so nothing that holds of
    generalized cells holds of it for certain; what the planner cannot see shows nothing.

    Args:
        catalog: what the planner can see.
        original: the original, or the empty table of its columns.
        release: its release.
        trees: hierarchy table of each attribute that has one, its first column the leaves.
    """
    if not catalog.sees or not release.visible:
        return frozenset()
    folded = {fold(name): tree for name, tree in trees.items()}
    asked = [
        (fold(texts.attribute), f"select {ident(next(iter(tree.columns)))}::varchar from {_read(tree)}", texts)
        for texts, _ in _texts_of(release, original)
        if not _counted(texts) and (tree := folded.get(fold(texts.attribute))) is not None
    ]
    numbers = [_others(texts, release, leaves, _LEAVES) for _, leaves, texts in asked]
    inner = _counts(catalog, numbers, [release, *trees.values()])
    return frozenset(attribute for (attribute, *_), (number, _) in zip(asked, inner, strict=True) if number)


def _counted(texts: SeenTexts) -> bool:
    return texts.shown == "key"


def _may_be_of(kind: str, original: str) -> bool:
    """Whether texts of a column, a list or counts are an original's, or values of another type with texts inside."""
    if kind == "VARCHAR":
        return is_text(list_type(original) or original)
    return without_enums(kind) == without_enums(original)


def _is_sliced(release: Relation, original: Relation) -> bool:
    """Whether a release has slices: a STRUCT that is no box, tells no channels, and that the original has not."""
    own = _structs(original)
    return any(slice_fields(kind) and fold(name) not in own for name, kind in release.columns.items())


def _structs(table: Relation) -> frozenset[str]:
    """The columns of a table that are STRUCTs, in lower case."""
    return frozenset(fold(name) for name, kind in table.columns.items() if struct_fields(kind))


def _others(texts: SeenTexts, release: Relation, known: str, counted: str, told: bool = False) -> str:
    """SELECT of the number of distinct texts that `known` does not list, and of what tells the set of all, if asked.

    Args:
        texts: which texts.
        release: the release.
        known: SELECT of the texts that are known.
        counted: which of the others are counted: 't' those that are not NULL, '*' NULL too.
        told: whether what tells the set is asked for.
    """
    shown = SHOWN[texts.shown].format(path=".".join(map(ident, texts.path)))
    if not told:
        sql = f"select {shown}::varchar from {_read(release)}"
        return f"select count({counted}), null from ({sql} except ({known})) as s(t)"
    return (
        f"with _anon_seen as materialized ({DIFFERENT.format(shown=shown, release=_read(release))}) select "
        f"(select count({counted}) from (select decode(_shown) from _anon_seen except ({known})) as s(t)), "
        f"(select {DIGEST} from _anon_seen)"
    )


def _says_values(release: Relation, column: str) -> bool:
    """Whether the release's own comment gives the column a role and no tree: its texts are values then."""
    said = next((text for name, text in release.comments.items() if fold(name) == fold(column)), "")
    return "anon:" in fold(said)


def _remedy(column: str, release: Relation, texts: SeenTexts) -> str:
    comment = f"COMMENT ON COLUMN {release.given}.{ident(column)} IS"
    if _counted(texts):
        return (
            "counts are of values, so compare with the table that the release was made of; if they are its values all "
            f"the same, say so: {comment} 'anon: sensitive'; duckdb_anon.release() and .release write it"
        )
    return (
        f"if they are nodes, name the tree: hierarchies := {{{literal(column)}: 'TREE'}}, or {comment} "
        "'anon: quasi hierarchy=TREE'; duckdb_anon.release() and .release write it"
    )


def _nodes(tree: Relation) -> str:
    return " union all ".join(f"select {ident(level)}::varchar from {_read(tree)}" for level in tree.columns)


def _read(relation: Relation) -> str:
    """A relation as it is read here, without bringing the cursor to the caller's place where that is not needed."""
    return relation.full or relation.sql


def _counts(catalog: Catalog, asked: list[str], read: Sequence[Relation]) -> list[tuple[int, str | None]]:
    """What each of some SELECTs counts, asked in one statement, for planning it takes longer than a small table."""
    cursor = catalog.cursor_for(read) if asked else None
    if cursor is None:
        return [(0, None)] * len(asked)
    counted = (f"select {number}, * from ({one})" for number, one in enumerate(asked))
    try:
        found = {row[0]: row[1:] for row in cursor.execute(" union all ".join(counted)).fetchall()}
    except duckdb.Error:
        tick()  # an interrupt is none of these
        # a table of which the planner sees the columns and not the rows: the query itself will fail
        return [(0, None)] if len(asked) == 1 else [found for one in asked for found in _counts(catalog, [one], read)]
    return [found[number] for number in range(len(asked))]


def _texts_of(release: Relation, original: Relation) -> Iterator[tuple[SeenTexts, str]]:
    """Columns of texts, of lists of texts and of counts of texts, and such attributes among those of slices.

    And columns of types that may hold texts inside, each with its type. A STRUCT that the original has itself is no
    slice, and what is in it no attribute.
    """
    whole = _structs(original)
    for column, kind in release.columns.items():
        fields = () if fold(column) in whole else struct_fields(kind)
        for attribute, inside, path in (
            (column, kind, (column,)),
            *((field, inside, (column, field)) for field, inside in fields),
        ):
            listed, counted = list_type(inside), bag_type(inside)
            if is_text(inside):
                yield SeenTexts(attribute, path, "value"), "VARCHAR"
            elif listed is not None and is_text(listed):
                yield SeenTexts(attribute, path, "member"), "VARCHAR"
            elif counted is not None and is_text(counted):
                yield SeenTexts(attribute, path, "key"), "VARCHAR"
            elif not (is_number(inside) or is_moment(inside) or is_boolean(inside)):
                yield SeenTexts(attribute, path, "value"), inside
