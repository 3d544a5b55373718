"""Texts of a release are read where it is clear whether they are values or nodes of a hierarchy; others are refused.

A text column whose type is the original's is read as values, unless a hierarchy makes its texts nodes; so are members
of lists, and keys of counts, which are always values. A release whose comment names its method, and a column whose
comment gives it a role and no hierarchy, are believed. In any other release a text that the original does not have
could be a node, and reading it as a value would answer 0 for the values below it: it is refused with the remedy.
Cost: the distinct texts, in both tables, of the columns that are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import duckdb

from duckdb_anon.engine.catalog.catalog import Catalog, Relation
from duckdb_anon.engine.catalog.column_roles import is_described
from duckdb_anon.engine.catalog.sensitive_coarsening import REST
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.hierarchy import NULL_LEAF
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_formats import Contents, may_carry, read
from duckdb_anon.model.release_formats.duckdb_types import (
    bag_type,
    is_boolean,
    is_moment,
    is_number,
    is_text,
    list_type,
    without_enums,
)

_MEMBER = "unnest(case when array_length({path}) > 0 then {path} else [null] end)"
_KEY = "unnest(case when array_length(map_keys({path})) = 0 then [null] else map_keys({path}) end)"
"""SQL of the values in a cell, one a row: empty lists and counts give NULL, and no counts nothing."""


@dataclass(frozen=True)
class _Texts:
    """Texts of a release that stand for an attribute; `sql` gives them, `counted` where they are keys of counts."""

    attribute: str
    type: str
    sql: str
    counted: bool


@dataclass(frozen=True)
class ReleasePair:
    """A release and its original, with the hierarchy table of each attribute that has one."""

    function: str
    catalog: Catalog
    original: Relation
    release: Relation
    trees: Mapping[str, Relation]

    def require_clear_texts(self, columns: Collection[str] | None = None) -> None:
        """Refuse texts that are neither values of the original nor nodes of the attribute's hierarchy."""
        if not (self.original.visible and self.release.visible):
            return
        contents = self._contents()
        spelled = {fold(name): name for name in self.original.columns}
        trees = {fold(name): tree for name, tree in self.trees.items()}
        for texts in self._texts(contents, columns):
            attribute = fold(texts.attribute)
            name = spelled.get(attribute)
            if name is None or not _may_be_of(texts.type, self.original.columns[name]):
                continue
            tree = None if texts.counted else trees.get(attribute)
            if tree is not None:
                levels = (f"select {ident(level)}::varchar from {tree.sql}" for level in tree.columns)
                unknown = self._count_others(texts, " union all ".join(levels), "nullif(s.t, {leaf})")
            elif self._is_clear(name, contents):
                continue
            else:
                # NULL counts too, unless rows of slices are made up, which show some
                counted = "s.t" if contents.slices() else "*"
                unknown = self._count_others(texts, self._values(name, texts, contents), counted)
            if unknown:
                remedy = f"If they are nodes, name their tree: hierarchies := {{{literal(name)}: 'TREE'}}"
                if texts.counted:
                    remedy = "Counts are of values: compare with the table that the release was made of"
                where = self.original.given if tree is None else f"hierarchy {tree.given}"
                raise ColumnError(
                    f"{self.function}: {unknown} distinct text(s) of '{name}' in {self.release.given} are not in "
                    f"{where}, so they may be values or nodes of a hierarchy. {remedy}. Releases that "
                    "duckdb_anon.release() or anon_release wrote are described"
                )

    def attributes_with_nodes(self) -> frozenset[str]:
        """Attributes with a hierarchy of which the release shows an inner node, in lower case."""
        # leaves alone may have been exchanged, so that no bounds follow from them
        trees = {fold(name): tree for name, tree in self.trees.items()}
        if not (trees and self.release.visible):
            return frozenset()
        found = set()
        for texts in self._texts(self._contents(), trees):
            tree = trees[fold(texts.attribute)]
            if texts.counted or _is_plain(texts.type):
                continue
            leaves = f"select {ident(next(iter(tree.columns)))}::varchar from {tree.sql}"
            if self._count_others(texts, leaves, "nullif(s.t, {leaf})"):
                found.add(fold(texts.attribute))
        return frozenset(found)

    def _contents(self) -> Contents:
        if not any(map(may_carry, self.release.columns)):
            return Contents()
        columns = self.release.columns, self.original.columns
        return read(*columns, trees=self.trees, table=self.release.given, function=self.function)

    def _texts(self, contents: Contents, columns: Collection[str] | None) -> Iterator[_Texts]:
        """Columns of the release, and fields of its slices."""
        slices = contents.slices()
        for column, kind in self.release.columns.items():
            paths = [
                (column, kind, ident(column)),
                *((part.field, part.type, f"{ident(column)}.{ident(part.field)}") for part in slices.get(column, ())),
            ]
            for attribute, inner, path in paths:
                if columns is not None and fold(attribute) not in columns:
                    continue
                member, key = list_type(inner), bag_type(inner)
                if member is not None and (is_text(member) or _is_plain(member)):
                    yield _Texts(attribute, member, _MEMBER.format(path=path), False)
                elif key is not None and (is_text(key) or _is_plain(key)):
                    yield _Texts(attribute, key, _KEY.format(path=path), True)
                else:
                    yield _Texts(attribute, inner, path, False)

    def _is_clear(self, column: str, contents: Contents) -> bool:
        """Whether values were randomized or suppressed, or a comment on the method or a role makes them values."""
        content = contents.columns.get(fold(column))
        if content is not None and content.truth in ("randomized", "suppressed"):
            return True
        comment = next((text for name, text in self.release.comments.items() if fold(name) == fold(column)), "")
        return is_described(self.release) or "anon:" in fold(comment)

    def _values(self, column: str, texts: _Texts, contents: Contents) -> str:
        """SELECT of the texts that the original has, and of the name of the rest of a coarsened column."""
        path = ident(column)
        listing = texts.sql.startswith("unnest") and not texts.counted and list_type(self.original.columns[column])
        value = _MEMBER.format(path=path) if listing else path
        rest = f" union all select {literal(REST)}" if contents.edges else ""
        return f"select {value}::varchar from {self.original.sql}{rest}"

    def _count_others(self, texts: _Texts, allowed: str, counted: str) -> int:
        """Number of distinct texts that `known` does not list; 0 where the planner cannot read the rows."""
        select = (
            f"select count({counted.format(leaf=literal(NULL_LEAF))}) from "
            f"(select distinct {texts.sql}::varchar from {self.release.sql}) as s(t) "
            f"anti join (select distinct t from ({allowed}) as k(t)) as k on s.t is not distinct from k.t"
        )
        try:
            return int(self.catalog.cursor.execute(select).fetchall()[0][0])
        except duckdb.Error:
            tick()  # an interrupt is none of these
            return 0


def _may_be_of(kind: str, original: str) -> bool:
    """Whether texts of a column, a list or counts are an original's, or values of another type with texts inside."""
    if is_text(kind):
        return is_text(list_type(original) or original)
    return not _is_plain(kind) and without_enums(kind) == without_enums(original)


def _is_plain(kind: str) -> bool:
    """Whether values of a type are no texts and have none inside."""
    return is_number(kind) or is_moment(kind) or is_boolean(kind)
