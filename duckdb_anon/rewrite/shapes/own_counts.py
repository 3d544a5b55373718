"""Counts of a bucket read from the row that carries them, where a release is described as one of anatomy.

What is spread over the rows of a bucket (`listed.BagPart`) takes two passes in general: one that finds each bucket's
map and its number of rows, and one that joins them to the rows. Anatomy writes the map on every row of the bucket, and
its counts speak of all of them. So the values are unnested from a row's own map: nothing is grouped by bucket and
nothing joined. Rows whose map lacks a value that is asked for are
left out before that.

Bounds take the bucket, whose rows are permuted among themselves (`duckdb_anon.rewrite.bounds.permutation`).
Cost: one pass over the rows, and one value for each count of a row that is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import bag_type
from duckdb_anon.rewrite.query.template import some, tree
from duckdb_anon.rewrite.query.walking import columns_of
from duckdb_anon.rewrite.shapes.known_expressions import equal_to
from duckdb_anon.rewrite.shapes.listed import BagPart
from duckdb_anon.rewrite.shapes.released import Model


@dataclass(frozen=True)
class OwnCountsPart(BagPart):
    """A map of counts on every row of its bucket; `key` is the bucket still, for what is asked of buckets.

    Attributes:
        kind: DuckDB type of the map.
    """

    kind: str = ""

    @property
    def cell(self) -> exp.Expr:
        """The map."""
        return self.column

    @property
    def alone(self) -> bool:
        """Rows are not grouped by their maps, which would take longer than to unnest each."""
        return True

    def opened(self, cell: exp.Expr) -> exp.Expr | None:
        """The values."""
        return tree("map_keys({cell})", cell=cell)

    def size(self, cell: exp.Expr) -> exp.Expr | None:
        """The number of rows that the map counts."""
        return tree("list_sum(map_values({cell}))", cell=cell)

    def weight(self, cell: exp.Expr) -> exp.Expr | None:
        """How many of those rows have the value."""
        return tree("unnest(map_values({cell}))", cell=cell)

    def there(self, condition: exp.Expr) -> exp.Expr | None:
        """A condition on the map of each row that may satisfy one on the value; None where the values must be listed.

        Args:
            condition: a condition.
        """
        wanted = equal_to(condition, bag_type(self.kind) or "")
        if wanted is None:
            return None
        return some([tree("map_contains({map}, {value})", map=self.column, value=one) for one in wanted])


def with_own_counts(model: Model) -> Model:
    """Read counts from each row, where the release writes them on every row and nothing else stands in between.

    Args:
        model: what a release says.
    """
    if not model.release.counted_rows or model.weight is not None or len(model.parts) != 1:
        return model
    part = model.parts[0]
    if type(part) is not BagPart or not isinstance(part.column, exp.Column):
        return model
    kind = model.release.types.get(fold(part.column.name), "")
    own = OwnCountsPart(part.name, part.columns, part.key, part.release, column=part.column, kind=kind)
    return replace(model, parts=(own,))


def asked_of_counts(model: Model, select: exp.Select, alias: str) -> set[str]:
    """Columns of a SELECT that are spelled out from the counts of each row.

    Args:
        model: what a release says.
        select: a SELECT over its original.
        alias: what it calls the original.
    """
    alone = len(model.parts) == 1 and isinstance(model.parts[0], OwnCountsPart)
    counted = set(model.parts[0].columns) if alone else set()
    return columns_of(select, alias) & counted
