"""What a release says of the original's rows: exact columns, factors, and what a row weighs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from duckdb_anon.model.errors import RewriteError, listed, nearest
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import Content, Contents
from duckdb_anon.model.release_formats.duckdb_types import box_type, list_type, without_enums
from duckdb_anon.rewrite.query.tables import TableInfo, contents_of
from duckdb_anon.rewrite.weighted.factors import (
    BucketFactor,
    Factor,
    NodeFactor,
    RandomizedFactor,
    RetainedFactor,
    SetFactor,
    SliceFactor,
    quoted,
)
from duckdb_anon.rewrite.weighted.interval_factor import IntervalFactor


@dataclass(frozen=True)
class ReleaseModel:
    """How released rows relate to original rows.

    Attributes:
        release: FROM item of the release.
        exact: original column, folded, to SQL over a released row `r`, for columns that are as they were.
        factors: the independent parts of a row that are not.
        weight: SQL of the number of original rows that a released row stands for; '1' where each stands for one.
        bounded: whether every released row is one original row and the other way round, so that hard bounds exist.
    """

    release: str
    exact: Mapping[str, str]
    factors: tuple[Factor, ...]
    weight: str
    bounded: bool = True

    def factor_of(self, column: str) -> Factor | None:
        """The factor that carries a column, None for an exact one."""
        return next((one for one in self.factors if column in one.columns), None)

    def require(self, column: str, name: str) -> None:
        """Raise unless the release carries a column."""
        if column not in self.exact and self.factor_of(column) is None:
            carried = [*self.exact, *(one for factor in self.factors for one in factor.columns)]
            raise RewriteError(
                f"column '{column}' is not in the release {name}{nearest(column, carried)}; released are "
                f"{listed(carried)}"
            )


def release_model(release: TableInfo, original: TableInfo, learnt: bool = False) -> ReleaseModel:
    """Read a release's columns.

    Args:
        release: the release.
        original: names, types and hierarchies of the original's columns.
        learnt: whether shares inside generalized cells are learnt.
    """
    contents = contents_of(release, original)
    trees = {fold(name): tree for name, tree in original.hierarchies.items()}
    exact: dict[str, str] = {}
    factors: list[Factor] = []
    for carrier, fields in contents.slices().items():
        inside = {one.column: _factor(one, release, contents, trees, learnt) for one in fields}
        factors.append(
            SliceFactor(
                name=fold(carrier),
                columns=tuple(inside),
                cell=f"r.{quoted(contents.bucket)}",
                release=release.sql,
                fields=tuple((one.column, _cell(one)) for one in fields if inside[one.column] is None),
                generalized=tuple(one for one in inside.values() if one is not None),
            )
        )
    for content in contents.columns.values():
        if content.field:
            continue
        factor = _factor(content, release, contents, trees, learnt)
        if factor is None:
            exact[content.column] = _cell(content)
        else:
            factors.append(factor)
    weights = [_weight(one.column, one.says, release) for one in contents.weights]
    return ReleaseModel(
        release.sql, exact, tuple(factors), " * ".join(weights) or "1", contents.bounded and contents.complete
    )


def _cell(content: Content) -> str:
    """SQL of a cell over a released row; declared texts as texts where the original's are."""
    sql = f"r.{quoted(content.carrier)}" + (f".{quoted(content.field)}" if content.field else "")
    plain = without_enums(content.type)
    if plain == content.type or without_enums(content.original_type) != content.original_type:
        return sql
    return f"{sql}::{plain}"


def _factor(
    content: Content, release: TableInfo, contents: Contents, trees: Mapping[str, TableInfo], learnt: bool
) -> Factor | None:
    """The factor of a column, or of a field of a slice; None where the cell is the value."""
    name, columns, cell, table = content.column, (content.column,), _cell(content), release.sql
    noisy = [f"r.{quoted(one.column)}" for one in contents.weights if one.says == "rows"]
    records = f"sum({noisy[0]})" if noisy else "count(*)"
    if content.truth == "randomized":
        return RandomizedFactor(name, columns, cell, table, signed=True, channels=contents.channels)
    if content.truth == "replaced":
        retention = f"r.{quoted(contents.retention)}"
        return RetainedFactor(name, columns, cell, table, signed=True, retention=retention)
    if content.cell == "interval":
        return IntervalFactor(
            name, columns, cell, table, learnt=learnt, records=records, kind=box_type(content.type) or ""
        )
    if content.cell == "set":
        return SetFactor(name, columns, cell, table, learnt=learnt, records=records)
    if content.cell == "counts":
        bucket = f"r.{quoted(contents.bucket)}" if contents.bucket else cell
        return BucketFactor(name, columns, bucket, table, counts=cell)
    if content.cell in ("node", "nodes"):
        kind, counted = content.original_type, content.cell == "nodes"
        if counted and list_type(kind) is not None:
            raise RewriteError(f"column '{name}' holds lists of an individual's values")
        tree = trees.get(content.column)
        return NodeFactor(
            name, columns, cell, table, counted=counted, learnt=learnt and not counted, records=records,
            hierarchy=tree, kind=kind,
        )  # fmt: skip
    if content.cell == "items" and list_type(content.original_type) is None:
        raise RewriteError(f"column '{name}' lists all values of an individual")
    return None


def _weight(column: str, says: str, release: TableInfo) -> str:
    """How many original rows a released row stands for."""
    number = f"r.{quoted(column)}"
    if says == "rate":
        return f"(1 / {number})"
    if says == "missing":
        return f"(1 + {number} / (select count(*) from {release.sql}))"
    return f"{number}::double"
