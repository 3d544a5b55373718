"""One slice read from the rows it stands in.

The cells of a slice are permuted inside their buckets, and independent there of the other slices. What is asked of a
row's cell in one of them may as well be asked where it stands, as long as nothing that stayed in its row is asked
beside it: over the rows of a bucket, each value of a slice meets the same mean of every other one. So that slice is
read as exact columns are, without looking at buckets at all, and only the others are asked by bucket.

Bounds take the permutation of every slice (`duckdb_anon.rewrite.bounds.permutation`).
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from duckdb_anon.rewrite.query.aggregate_nodes import aggregate_nodes, columns_inside, columns_outside
from duckdb_anon.rewrite.query.walking import columns_of
from duckdb_anon.rewrite.shapes.listed import BagPart
from duckdb_anon.rewrite.shapes.released import Model
from duckdb_anon.rewrite.shapes.slices import SlicePart


def with_own_slice(model: Model, select: exp.Select, alias: str) -> Model:
    """Take one of the slices that a SELECT reads for exact columns, where it reads nothing else of a row.

    The one whose columns are asked value by value, if any, since those of the others are joined to it.

    Args:
        model: what a release says.
        select: a SELECT over its original.
        alias: what it calls the original.
    """
    read = columns_of(select, alias)
    slices = [part for part in model.parts if isinstance(part, SlicePart) and read & set(part.columns)]
    whole = [part for part in slices if part.shows(read & set(part.columns))]
    of_buckets = all(isinstance(model.part_of.get(column), (BagPart, SlicePart)) for column in read)
    if not whole or not of_buckets or model.weight is not None or any(part.counted for part in model.parts):
        return model
    inside = columns_inside(aggregate_nodes(select))
    shown = [*select.expressions, *(select.args[key] for key in ("group", "order") if select.args.get(key))]
    spelled = {column for clause in shown for column in columns_outside(clause, alias, inside)}
    own = max(whole, key=lambda part: len(spelled & set(part.columns)))
    return replace(
        model,
        exact={**model.exact, **own.fields},
        parts=tuple(part for part in model.parts if part is not own),
    )
