"""A release may hold texts that are values or nodes of a tree; only what is known is read.

A text column whose type is the original's is read as values, unless a hierarchy makes its texts nodes; so are the
members of lists, and the keys of counts, which are values in any case. Where a text is neither a value of the original
nor a node of its hierarchy, reading it would be a guess (`WHERE edu = 'BA'` on nodes answers 0 for certain), so the
release is refused with the remedy. A release whose comment names its method was labelled by it and needs no values to
compare with. What is compared is what is committed; where low and high are asked for, it is told which texts these
were, so that the rewritten query holds of no others (`rewrite.bounds.same_values`).
Cost: the distinct texts of both tables, or of the columns that a query reads (`engine.release_looks`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from duckdb_anon.engine.beside import Beside, Compared, compared
from duckdb_anon.engine.catalog import Relation
from duckdb_anon.engine.sensitive_coarsening import REST
from duckdb_anon.engine.shown_cells import found_by, is_numeric, others, shown_values, whole
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.hierarchy import NULL_LEAF
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_text, list_type, without_enums
from duckdb_anon.rewrite.query.seen_values import SeenValues

_LEAVES = f"nullif(s.t, {literal(NULL_LEAF)})"
"""In a tree NULL is a leaf of its own."""


def require_known_values(pair: Beside, told: str = "", read: Collection[str] | None = None) -> tuple[SeenValues, ...]:
    """Refuse a release with a text that neither the original nor the attribute's tree knows.

    Args:
        pair: the release and its original.
        told: what is asked of the texts besides, see `Compared.not_found`.
        read: the original's columns that are compared, in lower case; all of them by default.

    Returns:
        The texts that were compared with the original's, and what was asked of them.

    Raises:
        ColumnError: naming the column, how many texts are unknown, and what to do.
    """
    if not pair.visible:
        return ()
    original, release = pair.original, pair.release
    rest = f" union all select {literal(REST)}" if pair.contents.edges else ""
    asked = list(compared(pair, _may_be_of, read))
    counts = [
        one.not_found(told, more=rest) if one.tree is None else others(one.values, release, _nodes(one.tree), _LEAVES)
        for one in asked
    ]
    found = found_by(pair.catalog, counts, [original, release, *pair.trees.values()])
    for one, (unknown, _) in zip(asked, found, strict=True):
        if unknown:
            any_row = f"select count(*), null from (from {whole(original)} limit 1)"
            if one.tree is None and found_by(pair.catalog, [any_row], [original]) == [(0, None)]:
                raise ColumnError(
                    f"{pair.function}: {original.given} has no rows, so nothing tells whether the texts of "
                    f"'{one.own}' in {release.given} are values or nodes of a hierarchy; {_remedy(one)}"
                )
            where = f"hierarchy {one.tree.given}" if one.tree is not None else original.given
            raise ColumnError(
                f"{pair.function}: {unknown} distinct text(s) of '{one.own}' in {release.given} are not in {where} "
                f"(NULL is one where it has none), so they cannot be read; {_remedy(one)}"
            )
    return tuple(
        replace(one.values, digest=digest) for one, (_, digest) in zip(asked, found, strict=True) if one.tree is None
    )


def texts_compared(pair: Beside, read: Collection[str]) -> list[SeenValues]:
    """The texts that `require_known_values` compares with the original's.

    Args:
        pair: the release and its original.
        read: the original's columns that are compared, in lower case.
    """
    return [one.values for one in compared(pair, _may_be_of, read) if one.tree is None] if pair.visible else []


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
        if not is_numeric(kind) and not values.counted and (tree := folded.get(fold(values.attribute))) is not None
    ]
    numbers = [others(values, release, leaves, _LEAVES) for _, leaves, values in asked]
    inner = found_by(pair.catalog, numbers, [release, *pair.trees.values()])
    return frozenset(attribute for (attribute, *_), (number, _) in zip(asked, inner, strict=True) if number)


def _may_be_of(kind: str, original: str) -> bool:
    """Whether texts of a column, a list or counts are an original's, or values of another type with texts inside."""
    if is_text(kind):
        return is_text(list_type(original) or original)
    return not is_numeric(kind) and without_enums(kind) == without_enums(original)


def _remedy(one: Compared) -> str:
    release, column = one.pair.release, one.own
    if not release.takes_comments:
        named = f"hierarchies := {{{literal(column)}: 'TREE'}}"
        return (
            "counts are of values, so compare with the table that the release was made of"
            if one.values.counted
            else f"if they are nodes, name the tree: {named}; CSV and JSON lose the types of sets and counts, so keep "
            "releases in DuckDB or Parquet"
        )
    comment = f"COMMENT ON COLUMN {release.given}.{ident(column)} IS"
    if one.values.counted:
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
