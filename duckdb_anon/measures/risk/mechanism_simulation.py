"""How an attacker who has nothing of the original learns what a method does to values.

The call that made a release is run again on the release: the SELECT written here runs inside the measure's statement,
on the caller's connection. Where the call is unknown, records that a resample of the release leaves out stand for
individuals, and the nearest resampled record (Gower's distance) for what a method makes of them (Efron 1979): columns
in which near records differ say little. Cost: one or two calls; the bootstrap `MOST_LEFT_OUT` times `MOST_RESAMPLED`
times columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import sqlglot
from sqlglot import exp

from duckdb_anon.engine.catalog.column_roles import ROLE_PARAMETERS
from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.engine.records.call_text import roles_as_arguments
from duckdb_anon.engine.runner import ASKED_BY
from duckdb_anon.engine.sql_quoting import literal, planned
from duckdb_anon.kernels.attacks.linkage_scores import nearest_rows
from duckdb_anon.kernels.rng_streams import derived_seed
from duckdb_anon.measures.risk.linkage_view import PublishedRecords, Replay
from duckdb_anon.model.errors import ParameterError, listed, nearest
from duckdb_anon.model.function_specs import Params, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import stop_flag
from duckdb_anon.model.release_comment import read_description
from duckdb_anon.model.release_formats.duckdb_types import is_nested

_ABOUT_SENSITIVE = ("sensitive", "l", "l_except", "sensitive_edges")
MOST_LEFT_OUT, MOST_RESAMPLED = 4_000, 20_000
_RESERVED = {p.name for p in ROLE_PARAMETERS} | {"seed", "row_id"}


def replay_select(context: Any, roles: Roles, params: Params) -> dict[str, str]:
    """SELECT, by the name 'replay', of what the release's call makes of the release; none where cells are not plain."""
    release = context.relation("release")
    description = read_description(release.comment)
    text = params["call"] or (description.call if description is not None else "")
    if not text:
        return {}
    method, arguments = parsed_call(text)
    if method not in context.methods:
        raise ParameterError(
            f"call := {text!r} names no method{nearest(method, context.methods)}; there are {listed(context.methods)}"
        )
    if not context.methods[method].moves_values:
        return {}
    given = _by_parameter(context, text, method, arguments)
    types = {fold(name): kind for name, kind in release.columns.items()}
    column_types = [types.get(fold(info.name), "") for info in roles.qi + roles.sensitive]
    moved = all(kind and not is_nested(kind) for kind in column_types)
    if release.visible and (context.contents(release).channels or not moved):
        return {}
    by_role = roles_as_arguments(replace(roles, keep=(), person=None))
    given |= {"tbl": literal(release.sql), **{role: literal(names) for role, names in by_role.items() if names}}
    if params["seed"] is not None:
        given["seed"] = str(derived_seed(params["seed"], "simulation"))
    given |= {"row_id": "true", ASKED_BY: literal(f"{context.function}: the release")}
    found = {"replay": f"(from query({planned(method, given)}))"}
    if roles.person is None and context.methods[method].groups is not None:
        # the register has no sensitive column, so requirements on one do not apply to its groups
        facts = {name: sql for name, sql in given.items() if name not in _ABOUT_SENSITIVE}
        facts |= {"tbl": literal(context.relation("original").sql), "sensitive": "[]", "force": "true"}
        facts |= {ASKED_BY: literal(f"{context.function}: the original")}
        found["register"] = f"(from query({planned(method, facts)}))"
    return found


def _by_parameter(context: Any, text: str, method: str, arguments: list[tuple[str, str]]) -> dict[str, str]:
    """SQL of each argument of a call by its parameter, those without a name in their order."""
    names = [p.name for p in parameters_of(context.methods[method]) if p.name not in _RESERVED and p.name != "tbl"]
    given: dict[str, str] = {}
    for k, (name, sql) in enumerate(arguments):
        name = name or (names[k] if k < len(names) else f"argument {k + 1}")
        if name not in names or name in given:
            raise ParameterError(
                f"call := {text!r} gives {name}{' twice' if name in given else ''}"
                f"{nearest(name, names)}; {method} takes {listed(names)}"
            )
        given[name] = sql
    return given


def parsed_call(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Name of a method, and the name ('' for none) and SQL of its arguments, without table, roles, seed and row_id.

    >>> parsed_call("muco(0.2, l := 5, seed := 1)")
    ('muco', [('', '0.2'), ('l', '5')])
    >>> parsed_call("muco('people', delta := 1 / 5)")
    ('muco', [('delta', '1 / 5')])
    """
    bare = text.strip().rstrip(";")
    with_table = bare[:5].lower() == "from "
    try:
        call = sqlglot.parse_one(bare[5:] if with_table else bare, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        call = exp.Null()
    if not isinstance(call, exp.Anonymous):
        raise ParameterError(
            f"call := {text!r} is no call of a method; say what made the release, without its table: "
            "'muco(delta := 0.2)'"
        )
    first = call.expressions[0] if call.expressions else None
    with_table = with_table or (isinstance(first, exp.Literal) and first.is_string)
    arguments = []
    for argument in call.expressions[with_table:]:
        name = argument.this.name.lower() if isinstance(argument, exp.PropertyEQ) else ""
        if name in _RESERVED:
            continue
        arguments.append((name, (argument.expression if name else argument).sql(dialect="duckdb")))
    return call.name.lower(), arguments


def bootstrapped(release: PublishedRecords, rng: np.random.Generator) -> Replay | None:
    """Pairs of a record and its nearest in a resample, as if a call had made the second of the first, or None."""
    rows = len(release.unit_of_row)
    resampled = np.unique(rng.integers(0, rows, rows))
    left_out = np.setdiff1d(np.arange(rows), resampled)
    if not len(left_out):
        return None
    resampled = rng.permutation(resampled)[:MOST_RESAMPLED]
    left_out = rng.permutation(left_out)[:MOST_LEFT_OUT]
    codes = np.stack([cells.value_codes()[cells.of_row] for cells in release.columns])
    values = np.stack([cells.middles()[cells.of_row] for cells in release.columns])
    domains = [cells.domain for cells in release.columns]
    nearest = np.zeros((len(left_out), 1), dtype=np.int64)
    nearest_rows(
        np.ascontiguousarray(values[:, left_out]), np.ascontiguousarray(values[:, resampled]),
        np.array([domain.kind != "ordered" for domain in domains]),
        np.array([domain.span or 1.0 for domain in domains]),
        np.arange(len(resampled)), nearest, stop_flag(),
    )  # fmt: skip
    return Replay(codes[:, left_out], codes[:, resampled[nearest[:, 0]]], None, of_call=False)
