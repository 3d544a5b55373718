"""Every shape a release can have, in the order in which they claim its columns.

What comes first takes what later ones would read otherwise: carriers before values, slices before boxes, boxes before
plain values.
"""

from __future__ import annotations

from duckdb_anon.model.release_formats import (
    boxes,
    buckets,
    counts,
    edged,
    linked,
    persons,
    randomized,
    retained,
    rows,
    sampled,
    sliced,
    suppressed,
)
from duckdb_anon.model.release_formats.schema import Shape

SHAPES: tuple[Shape, ...] = (
    linked.SHAPE,
    edged.SHAPE,
    sampled.SHAPE,
    suppressed.SHAPE,
    randomized.SHAPE,
    counts.SHAPE,
    retained.SHAPE,
    sliced.SHAPE,
    buckets.SHAPE,
    persons.SHAPE,
    boxes.SHAPE,
    rows.SHAPE,
)
