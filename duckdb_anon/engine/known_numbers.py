"""Low and high hold of numbers, dates and counts that the original has; of others nothing is stated for certain.

A number reads as itself whatever it is, so it is held against the original only where something is stated for certain:
that nobody has what the release does not show.
Cost: the different numbers that a query reads, of both tables; so of counts, a GROUP BY of the rows by bucket.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from duckdb_anon.engine.beside import Beside, compared
from duckdb_anon.engine.quoting import ident
from duckdb_anon.engine.shown_cells import found_by, is_numeric, whole
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.shapes.types import comparable, list_type
from duckdb_anon.rewrite.query.seen_values import DIGEST, ROWS, SeenValues


def require_known_numbers(pair: Beside, read: Collection[str]) -> tuple[SeenValues, ...]:
    """Refuse a release with a number, moment or truth that its original does not have, before anything is certain.

    Args:
        pair: the release and its original; labels of a tree are texts, so that no number is one.
        read: the original's columns that are compared, in lower case.

    Returns:
        The values that were compared.

    Raises:
        ColumnError: naming the column, how many values are unknown, and what to do.
    """
    if not pair.visible:
        return ()
    original, release = pair.original, pair.release
    asked = [
        replace(one, values=replace(one.values, by_rows=not one.values.counted))
        for one in compared(replace(pair, trees={}), _is_of_numbers, read)
    ]
    counts = [one.not_found(ROWS, cast="") if one.values.by_rows else one.not_found(DIGEST) for one in asked]
    found = found_by(pair.catalog, counts, [original, release])
    for one, (unknown, _) in zip(asked, found, strict=True):
        if unknown:
            raise ColumnError(
                f"{pair.function}: {unknown} distinct value(s) of '{one.own}' in {release.given} are not in "
                f"{original.given} (NULL is one where it has none), so low and high would not hold; compare with the "
                "table that the release was made of, or ask without them: bounds := 'none'. If the release is of it "
                f"all the same, let it say so: COMMENT ON COLUMN {release.given}.{ident(one.own)} IS "
                "'anon: insensitive', or whatever its role is; duckdb_anon.release() and .release write it"
            )
    return tuple(replace(one.values, digest=digest) for one, (_, digest) in zip(asked, found, strict=True))


def require_whole_counts(pair: Beside, bucket: str, read: Collection[str]) -> None:
    """Refuse a release whose counts leave rows of buckets out, before anything is certain: these would be NULL.

    Args:
        pair: the release and its original.
        bucket: the column with the numbers of buckets; '' where there is none.
        read: the original's columns that are compared, in lower case.

    Raises:
        ColumnError: naming the column, and how many buckets have fewer counts than rows.
    """
    if not pair.visible or not bucket:
        return
    original, release = pair.original, pair.release
    for one in compared(replace(pair, trees={}), lambda *_: True, read):
        if not one.values.counted or not one.counts_nulls:
            continue
        counted = f"max(list_sum(map_values({'.'.join(map(ident, one.values.path))})))"
        buckets = f"select count(*) as n, {counted} as s from {whole(release)} group by {ident(bucket)}"
        nothing = f"exists(from {whole(original)} where {ident(one.own)} is null)"
        asked = f"select count(*) filter (where coalesce(s, 0) < n and not {nothing}), null from ({buckets})"
        ((short, _),) = found_by(pair.catalog, [asked], [original, release])
        if short:
            raise ColumnError(
                f"{pair.function}: in {short} bucket(s) of {release.given} the counts of '{one.own}' are of fewer rows "
                f"than the bucket has, and {original.given} has no NULL there, so low and high would not hold; put the "
                "counts back that were taken away, or ask without low and high: bounds := 'none'"
            )


def _is_of_numbers(kind: str, original: str) -> bool:
    return is_numeric(kind) and comparable(kind, list_type(original) or original)
