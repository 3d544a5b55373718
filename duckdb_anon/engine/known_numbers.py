"""Low and high hold of numbers, dates and counts that the original has; of others nothing is stated for certain.

A number reads as itself whatever it is, so it is held against the original only where something is stated for certain:
that nobody has what the release does not show.
Cost: the different numbers that a query reads, of both tables; so of counts, a GROUP BY of the rows by bucket.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from duckdb_anon.engine.beside import Beside, compared
from duckdb_anon.engine.shown_cells import found_by, is_numeric, whole
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import comparable, list_type
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


def require_whole_counts(pair: Beside, read: Collection[str]) -> None:
    """Refuse a release whose counts are not those of the rows of their buckets, before anything is certain.

    Rows that fewer counts leave out are NULL, where the original has NULL.

    Args:
        pair: the release and its original.
        read: the original's columns that are compared, in lower case.

    Raises:
        ColumnError: naming the column, and in how many buckets that is so.
    """
    if not pair.visible or not pair.contents.bucket or pair.contents.slices():
        return
    original, release = pair.original, pair.release
    own = {fold(name): name for name in original.columns}
    for column, content in pair.contents.columns.items():
        if content.cell != "counts" or column not in read:
            continue
        counts, spelled = ident(content.carrier), own.get(column, column)
        rows = (
            f"select {ident(pair.contents.bucket)} as b, list_sum(map_values({counts})) as s, "
            f"list_min(map_values({counts})) as l, hash(list_sort(map_entries({counts}))) as h from {whole(release)}"
        )
        buckets = (
            "select count(*) as n, coalesce(max(s), 0) as s, count(s) not in (0, count(*)) or min(l) < 0 "
            f"or min(h) <> max(h) or max(s) > count(*) as other from ({rows}) group by b"
        )
        nothing = f"exists(from {whole(original)} where {ident(spelled)} is null)"
        short = f"(count(*) filter (where s < n and not {nothing}))::varchar"
        asked = [f"select count(*) filter (where other), {short} from ({buckets})"]
        ((other, fewer),) = found_by(pair.catalog, asked, [original, release])
        if other or int(fewer or 0):
            what = (
                f"in {other} bucket(s) of {release.given} the counts of '{spelled}' are not those of its rows (of more "
                "rows than it has, or others in some of them)"
                if other
                else f"in {fewer} bucket(s) of {release.given} the counts of '{spelled}' are of fewer rows than the "
                f"bucket has, and {original.given} has no NULL there"
            )
            raise ColumnError(
                f"{pair.function}: {what}, so low and high would not hold; put back the counts and the numbers of "
                "buckets that were changed or taken away, or ask without low and high: bounds := 'none'"
            )


def require_weights(pair: Beside) -> None:
    """Refuse a release whose rows stand for no number of rows: a chance above 1, or fewer than no rows left out.

    Args:
        pair: the release and its original.

    Raises:
        ColumnError: naming the column, and from where to where it goes.
    """
    for weight in pair.contents.weights if pair.visible else ():
        number = f"{ident(weight.column)}::double"
        ends = f"select 0, min({number})::varchar || ' ' || max({number})::varchar from {whole(pair.release)}"
        ((_, told),) = found_by(pair.catalog, [ends], [pair.release])
        wrong = weight.wrong(*map(float, told.split())) if told else ""
        if wrong:
            raise ColumnError(f"{pair.function}: {wrong}")


def _is_of_numbers(kind: str, original: str) -> bool:
    return is_numeric(kind) and comparable(kind, list_type(original) or original)
