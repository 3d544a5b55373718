"""The columns of a sliced table: given by the user or found by association, and planned before any row is read.

A release has `bucket`, then one STRUCT per column of the table; a field keeps its attribute's type. Cost: none that
depends on the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duckdb_anon.kernels.slicing.bucket_permutation import Grouping
from duckdb_anon.model.errors import ColumnError, ParameterError, listed, nearest
from duckdb_anon.model.function_specs import ColumnPlan, Parameter, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import BUCKET
from duckdb_anon.model.released_columns import Coded, Source, Struct, Whole

COLUMNS = (
    Parameter(
        "columns",
        "attributes published together, [['age', 'sex'], ['zip']] (default: found by association, "
        "k-medoids on 1 - phi squared)",
    ),
    Parameter("column_count", "number of columns to find", "integer", 2, low=1),
    Parameter(
        "bins", "intervals an ordered attribute is cut into when measuring association", "integer", 10, low=1, high=1000
    ),
)


def checked_grouping(function: str, given: Any, qi: Sequence[str], sensitive: str, *, alone: bool) -> Grouping:
    """Check columns that were given as lists of names.

    Args:
        given: list of lists of column names; the sensitive column may be left out.
        qi: quasi-identifiers; each must appear once.
        alone: whether the sensitive column must not share its column.

    Raises:
        ParameterError: `given` is not a list of lists of names.
        ColumnError: a name is unknown, missing or repeated, or the sensitive column is not alone.
    """
    if not isinstance(given, (list, tuple)) or not all(
        isinstance(column, (list, tuple)) and column and all(isinstance(n, str) for n in column) for column in given
    ):
        raise ParameterError(
            f"{function}: columns := must be a list of lists of column names, such as [['age', 'sex'], ['zip']]"
        )
    spelling = {fold(name): name for name in (*qi, sensitive)}
    for name in (name for column in given for name in column):
        if fold(name) not in spelling:
            raise ColumnError(
                f"{function}: columns := names '{name}', which is neither quasi-identifier nor sensitive"
                f"{nearest(name, spelling.values())}; there are {listed(spelling.values())}"
            )
    columns = [tuple(spelling[fold(name)] for name in column) for column in given]
    every = [name for column in columns for name in column]
    wrong = [name for name in qi if every.count(name) != 1] + [sensitive] * (every.count(sensitive) > 1)
    if wrong:
        raise ColumnError(f"{function}: columns := must name {listed(wrong)} exactly once")
    partners = tuple(name for column in columns if sensitive in column for name in column if name != sensitive)
    if alone and partners:
        raise ColumnError(
            f"{function}: the sensitive column '{sensitive}' must be alone in its column, not with {listed(partners)}"
        )
    return Grouping(tuple(column for column in columns if sensitive not in column), partners, sensitive)


def sliced_layout(roles: Roles, grouping: Grouping) -> tuple[ColumnPlan, ...]:
    """Plan the columns of a sliced release: `bucket`, one STRUCT a column, insensitive columns."""
    plans = [ColumnPlan(BUCKET.key, Whole)]
    for name, column in grouping.named().items():
        fields = tuple(ColumnPlan(attribute, Coded) for attribute in column)
        plans.append(ColumnPlan(name, Struct, fields=fields))
    return (*plans, *(ColumnPlan(info.name, Source) for info in roles.keep))
