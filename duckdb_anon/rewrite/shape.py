"""Reading the shape of a release off the types of its columns.

A rule looks at the columns nobody has claimed yet and claims those it understands. Rules run in the order of
`RULES`; each is one file with one function `claim(reading)`. To teach the rewriter a new shape, write such a
file and add it to the tuple: whatever the rule puts into the reading (parts, weights, exact columns) works
with every query the rewriter covers.
"""

from __future__ import annotations

from collections.abc import Callable

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite import boxes, buckets, counts, persons, randomized, retained, rows, sampled, sliced, suppressed
from duckdb_anon.rewrite.model import Model
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
    rate, missing = (reading.rate, reading.missing) if len(reading.weights) == 1 else ("", "")
    parts = tuple(reading.parts)
    return Model(release, reading.exact, parts, weight, reading.bounded, reading.complete, rate, missing, part_of)


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
