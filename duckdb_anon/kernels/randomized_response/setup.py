"""Arguments that rr_distort, rr_parameters and rr_risk share, checked before any row is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from duckdb_anon.model.errors import ColumnError, ParameterError, listed, nearest
from duckdb_anon.model.function_specs import Parameter, Params
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import argument_text

PAPER = "Guo, L., Ying, X., Wu, X. (2011), JCSE 5(3)"

RISK_PARAMETERS = (
    Parameter("scope", "what is randomized", "text", "both", ("both", "qi", "sensitive")),
    Parameter(
        "bins",
        "ordered columns to bin first: {'age': 10} equal widths, or {'age': [30, 50]} cut points",
        "mapping",
    ),
    Parameter(
        "domain",
        "'hierarchy': a hierarchy's leaves, else the table's values; 'declared': an enum's values too, which publishes "
        "those nobody has; 'observed': the table's values",
        "text",
        "hierarchy",
        ("hierarchy", "declared", "observed"),
    ),
    Parameter(
        "prior",
        "what the attacker expects of S: its distribution in the person's QI cell, or in the table",
        "text",
        "cell",
        ("cell", "marginal"),
    ),
    Parameter("target", "bound the largest risk of a record, or the mean", "text", "max", ("max", "mean")),
    Parameter("min_count", "records in QI cells with fewer rows are outside the bound", "integer", 1, low=1),
)
LEVEL = Parameter("l", "risk at most 1/l; finds the p of least error", "number", low=1)
GIVEN = Parameter("p", "probability of keeping a value: one number, or {'age': 0.8, ...}")


def refine(function: str, params: dict[str, Any]) -> dict[str, Any]:
    """Check what can be checked without the table; turn p and bins into plain numbers, lists and dicts."""
    if params["l"] is None and params["p"] is None:
        raise ParameterError(f"{function}: give l (the risk is kept at most 1/l) or p, such as l := 3 or p := 0.8")
    params["p"] = _plain_p(function, params["p"])
    if params["bins"] is not None:
        params["bins"] = {name: _plain_cut(given) for name, given in params["bins"].items()}
    return params


def _plain_p(function: str, given: Any) -> float | dict[str, float] | None:
    if given is None:
        return None
    try:
        if isinstance(given, Mapping) or (isinstance(given, Sequence) and not isinstance(given, str)):
            named = {str(name): float(p) for name, p in dict(given).items()}
            if not named:
                raise ParameterError(f"{function}: p names no column; give one number, or {{'age': 0.8, ...}}")
            _check_shares(function, named.values())
            return named
        if isinstance(given, (bool, str)):
            raise TypeError
        _check_shares(function, [float(given)])
        return float(given)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{function}: p := {argument_text(given)} is neither a number nor a MAP or STRUCT from column to number"
        ) from error


def _check_shares(function: str, shares: Any) -> None:
    wrong = [p for p in shares if not 0.0 < p <= 1.0]
    if wrong:
        raise ParameterError(f"{function}: p := {wrong[0]:g} is no probability; take a number in (1/domain size, 1]")


def _plain_cut(given: Any) -> Any:
    """Turn a count or a list of cut points into floats; dates become days, timestamps microseconds."""
    if isinstance(given, (list, tuple)):
        return [_plain_cut(part) for part in given]
    if isinstance(given, datetime):
        return (given.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds() * 1e6
    if isinstance(given, date):
        return float((given - date(1970, 1, 1)).days)
    if given is None or isinstance(given, (bool, str)):
        return None
    return float(given)


def randomized_names(function: str, qi: Sequence[str], sensitive: Sequence[str], params: Params) -> tuple[str, ...]:
    """Return the columns a call randomizes, known before any row is read.

    Args:
        function: SQL function, for messages.
        qi: names of the quasi-identifiers.
        sensitive: names of the sensitive columns.
        params: checked parameters of the call.

    Raises:
        ColumnError: nothing to randomize, or `p` names a column that is neither QI nor sensitive.
    """
    within = {"both": (*qi, *sensitive), "qi": tuple(qi), "sensitive": tuple(sensitive)}[params["scope"]]
    if params["l"] is not None and not sensitive:
        raise ColumnError(f"{function}: l bounds the risk of a sensitive column; say sensitive := '...'")
    if not within:
        raise ColumnError(
            f"{function}: scope := '{params['scope']}' leaves nothing to randomize; name qi and sensitive"
        )
    if not isinstance(params["p"], dict):
        return within
    named = matched(function, "p", params["p"], within)
    return tuple(name for name in within if name in named)


def matched(function: str, parameter: str, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return `given` under the columns' own spelling.

    Args:
        function: SQL function, for messages.
        parameter: the parameter, for messages.
        given: names as the call spells them.
        names: names there are.
    """
    folded = {fold(name): name for name in names}
    for name in given:
        if fold(name) not in folded:
            raise ColumnError(
                f"{function}: {parameter} names '{name}'{nearest(name, names)}; it may name {listed(names)}"
            )
    return {folded[fold(name)]: value for name, value in given.items()}
