"""From a coded table and the arguments of a call to domains and channels.

Shared by rr_distort, rr_parameters and rr_risk, so that they speak of the same domains, bins and parameters.
The domain of an attribute is the leaves of its hierarchy, with `domain := 'declared'` an enum's values too; where
nothing is declared, or with `domain := 'observed'`, it is the values of the table; after binning, the values
that stand for its bins. NULL is a value of the domain when the table holds one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from duckdb_anon.kernels.randomized_response.bins import representatives
from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, inverse_terms
from duckdb_anon.kernels.randomized_response.contingency import occupied_cells
from duckdb_anon.kernels.randomized_response.optimize_p import optimal_channels
from duckdb_anon.kernels.randomized_response.problem import Problem
from duckdb_anon.kernels.randomized_response.risk import RiskModel
from duckdb_anon.kernels.randomized_response.setup import matched, randomized_names
from duckdb_anon.model.coded_table import Attribute, CodeArray, CodedTable
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError
from duckdb_anon.model.function_specs import Params
from duckdb_anon.model.identifier_case import fold


@dataclass(frozen=True)
class Column:
    """An attribute over its domain.

    Attributes:
        attribute: the coded column.
        domain: released code of each place of the domain, shape (size,); codes from `attribute.domain` on are
            its declared values that no row has.
        places: place in the domain of each row's value, shape (n,).
        randomized: whether the call randomizes it.
    """

    attribute: Attribute
    domain: CodeArray
    places: CodeArray
    randomized: bool

    @property
    def size(self) -> int:
        """Number of values in the domain."""
        return len(self.domain)


@dataclass(frozen=True)
class Choice:
    """Channels of a call.

    Attributes:
        qi, sensitive: the columns, in the order of their roles.
        channels: one per column, QI first; the identity where a column is left alone.
        problem: the bound and the risk model, None without a sensitive column or where it was not asked for.
    """

    qi: tuple[Column, ...]
    sensitive: tuple[Column, ...]
    channels: tuple[RetentionChannel, ...]
    problem: Problem | None

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, QI first."""
        return self.qi + self.sensitive


def choose(table: CodedTable, params: Params, function: str, with_risk: bool = True) -> Choice:
    """Return domains and channels of a call on a table.

    Args:
        table: the coded table.
        params: RISK_PARAMETERS, `l` and `p` after `refine`.
        function: SQL function named in errors.
        with_risk: false leaves the risk model out where neither l nor the caller needs it.

    Raises:
        RequirementError: l cannot be met, or not with the p given.
        ParameterError: a p forgets everything, bins of a column without order, or too many QI cells.
    """
    qi, sensitive = columns_of(table, params, function)
    level = params["l"]
    problem = None
    if sensitive and (with_risk or level is not None):
        tables = tuple(
            occupied_cells([c.places for c in qi], [c.size for c in qi], s.places, s.size) for s in sensitive
        )
        model = RiskModel(tables, params["prior"])
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
        return Choice(qi, sensitive, optimal_channels(problem, function).channels, problem)
    channels = tuple(_given_channel(c, params["p"], function) for c in qi + sensitive)
    if level and problem and (risk := problem.bounded_risk(channels)) > problem.limit:
        raise RequirementError(
            f"{function}: with the p given the risk is {risk:.6g}, above 1/l = {problem.limit:.6g}; lower p, or"
            " leave p out to have it found"
        )
    return Choice(qi, sensitive, channels, problem)


def columns_of(table: CodedTable, params: Params, function: str) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """Return the QI and sensitive columns over their domains, binned as asked.

    Args:
        table: the coded table.
        params: checked parameters of the call.
        function: SQL function, for messages.
    """
    attributes = table.qi + table.sensitive
    names = [a.name for a in attributes]
    chosen = randomized_names(function, names[: len(table.qi)], names[len(table.qi) :], params)
    bins = matched(function, "bins", params["bins"] or {}, names)
    columns = tuple(
        _column(a, bins.get(a.name), _declares(a, params["domain"]), a.name in chosen, function) for a in attributes
    )
    return columns[: len(table.qi)], columns[len(table.qi) :]


def _declares(attribute: Attribute, domain: str) -> bool:
    """Whether values that no row has belong to the domain: leaves are public, an enum may hold somebody's who left."""
    return domain == "declared" or (domain == "hierarchy" and attribute.hierarchy is not None)


def _column(attribute: Attribute, bins: Any, declared: bool, randomized: bool, function: str) -> Column:
    if bins is not None:
        stands_for = representatives(attribute, bins, function)
        domain, place = np.unique(stands_for, return_inverse=True)
        return Column(attribute, domain, place.astype(np.int32)[attribute.codes], randomized)
    size = attribute.domain + (len(attribute.declared) if declared else 0)
    return Column(attribute, np.arange(size, dtype=np.int32), attribute.codes, randomized)


def _given_channel(column: Column, given: Any, function: str) -> RetentionChannel:
    p = given
    if isinstance(given, dict):
        folded = {fold(name): value for name, value in given.items()}
        p = folded.get(fold(column.attribute.name), 1.0)
    channel = RetentionChannel(column.size, p if column.randomized else 1.0)
    try:
        inverse_terms(channel)
    except ParameterError as error:
        raise ParameterError(f"{function}: column '{column.attribute.name}': {error}") from error
    return channel
