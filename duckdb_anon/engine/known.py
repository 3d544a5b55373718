"""A release may hold texts that are values or nodes of a tree; only what is known is read.

A text column whose type is the original's is read as values, unless a hierarchy makes its texts nodes; so are the
members of lists, and the keys of counts, which are values in any case. Where a text is neither a value of the original
nor a node of its hierarchy, reading it would be a guess (`WHERE edu = 'BA'` on nodes answers 0 for certain), so the
release is refused with the remedy. A release whose comment names its method was labelled by it and needs no values to
compare with. Cost: the distinct texts of both tables, once while planning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
from duckdb_anon.model.shapes.types import bag_type, is_channels, is_text, list_type, struct_fields


@dataclass(frozen=True)
class _Texts:
    """A text column of a release: SQL of its texts, one a row, the attribute it shows, and whether they are counted."""

    attribute: str
    sql: str
    counted: bool = False


def require_known_values(
    function: str, catalog: Catalog, original: Relation, release: Relation, trees: Mapping[str, Relation]
) -> None:
    """Refuse a release with a text that neither the original nor the attribute's tree knows.

    Args:
        function: SQL function, for messages.
        catalog: what the planner can see.
        original: the original, or the empty table of its columns.
        release: its release.
        trees: hierarchy table of each attribute that has one.

    Raises:
        ColumnError: naming the column, how many texts are unknown, and what to do.
    """
    if not catalog.sees or not (original.visible and release.visible):
        return
    spelled = {fold(name): name for name in original.columns}
    randomized = any(
        CHANNELS.stands_for(name) and is_channels(kind) and fold(name) not in spelled
        for name, kind in release.columns.items()
    )
    coarser = any(EDGES.stands_for(name) and name not in spelled for name in map(fold, release.columns))
    rest = f" union all select {literal(REST)}" if coarser else ""
    folded_trees = {fold(name): tree for name, tree in trees.items()}
    asked: list[tuple[str, Relation | None, bool]] = []
    counts = [f"select count(*) from (from {_read(original)} limit 1)"]
    for texts in _texts_of(release, original):
        own = spelled.get(fold(texts.attribute))
        member = list_type(original.columns[own]) if own is not None else None
        if own is None or not is_text(member or original.columns[own]):
            continue
        tree = None if texts.counted else folded_trees.get(fold(own))
        if tree is None and (is_described(release) or randomized or _says_values(release, own)):
            continue
        values = ident(own) if member is None else f"unnest({ident(own)})"
        known = _nodes(tree) if tree is not None else f"select distinct {values}::varchar from {_read(original)}{rest}"
        asked.append((own, tree, texts.counted))
        counts.append(_others(texts, known, tree is not None))
    rows, *others = _counts(catalog, counts, [original, release, *trees.values()]) if asked else [0]
    for (own, tree, counted), unknown in zip(asked, others, strict=True):
        if tree is None and rows == 0:
            raise ColumnError(
                f"{function}: {original.given} has no rows, so nothing tells whether the texts of "
                f"'{own}' in {release.given} are values or nodes of a hierarchy; {_remedy(own, release, counted)}"
            )
        if unknown:
            where = f"hierarchy {tree.given}" if tree is not None else original.given
            raise ColumnError(
                f"{function}: {unknown} distinct text(s) of '{own}' in {release.given} are not in {where}, so they "
                f"cannot be read; {_remedy(own, release, counted)}"
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
        for texts in _texts_of(release, original)
        if not texts.counted and (tree := folded.get(fold(texts.attribute))) is not None
    ]
    numbers = [_others(texts, leaves, True) for _, leaves, texts in asked]
    inner = _counts(catalog, numbers, [release, *trees.values()])
    return frozenset(attribute for (attribute, *_), number in zip(asked, inner, strict=True) if number)


def _others(texts: _Texts, known: str, of_tree: bool) -> str:
    """SELECT of the number of distinct texts that `known` does not list; in a tree NULL is a leaf of its own."""
    counted = f"nullif(t, {literal(NULL_LEAF)})" if of_tree else "t"
    return f"select count({counted}) from ({texts.sql} except ({known})) as s(t)"


def _says_values(release: Relation, column: str) -> bool:
    """Whether the release's own comment gives the column a role and no tree: its texts are values then."""
    said = next((text for name, text in release.comments.items() if fold(name) == fold(column)), "")
    return "anon:" in fold(said)


def _remedy(column: str, release: Relation, counted: bool) -> str:
    comment = f"COMMENT ON COLUMN {release.given}.{ident(column)} IS"
    if counted:
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


def _counts(catalog: Catalog, asked: list[str], read: Sequence[Relation]) -> list[int]:
    """What each of some SELECTs counts, asked in one statement, for planning it takes longer than a small table."""
    cursor = catalog.cursor_for(read) if asked else None
    if cursor is None:
        return [0] * len(asked)
    counted = (f"select {number}, * from ({one})" for number, one in enumerate(asked))
    try:
        found = dict(cursor.execute(" union all ".join(counted)).fetchall())
    except duckdb.Error:
        tick()  # an interrupt is none of these
        # a table of which the planner sees the columns and not the rows: the query itself will fail
        return [0] if len(asked) == 1 else [number for one in asked for number in _counts(catalog, [one], read)]
    return [found[number] for number in range(len(asked))]


def _texts_of(release: Relation, original: Relation) -> Iterator[_Texts]:
    """Columns of texts, of lists of texts and of counts of texts, and such attributes among those of slices.

    A STRUCT that the original has itself is no slice, and what is in it no attribute.
    """
    whole = {fold(name) for name, kind in original.columns.items() if struct_fields(kind)}
    for column, kind in release.columns.items():
        fields = () if fold(column) in whole else struct_fields(kind)
        for attribute, inside, path in (
            (column, kind, ident(column)),
            *((field, inside, f"{ident(column)}.{ident(field)}") for field, inside in fields),
        ):
            listed, counted = list_type(inside), bag_type(inside)
            if is_text(inside):
                yield _Texts(attribute, f"select {path}::varchar from {_read(release)}")
            elif listed is not None and is_text(listed):
                yield _Texts(attribute, f"select unnest({path})::varchar from {_read(release)}")
            elif counted is not None and is_text(counted):
                yield _Texts(attribute, f"select unnest(map_keys({path}))::varchar from {_read(release)}", True)
