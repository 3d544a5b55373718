"""What a release shows: values in columns, lists, counts and slices, and how many of them something does not know."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import duckdb

from duckdb_anon.engine.catalog import Catalog, Relation
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_formats.duckdb_types import (
    bag_type,
    is_boolean,
    is_moment,
    is_number,
    is_text,
    list_type,
    slice_fields,
    struct_fields,
)
from duckdb_anon.rewrite.query.seen_values import DIFFERENT, DIGEST, SHOWN, SeenValues


def shown_values(
    release: Relation, original: Relation, read: Collection[str] | None = None
) -> Iterator[tuple[SeenValues, str]]:
    """Columns, lists and counts of a release, and such attributes among those of slices, each with its values' type.

    A STRUCT that the original has itself is no slice, and what is in it no attribute.

    Args:
        release: the release.
        original: its original.
        read: the attributes that are asked for, in lower case; all of them by default.
    """
    whole, taken = structs(original), {fold(column) for column in release.columns}
    for column, kind in release.columns.items():
        fields = () if fold(column) in whole else slice_fields(kind)
        if {fold(field) for field, _ in fields} & (taken - {fold(column)}):
            fields = ()  # slices partition the attributes
        taken |= {fold(field) for field, _ in fields}
        for attribute, inside, path in (
            (column, kind, (column,)),
            *((field, inside, (column, field)) for field, inside in fields),
        ):
            if read is not None and fold(attribute) not in read:
                continue
            listed, counted = list_type(inside), bag_type(inside)
            if listed is not None and _is_plain(listed):
                yield SeenValues(attribute, path, "member"), listed
            elif counted is not None and _is_plain(counted):
                yield SeenValues(attribute, path, "key"), counted
            else:
                yield SeenValues(attribute, path, "value"), inside


def _is_plain(kind: str) -> bool:
    return is_text(kind) or is_numeric(kind)


def is_numeric(kind: str) -> bool:
    """Whether values of a type are numbers, moments or truths: no texts, and none inside."""
    return is_number(kind) or is_moment(kind) or is_boolean(kind)


def structs(table: Relation) -> frozenset[str]:
    """The columns of a table that are STRUCTs, in lower case."""
    return frozenset(fold(name) for name, kind in table.columns.items() if struct_fields(kind))


def others(
    values: SeenValues, release: Relation, known: str, counted: str, cast: str = "::varchar", told: str = ""
) -> str:
    """SELECT of the number of distinct values that `known` does not list, and of what tells all of them.

    Args:
        values: which values.
        release: the release.
        known: SELECT of the values that are known.
        counted: which of the others are counted: 's.t' those that are not NULL, '*' NULL too.
        cast: what makes of a value what `known` lists.
        told: what that is: `DIGEST` of the different ones, or SQL over all rows; nothing by default.
    """
    path = ".".join(map(ident, values.path))
    shown = SHOWN[values.shown].format(path=path)
    # takes less time than EXCEPT
    unknown = f"as s(t) anti join (select distinct t from ({known}) as k(t)) as k on s.t is not distinct from k.t"
    if told != DIGEST:
        tells = f"(select {told} from {whole(release)})" if told else "null"
        return f"select count({counted}), {tells} from (select distinct {shown}{cast} from {whole(release)}) {unknown}"
    return (
        f"with _anon_seen as materialized ({DIFFERENT.format(shown=shown, release=whole(release))}) select "
        f"(select count({counted}) from (select decode(_shown) from _anon_seen) {unknown}), "
        f"(select {DIGEST} from _anon_seen)"
    )


def whole(relation: Relation) -> str:
    """A relation as it is read here, without bringing the cursor to the caller's place where that is not needed."""
    return relation.full or relation.sql


def found_by(catalog: Catalog, asked: Sequence[str], read: Sequence[Relation]) -> list[tuple[int, str | None]]:
    """What each of some SELECTs finds, asked in one statement, for planning it takes longer than a small table.

    Args:
        catalog: what the planner can see.
        asked: SELECTs of a number, and of a text or NULL.
        read: the relations that they read.
    """
    cursor = catalog.cursor_for(read) if asked else None
    if cursor is None:
        return [(0, None)] * len(asked)
    counted = (f"select {number}, * from ({one})" for number, one in enumerate(asked))
    try:
        found = {row[0]: row[1:] for row in cursor.execute(" union all ".join(counted)).fetchall()}
    except duckdb.Error:
        tick()  # an interrupt is none of these
        # a table of which the planner sees the columns and not the rows: the query itself will fail
        return [(0, None)] if len(asked) == 1 else [found for one in asked for found in found_by(catalog, [one], read)]
    return [found[number] for number in range(len(asked))]
