"""Arguments of rr_distort, rr_parameters and rr_risk, and the domains and channels of a call.

The three functions share them, so that they use the same domains, bins and parameters. The domain of an attribute is
the leaves of its hierarchy, with `domain := 'declared'` an enum's values too; where nothing is declared, or with
`domain := 'observed'`, it is the values of the table; after binning, the representatives of its bins: the value nearest
to the mean of the bin's rows, so that the column keeps its type and sums stay close. NULL is a value of the domain when
the table has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, inverse_terms
from duckdb_anon.kernels.randomized_response.optimize_p import Problem, optimal_channels
from duckdb_anon.kernels.randomized_response.risk import RiskModel, occupied_cells
from duckdb_anon.model.coded_table import Attribute, CodeArray, CodedTable, FloatArray
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, listed, nearest
from duckdb_anon.model.function_specs import Parameter, Params
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import literal

PAPER = "Guo, L., Ying, X., Wu, X. (2011), JCSE 5(3)"

RISK_PARAMETERS = (
    Parameter("scope", "what is randomized", "text", "both", ("both", "qi", "sensitive")),
    Parameter(
        "bins",
        "ordered columns to bin first: {'age': 10} for equal widths, or {'age': [30, 50]} for cut points",
        "mapping",
    ),
    Parameter(
        "domain",
        "'hierarchy': the leaves of a hierarchy, otherwise the table's values; 'declared': also all "
        "values of an enum, including those that no record has; 'observed': the table's values",
        "text",
        "hierarchy",
        ("hierarchy", "declared", "observed"),
    ),
    Parameter(
        "target", "whether the maximum or the mean risk of the records is bounded", "text", "max", ("max", "mean")
    ),
    Parameter("min_count", "records in smaller cells of quasi-identifiers are outside the bound", "integer", 1, low=1),
)
LEVEL = Parameter("l", "maximum disclosure risk 1/l; the p of least error is computed", "number", low=1)
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
            f"{function}: p := {literal(given)} is neither a number nor a MAP or STRUCT from column to number"
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
    """Return the columns a call randomizes; it can be planned before any row is read.

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
    """Return the argument `given` with its names spelled as the columns are."""
    folded = {fold(name): name for name in names}
    for name in given:
        if fold(name) not in folded:
            raise ColumnError(
                f"{function}: {parameter} names '{name}'{nearest(name, names)}; it may name {listed(names)}"
            )
    return {folded[fold(name)]: value for name, value in given.items()}


@dataclass(frozen=True)
class Column:
    """An attribute over its domain."""

    attribute: Attribute  # the coded column
    # released code of each value of the domain, shape (size,); codes from `attribute.domain` on are declared values
    # that no row has
    domain: CodeArray
    index: CodeArray  # index into `domain` of each row's value, shape (n,)
    randomized: bool  # whether the call randomizes it

    @property
    def size(self) -> int:
        """Number of values in the domain."""
        return len(self.domain)


@dataclass(frozen=True)
class Choice:
    """Channels of a call."""

    qi: tuple[Column, ...]  # qi, sensitive: the columns, in the order of their roles
    sensitive: tuple[Column, ...]
    channels: tuple[RetentionChannel, ...]  # one per column, QI first; the identity where a column is left alone
    problem: Problem | None  # the bound and the risk model, None without a sensitive column or where it is not needed

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, QI first."""
        return self.qi + self.sensitive


def choose(table: CodedTable, params: Params, function: str, with_risk: bool = True) -> Choice:
    """Return domains and channels of a call on a table.

    Args:
        with_risk: false leaves the risk model out where neither l nor the caller needs it.

    Raises:
        RequirementError: l cannot be met, or not with the p given.
        ParameterError: a p forgets everything, bins of a column without order, or too many QI cells.
    """
    qi, sensitive = columns_of(table, params, function)
    level = params["l"]
    problem = None
    if sensitive and (with_risk or level is not None):
        tables = tuple(occupied_cells([c.index for c in qi], [c.size for c in qi], s.index, s.size) for s in sensitive)
        model = RiskModel(tables)
        limit = 1.0 / level if level else 1.0
        problem = Problem(model, limit, params["scope"], params["target"], params["min_count"])
        if not any(covered.any() for covered in problem.included()):
            raise RequirementError(
                f"{function}: min_count := {params['min_count']} leaves every row outside the bound, so nothing would "
                f"be randomized for it: no QI cell has more than {max(t.cell_count.max() for t in tables)} rows; take "
                "at most that"
            )
    if params["p"] is None:
        if problem is None:
            raise ColumnError(f"{function}: l bounds the risk of a sensitive column; say sensitive := '...'")
        return Choice(qi, sensitive, optimal_channels(problem, function), problem)
    given = params["p"]
    if isinstance(given, dict):
        given = matched(function, "p", given, [c.attribute.name for c in qi + sensitive])
    channels = tuple(_given_channel(c, given, function) for c in qi + sensitive)
    if level and problem and (risk := problem.bounded_risk(channels)) > problem.limit:
        raise RequirementError(
            f"{function}: with the p given the risk is {risk:.6g}, above 1/l = {problem.limit:.6g}; lower p, or"
            " leave p out to have it found"
        )
    return Choice(qi, sensitive, channels, problem)


def columns_of(table: CodedTable, params: Params, function: str) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """Return the QI and sensitive columns over their domains, binned as the call says."""
    attributes = table.qi + table.sensitive
    names = [a.name for a in attributes]
    chosen = randomized_names(function, names[: len(table.qi)], names[len(table.qi) :], params)
    bins = matched(function, "bins", params["bins"] or {}, names)
    columns = tuple(
        _column(a, bins.get(a.name), _declares(a, params["domain"]), a.name in chosen, function) for a in attributes
    )
    return columns[: len(table.qi)], columns[len(table.qi) :]


def _declares(attribute: Attribute, domain: str) -> bool:
    """Whether values that no row has belong to the domain: leaves are public, an enum may list values since deleted."""
    return domain == "declared" or (domain == "hierarchy" and attribute.hierarchy is not None)


def _column(attribute: Attribute, bins: Any, declared: bool, randomized: bool, function: str) -> Column:
    if bins is not None:
        stands_for = representatives(attribute, bins, function)
        domain, index_of_code = np.unique(stands_for, return_inverse=True)
        return Column(attribute, domain, index_of_code.astype(np.int32)[attribute.codes], randomized)
    size = attribute.domain + (len(attribute.declared) if declared else 0)
    return Column(attribute, np.arange(size, dtype=np.int32), attribute.codes, randomized)


def representatives(attribute: Attribute, bins: float | Sequence[float], function: str) -> CodeArray:
    """Return for each code the code of the value its bin is released as, shape (domain,)."""
    if attribute.kind != "ordered":
        raise ParameterError(f"{function}: bins names '{attribute.name}', which is not ordered; leave it out")
    finite = attribute.special_from
    positions = attribute.positions[:finite]
    result = np.arange(attribute.domain, dtype=np.int32)
    if finite == 0:
        return result
    bin_of_code = np.searchsorted(_cut_points(attribute, bins, function), positions, side="right")
    rows = attribute.counts[:finite].astype(np.float64)
    _, bin_of_code = np.unique(bin_of_code, return_inverse=True)
    mean = np.bincount(bin_of_code, rows * positions) / np.bincount(bin_of_code, rows)
    # the code nearest to the mean of each bin, the smaller of two equally near
    order = np.lexsort((positions, np.abs(positions - mean[bin_of_code]), bin_of_code))
    nearest = order[np.unique(bin_of_code[order], return_index=True)[1]]
    result[:finite] = nearest[bin_of_code]
    return result


def _cut_points(attribute: Attribute, bins: float | Sequence[float], function: str) -> FloatArray:
    """Return the inner cut points, ascending."""
    wrong = ParameterError(
        f"{function}: bins of '{attribute.name}' must be a whole number of at least 1, or a list of cut points"
    )
    if isinstance(bins, (bool, str)) or bins is None:
        raise wrong
    try:
        points = np.atleast_1d(np.asarray(bins, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise wrong from error
    if not np.isfinite(points).all():
        raise wrong
    if np.ndim(bins) > 0:
        return np.unique(points)
    count = int(points[0])
    if count != points[0] or count < 1:
        raise wrong
    return float(attribute.positions[0]) + attribute.span * np.arange(1, count) / count


def _given_channel(column: Column, given: Any, function: str) -> RetentionChannel:
    p = given.get(column.attribute.name, 1.0) if isinstance(given, dict) else given
    channel = RetentionChannel(column.size, p if column.randomized else 1.0)
    try:
        inverse_terms(channel)
    except ParameterError as error:
        raise ParameterError(f"{function}: column '{column.attribute.name}': {error}") from error
    return channel
