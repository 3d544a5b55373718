"""What a release carries: which column carries what, and how many original rows a row stands for.

Shapes are found from types and names here alone, by `read`:

    contents = read(release_types, original_types, sensitive=..., trees=...)

The entry of a measure names the formats it answers (`answers=`); any other release is refused before it is computed
(`refuse`), by name and with what answers instead.

A column is a carrier (a bucket, a weight, a channel) when the original has no column of that name and its type fits. A
method that releases one plans it under `Carrier.key`; where the original has a column `bucket`, the carrier is called
`bucket_` (`released_name`). Where nothing is known of the original, columns with a role are taken to be its own, and a
table that only shows when the call runs (temporary, CTE, DataFrame) is refused where it has another one (`in_doubt`).
The formats are the table `formats.FORMATS`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache

from duckdb_anon.model.errors import ColumnError, listed
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import formats
from duckdb_anon.model.release_formats.formats import (
    BLANK,
    BUCKET,
    CHANNELS,
    COUNT,
    COUNT_ERROR,
    EDGES,
    GROUP,
    RATE,
    RETENTION,
    SOURCE,
    SUPPRESSED,
    Format,
)
from duckdb_anon.model.release_formats.schema import Carrier, Claims, Content, Contents, refuse_strangers

__all__ = [
    "BLANK", "BUCKET", "CHANNELS", "COUNT", "COUNT_ERROR", "EDGES", "EVERY", "GROUP", "RATE", "RETENTION", "SOURCE",
    "SUPPRESSED", "Content", "Contents", "carriers", "carriers_in_doubt", "in_doubt", "may_carry", "read", "refuse",
    "released_name",
]  # fmt: skip

PLAIN = "rows"
EVERY = ("*",)
"""What a measure answers that reads contents, weights and truths whatever shapes they come from."""


def carriers() -> tuple[Carrier, ...]:
    """Every carrier some format may have."""
    return tuple(dict.fromkeys(carrier for shape in formats.FORMATS for carrier in shape.carriers))


def may_carry(name: str) -> bool:
    """Whether a column of this name may be a carrier.

    >>> may_carry("Bucket_"), may_carry("age")
    (True, False)
    """
    return fold(name).rstrip("_") in {carrier.word for carrier in carriers()}


def released_name(planned: str, taken: Collection[str]) -> str:
    """The name of a planned column in a release: a carrier's key becomes a name the original does not have.

    >>> released_name("_anon_bucket", ["age", "BUCKET"]), released_name("age", ["age"])
    ('bucket_', 'age')
    """
    found = next((carrier for carrier in carriers() if carrier.key == planned), None)
    return planned if found is None else found.name(taken)


def read(
    release: Mapping[str, str],
    original: Mapping[str, str] | None,
    *,
    labelled: Collection[str] = (),
    sensitive: Collection[str] = (),
    trees: Collection[str] = (),
    kept: Collection[str] = (),
    table: str = "the release",
    function: str = "",
) -> Contents:
    """Say what a release carries, by comparison with its original.

    >>> found = read({"age": "STRUCT(lower INTEGER, upper INTEGER)", "bucket": "BIGINT"}, {"age": "INTEGER"})
    >>> found.shape, found.columns["age"].cell
    ('boxes', 'interval')
    """
    against = None if original is None else tuple((fold(name), kind) for name, kind in original.items())
    groups = tuple(frozenset(map(fold, names)) for names in (labelled, sensitive, trees, kept))
    return _read(formats.FORMATS, tuple(release.items()), against, *groups, table, f"{function}: " if function else "")


@lru_cache(maxsize=256)
def _read(
    rules: tuple[Format, ...],
    release: tuple[tuple[str, str], ...],
    original: tuple[tuple[str, str], ...] | None,
    labelled: frozenset[str],
    sensitive: frozenset[str],
    trees: frozenset[str],
    kept: frozenset[str],
    table: str,
    caller: str,
) -> Contents:
    """`read`, once for the planner's several questions about one release."""
    claims = Claims(dict(release), None if original is None else dict(original), labelled, sensitive, trees)
    claims.unclaimed.update(release)
    claims.keep_nested(kept)
    found = [rule for rule in rules if rule.claim(claims)]
    refuse_strangers(claims, carriers(), table, caller)
    # plain rows are what is left, and a format only where there is no other to name a release by
    shape = next((rule.name for rule in found if rule.names), PLAIN)
    return replace(
        claims.contents,
        shape=shape,
        shapes=tuple(rule.name for rule in found if rule.name != PLAIN or shape == PLAIN),
        known=original is not None,
    )


def refuse(function: str, table: str, contents: Contents, answers: Collection[str]) -> None:
    """Raise where a release has a format that a measure does not answer: the one place that refuses."""
    if not contents.answered(answers):
        missing = [shape for shape in formats.FORMATS if shape.name in contents.shapes and shape.name not in answers]
        found = " and ".join(shape.description for shape in missing)
        read = [shape.name for shape in formats.FORMATS if shape.name in answers]
        raise ColumnError(
            f"{function}: {table} {found}, which {function} does not read. "
            f"It reads {listed(read)}. {'; '.join(dict.fromkeys(shape.instead for shape in missing))}"
            f"{_doubt(missing, contents)}",
            code="format-not-read",
        )


def carriers_in_doubt(answers: Collection[str]) -> tuple[str, ...]:
    """Words of the carriers that change what a measure makes of a table: those of formats that it does not answer.

    >>> carriers_in_doubt(("rows", "boxes", "buckets", "sliced", "sampled", "suppressed", "retained"))
    ('bucket', 'count_error', 'moved_within', 'noisy_count', 'rr', 'sensitive_edges', 'suppressed_cells')
    """
    changing = {c.word for s in formats.FORMATS if s.name not in answers for c in s.carriers} - {SOURCE.word}
    return tuple(sorted({*changing, BUCKET.word} if "*" not in answers else {BUCKET.word}))


def in_doubt(table: str) -> str:
    """Message, after its name, of a column that may be a release's own or an ordinary one.

    >>> in_doubt("passing").split(".")[0]
    " of passing may be a release's own column or an ordinary one, which cannot be known"
    """
    return (
        f" of {table} may be a release's own column or an ordinary one, which cannot be known. If it is ordinary, "
        "name it in keep := ['...']. If the table is a release, make it a committed table: a temporary table, CTE or "
        "DataFrame has no description"
    )


def _doubt(missing: Collection[Format], contents: Contents) -> str:
    named = [name for name in contents.carriers for shape in missing for c in shape.carriers if c.stands_for(name)]
    if not named or contents.known:
        return ""
    names = ", ".join(f"'{name}'" for name in dict.fromkeys(named))
    return f". If {listed(dict.fromkeys(named))} is an ordinary column of the original, say keep := [{names}]"
