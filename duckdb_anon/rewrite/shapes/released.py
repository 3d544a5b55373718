"""What a release says of the original's rows, once its columns are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError, listed, nearest
from duckdb_anon.model.release_formats.duckdb_types import comparable, without_enums
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.shapes.parts import Part


@dataclass(frozen=True)
class Model:
    """How released rows relate to original rows.

    Attributes:
        release: the release.
        exact: original column to an expression over a released row, for columns that are as they were.
        parts: the independent inexact parts.
        weight: how many original rows a released row stands for; None is 1.
        bounded: whether every released row is one original row, so that hard bounds exist.
        complete: whether every original row is behind some released row, so that extremes are covered.
        missing: how many original rows were left out, where that is all that the weights say; None if not.
        bucket: a row's bucket; None where there are none.
        rate: the chance that an original row was released, where that is all that the weights say; None if not.
        retyped: released and original type of the columns of which these are different.
        edged: whether sensitive values stand for others too, so that columns as released are not the original's.
    """

    release: TableInfo
    exact: Mapping[str, exp.Expr]
    parts: tuple[Part, ...]
    weight: exp.Expr | None
    bounded: bool
    complete: bool
    rate: exp.Expr | None = None
    missing: exp.Expr | None = None
    bucket: exp.Expr | None = None
    retyped: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    edged: bool = False

    @cached_property
    def part_of(self) -> Mapping[str, Part]:
        """The part of each original column that is inexact."""
        return {column: part for part in self.parts for column in part.columns}

    def is_cast(self, column: str) -> bool:
        """Whether a column is exact once it is cast, so that a query cannot read the release's own in its place."""
        return column in self.exact and self.exact[column].find(exp.Cast) is not None

    def estimated(self) -> Model:
        """The same for what has no low and high, so that nothing is looked at again when the query runs."""
        if not self.release.certain:
            return self
        release = replace(self.release, certain=False)
        return replace(self, release=release, parts=tuple(replace(part, release=release) for part in self.parts))

    def require(self, column: str, original: TableInfo) -> None:
        """Raise unless the release has something to say about a column, in values of the original's kind."""
        if column in self.exact or column in self.part_of:
            self._require_comparable(column, original)
            return
        name = original.spelled(column)
        known = [original.spelled(c) for c in [*self.exact, *self.part_of]]
        raise RewriteError(
            f"column '{name}' is not in the release {self.release.name}{nearest(name, known)}; "
            f"released are {listed(known)}"
        )

    def _require_comparable(self, column: str, original: TableInfo) -> None:
        kind, was = self.retyped.get(column, ("", ""))
        if comparable(kind, was):
            return
        name = original.spelled(column)
        raise RewriteError(
            f"column '{name}' of the release {self.release.name} shows values of type {without_enums(kind)}, and the "
            f"original's are of type {without_enums(was)}, so nothing tells which of these they stand for; give them "
            "the original's type, or, if they are nodes of a hierarchy, name it: hierarchies := "
            f"{{'{name}': 'TREE'}}"
        )
