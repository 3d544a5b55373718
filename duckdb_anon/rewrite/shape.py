"""Reading the shape of a release off the types of its columns.

A rule looks at the columns nobody has claimed yet and claims those it understands. Rules run in the order of
`RULES`; each is one file with one function `claim(reading)`. To teach the rewriter a new shape, write such a
file and add it to the tuple: whatever the rule puts into the reading (parts, weights, exact columns) works
with every query the rewriter covers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from duckdb_anon.errors import RewriteError, listed, nearest
from duckdb_anon.rewrite import boxes, buckets, counts, persons, randomized, retained, rows, sampled, sliced, suppressed
from duckdb_anon.rewrite.parts import Part
from duckdb_anon.rewrite.reading import Reading
from duckdb_anon.rewrite.schema import TableInfo

RULES: tuple[Callable[[Reading], None], ...] = (
    sampled.claim,
    suppressed.claim,
    randomized.claim,
    counts.claim,
    retained.claim,
    sliced.claim,
    buckets.claim,
    persons.claim,
    boxes.claim,
    rows.claim,
)


@dataclass(frozen=True)
class Model:
    """How released rows relate to original rows.

    Attributes:
        release: the release.
        exact: original column to SQL over a release row `_r`, for columns that are as they were.
        parts: the independent inexact parts.
        weight: SQL of how many original rows a released row stands for; '' is 1.
        bounded: whether every released row is one original row, so that hard bounds exist.
        complete: whether every original row is behind some released row, so that extremes are covered.
    """

    release: TableInfo
    exact: Mapping[str, str]
    parts: tuple[Part, ...]
    weight: str
    bounded: bool
    complete: bool
    part_of: Mapping[str, Part] = field(default_factory=dict)

    def require(self, column: str, original: TableInfo) -> None:
        """Raise unless the release has something to say about a column."""
        if column in self.exact or column in self.part_of:
            return
        name = original.spelled(column)
        known = [original.spelled(c) for c in [*self.exact, *self.part_of]]
        raise RewriteError(
            f"column '{name}' is not in the release {self.release.name}{nearest(name, known)}; "
            f"released are {listed(known)}"
        )


def model_of(release: TableInfo, original: TableInfo) -> Model:
    """Read a release.

    Raises:
        RewriteError: when the planner cannot see its columns, or cannot read one of them.
    """
    if not release.columns:
        raise RewriteError(
            f"the planner cannot see the columns of the release {release.name}; if it is temporary or not "
            "committed yet, commit it as an ordinary table first"
        )
    reading = Reading(release, original)
    for claim in RULES:
        claim(reading)
    part_of = {column: part for part in reading.parts for column in part.columns}
    weight = " * ".join(reading.weights)
    return Model(release, reading.exact, tuple(reading.parts), weight, reading.bounded, reading.complete, part_of)


def shape_name(release: TableInfo, original: TableInfo) -> str:
    """Name the shape of a release: rows, boxes, buckets, sliced, counts, randomized or persons.

    A sample is named after what was sampled.
    """
    model = model_of(release, original)
    kinds = {type(part).__name__ for part in model.parts}
    if "noisy_count" in release.types and "noisy_count" not in original.types:
        return "counts"
    for part, name in _NAMES.items():
        if part in kinds:
            return name
    return "boxes" if kinds - {"RetainedPart"} else "rows"


_NAMES = {
    "RandomizedPart": "randomized",
    "ColumnPart": "sliced",
    "BagPart": "buckets",
    "ItemPart": "persons",
    "MemberPart": "persons",
}
