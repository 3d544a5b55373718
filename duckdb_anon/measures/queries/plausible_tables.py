"""Plausible tables of a release for queries whose answers no closed form gives: a call of `impute` with a fixed seed.

The seed makes answers repeatable, and lets the draws of one question serve the next. Ten draws, five of large releases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from duckdb_anon.engine.catalog import Relation
from duckdb_anon.engine.column_roles import ROLE_PARAMETERS
from duckdb_anon.engine.planner import plan
from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.measures.queries import impute
from duckdb_anon.model.release_comment import argument_text
from duckdb_anon.rewrite.query.tables import PlausibleTables

DRAWS, FEWER_DRAWS = 10, 5
_LARGE = 500_000


def plausible_tables_of(
    context: Any, original: Relation, release: Relation
) -> Callable[[Sequence[str]], PlausibleTables]:
    """Give what makes plausible tables with some columns of the original.

    Args:
        context: what the planner can ask.
        original: the original or its shape.
        release: its release.
    """

    def drawn(columns: Sequence[str]) -> PlausibleTables:
        draws = FEWER_DRAWS if _rows(context, release) > _LARGE else DRAWS
        roles = {p.name: context.arguments.get(p.name) for p in ROLE_PARAMETERS}
        given = {"original": original.given, "seed": 1, "columns": list(columns), **roles}
        given = {name: value for name, value in given.items() if value is not None}
        call = replace(context, function="impute", arguments={"release": release.given, "draws": draws, **given})
        plan(impute.MEASURE, call)  # says now what the release cannot give
        arguments = "".join(f", {name} := {argument_text(value)}" for name, value in given.items())
        text = f"select * from impute({literal(release.given)}, {draws}{arguments})"
        return PlausibleTables(text, impute.free_name("draw", columns), draws)

    return drawn


def _rows(context: Any, release: Relation) -> int:
    cursor = context.catalog.cursor
    found = cursor.execute(f"select count(*) from {release.sql}").fetchone() if cursor is not None else None
    return int(found[0]) if found else 0
