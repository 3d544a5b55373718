"""A release may hold texts that are values or nodes of a tree; only what is known is read.

A text column whose type is the original's is read as values, unless a hierarchy makes its texts nodes. Where a text is
neither a value of the original nor a node of its hierarchy, reading it would be a guess (`WHERE edu = 'BA'` on nodes
answers 0 for certain), so the release is refused with the remedy. A release whose comment names its method was
labelled by it and needs no values to compare with. Cost: the distinct texts of both tables, once while planning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from duckdb_anon.model.shapes.types import is_text, list_type, struct_fields


@dataclass(frozen=True)
class _Texts:
    """A text column of a release: SQL of its texts, one a row, and the attribute it shows."""

    attribute: str
    sql: str


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
    randomized = CHANNELS.word in {fold(name) for name in release.columns} - set(spelled)
    coarser = any(EDGES.stands_for(name) and name not in spelled for name in map(fold, release.columns))
    rest = f" union all select {literal(REST)}" if coarser else ""
    folded_trees = {fold(name): tree for name, tree in trees.items()}
    asked: list[tuple[str, Relation | None]] = []
    counts = [f"select count(*) from (from {_read(original)} limit 1)"]
    for texts in _texts_of(release):
        own = spelled.get(fold(texts.attribute))
        if own is None or not is_text(original.columns[own]):
            continue
        tree = folded_trees.get(fold(own))
        if tree is None and (is_described(release) or randomized or _says_values(release, own)):
            continue
        known = (
            _nodes(tree) if tree is not None else f"select distinct {ident(own)}::varchar from {_read(original)}{rest}"
        )
        asked.append((own, tree))
        counts.append(_others(texts, known, tree is not None))
    rows, *others = _counts(catalog, counts, [original, release, *trees.values()]) if asked else [0]
    for (own, tree), unknown in zip(asked, others, strict=True):
        if tree is None and rows == 0:
            raise ColumnError(
                f"{function}: {original.given} has no rows, so nothing tells whether the texts of "
                f"'{own}' in {release.given} are values or nodes of a hierarchy; {_remedy(own, release)}"
            )
        if unknown:
            where = f"hierarchy {tree.given}" if tree is not None else original.given
            raise ColumnError(
                f"{function}: {unknown} distinct text(s) of '{own}' in {release.given} are not in {where}, so they "
                f"cannot be read; {_remedy(own, release)}"
            )


def attributes_with_nodes(catalog: Catalog, release: Relation, trees: Mapping[str, Relation]) -> frozenset[str]:
    """Attributes with a tree of which the release shows an inner node, in lower case.

    A release that shows leaves alone may have had its values exchanged or replaced by others, so nothing that holds of
    generalized cells holds of it for certain; what the planner cannot see shows nothing.

    Args:
        catalog: what the planner can see.
        release: the release.
        trees: hierarchy table of each attribute that has one, its first column the leaves.
    """
    if not catalog.sees or not release.visible:
        return frozenset()
    folded = {fold(name): tree for name, tree in trees.items()}
    asked = [
        (fold(texts.attribute), f"select {ident(next(iter(tree.columns)))}::varchar from {_read(tree)}", texts)
        for texts in _texts_of(release)
        if (tree := folded.get(fold(texts.attribute))) is not None
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


def _remedy(column: str, release: Relation) -> str:
    return (
        f"if they are nodes, name the tree: hierarchies := {{{literal(column)}: 'TREE'}}, or COMMENT ON COLUMN "
        f"{release.given}.{ident(column)} IS 'anon: quasi hierarchy=TREE'; duckdb_anon.release() and .release write it"
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


def _texts_of(release: Relation) -> list[_Texts]:
    """Text columns, lists of texts, and those among the attributes of STRUCT columns."""
    found = []
    for column, kind in release.columns.items():
        if is_text(kind):
            found.append(_Texts(column, f"select {ident(column)}::varchar from {_read(release)}"))
        elif (inside := list_type(kind)) and is_text(inside):
            found.append(_Texts(column, f"select unnest({ident(column)})::varchar from {_read(release)}"))
        for field, inside in struct_fields(kind):
            if is_text(inside):
                path = f"{ident(column)}.{ident(field)}"
                found.append(_Texts(field, f"select {path}::varchar from {_read(release)}"))
    return found
