"""Intervals by replay: which releases are made again, and how many of their intervals were found to hold the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from duckdb_anon.engine.catalog.catalog import Relation
from duckdb_anon.engine.catalog.column_roles import with_labels_of
from duckdb_anon.engine.draws.replayed_tables import ANSWERED, DRAW, MOST_ROWS, TRUTH, ReplayCall, replayed
from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.engine.records.call_text import roles_as_arguments
from duckdb_anon.engine.records.release_digest import row_checksum
from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.release_comment import HIDDEN, Description, read_description
from duckdb_anon.rewrite.query.tables import PlausibleTables, Replay, TableInfo

COVERAGE = 0.8
"""Share of intervals that hold the truth at least, of each method and kind of measure.

A factor is at least 1.5 times what is needed on each of three tables (people made by code, patients of `visits`,
workers of `adult`), rounded up to halves. Census, adult and randhie check them, and HI, OFP and diamonds, which were
measured when all factors stood: .8 or more of their intervals held the truth, by kind (29 November 2026).
Counts of `mondrian` on the first of the three are the exception: .65 of 23.
`python examples/studies/replay.py FOLDER TABLES METHODS` measures both.
"""
WIDER: Mapping[str, Mapping[str, float]] = {
    "anatomy": {"count": 1, "sum": 1.5, "mean": 1.5, "share": 1, "quantile": 1.5, "other": 1.5},
    "slicing": {"count": 1, "sum": 3, "mean": 3, "share": 1, "quantile": 3, "other": 3},
    "rank_swap": dict.fromkeys(("count", "sum", "mean", "share", "quantile", "other"), 1.5),
    "muco": {"count": 1.5, "sum": 1.5, "mean": 3, "share": 1.5},
    "mondrian": {"count": 2.5, "sum": 2, "mean": 1.5, "quantile": 2, "other": 2.5},
}
"""Factor of the width of intervals by method and kind of measure; what is not listed has no intervals.

Of `incognito` .18 of the counts of one table were covered, and .23 when three times as wide. A release of
`microaggregate` that is made again is itself: .04. Of other measures of `muco` than those listed .77 were covered, of
shares of `mondrian` .67.
"""
AS_RELEASED = ("muco", "rank_swap")
"""Methods whose rows are read as they are: their releases are the truths, and nothing is imputed."""


def is_replayed(context: Any, release: Relation) -> bool:
    """Whether the method of a release has intervals by replay."""
    comment = read_description(release.comment)
    described = comment is not None and bool(comment.digest) and comment.method in WIDER
    return described and context.opened is not None


def replay_of(context: Any, original: Relation, release: Relation) -> Replay:
    """Make a release again that `is_replayed`."""
    comment, cursor = read_description(release.comment), context.catalog.cursor
    assert comment is not None  # noqa: S101 -- as `is_replayed` says
    if int(comment.checksum.split(":")[0]) > MOST_ROWS:
        raise RewriteError(f"no interval: releases of over {MOST_ROWS:,} rows are not replayed")
    call = _call(context, original, release, comment)
    trees = tuple(row_checksum(cursor, tree.sql) for tree in call.trees.values())
    key = (comment.digest, comment.call, repr(call.roles), repr(original.columns), trees)
    tables = replayed(key, call, cursor, context.opened)

    def rows(query: str, others: Mapping[str, TableInfo]) -> list[list[tuple[Any, ...]]]:
        read = {name: context.relation("query", other.name) for name, other in others.items()}
        return tables.rows(query, cursor, read)

    return Replay(
        PlausibleTables(f"select * from {TRUTH}", DRAW, 1),
        PlausibleTables(f"select * from {ANSWERED}", DRAW, tables.redraws),
        rows,
        COVERAGE,
        WIDER[comment.method],
    )


def _call(context: Any, original: Relation, release: Relation, description: Description) -> ReplayCall:
    """The release's own call."""
    roles = context.roles(context.flat(with_labels_of(original, [release])), nested=True)
    arguments = roles_as_arguments(roles)
    trees = arguments.pop("hierarchies", {})
    method = context.methods[description.method]
    return ReplayCall(
        release=release,
        original=replace(original, comments={}),
        trees={name: context.relation(f"hierarchy of {name}", tree) for name, tree in trees.items()},
        method=description.method,
        arguments={name: value for name, value in description.parameters.items() if name not in HIDDEN},
        roles=arguments,
        seeded=any(parameter.name == "seed" for parameter in parameters_of(method)),
        as_released=description.method in AS_RELEASED,
        threads=context.catalog.settings()["threads"],
    )
