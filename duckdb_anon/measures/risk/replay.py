"""The call that made a release, run again on the release: how an attacker learns what the method does.

She has the release, the method and its parameters, and nothing of the original. The SELECT written here runs inside the
measure's own statement, on the caller's connection.
"""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp

from duckdb_anon.engine.quoting import ident, literal
from duckdb_anon.engine.roles import ROLE_PARAMETERS
from duckdb_anon.model.description import read_description
from duckdb_anon.model.entries import Params, Roles
from duckdb_anon.model.errors import ParameterError, listed, nearest
from duckdb_anon.model.shapes.types import is_nested

_OWN = {p.name for p in ROLE_PARAMETERS} | {"seed", "row_id"}


def replay_select(context: Any, roles: Roles, params: Params) -> dict[str, str]:
    """SELECT, by the name 'replay', of what the release's call makes of the release.

    Args:
        context: planning context of the call.
        roles: roles of the original's columns, which the release has too.
        params: `call`, or None where the release's description tells it; `seed`.

    Returns:
        Nothing where the call is unknown, or the release's columns are no plain values: such cells say themselves
        what they stand for. The method says so too, for the types of a temporary table cannot be seen here.

    Raises:
        ParameterError: the call names no method.
    """
    release = context.relation("release")
    text = params["call"] or _described(release)
    if not text:
        return {}
    method, arguments = parsed_call(context.function, text)
    if method not in context.methods:
        raise ParameterError(
            f"{context.function}: call := {text!r} names no method{nearest(method, context.methods)}; there are "
            f"{listed(context.methods)}"
        )
    if not context.methods[method].moves_values:
        return {}
    types = {name.lower(): kind for name, kind in release.columns.items()}
    asked = [types.get(info.name.lower(), "") for info in roles.qi + roles.sensitive]
    if release.visible and (context.contents(release).channels or any(not kind or _nested(kind) for kind in asked)):
        return {}
    given = [literal(release.text), *arguments, f"qi := {literal([info.name for info in roles.qi])}"]
    if roles.sensitive:
        given.append(f"sensitive := {literal([info.name for info in roles.sensitive])}")
    nominal = [info.name for info in roles.qi + roles.sensitive if info.kind == "nominal"]
    if nominal:
        given.append(f"categorical := {literal(nominal)}")
    trees = {info.name: info.hierarchy for info in roles.qi + roles.sensitive if info.hierarchy}
    if trees:
        pairs = ", ".join(f"{literal(name)}: {literal(tree)}" for name, tree in trees.items())
        given.append(f"hierarchies := {{{pairs}}}")
    if params["seed"] is not None:
        given.append(f"seed := {params['seed']}")
    return {"replay": f"(from {ident(method)}({', '.join(given)}, row_id := true))"}


def parsed_call(function: str, text: str) -> tuple[str, list[str]]:
    """Name of a method and its arguments as SQL, without table, roles, seed and row_id.

    >>> parsed_call('linkage_risk', "muco(0.2, l := 5, seed := 1)")
    ('muco', ['0.2', 'l := 5'])
    >>> parsed_call('linkage_risk', "FROM muco('people', delta := 0.2)")
    ('muco', ['delta := 0.2'])

    Raises:
        ParameterError: when it is no call of a function.
    """
    bare = text.strip().rstrip(";")
    with_table = bare[:5].lower() == "from "
    try:
        call = sqlglot.parse_one(bare[5:] if with_table else bare, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        call = exp.Null()
    if not isinstance(call, exp.Anonymous):
        raise ParameterError(
            f"{function}: call := {text!r} is no call of a method; say what made the release, without its table: "
            "'muco(delta := 0.2)'"
        )
    arguments = []
    for argument in call.expressions[with_table:]:
        name = argument.this.name.lower() if isinstance(argument, exp.PropertyEQ) else ""
        if name in _OWN:
            continue
        value = (argument.expression if name else argument).sql(dialect="duckdb")
        arguments.append(f"{name} := {value}" if name else value)
    return call.name.lower(), arguments


def _described(release: Any) -> str:
    """The call that a release's comment tells; '' where it tells none."""
    said = read_description(release.comment)
    return said.call if said is not None else ""


def _nested(kind: str) -> bool:
    return is_nested(kind)
