"""Parameters of methods that cut records into groups, and what they lead to.

Cost: see `kernels.partition`.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np

from duckdb_anon.kernels.partition.partition import partition, person_level
from duckdb_anon.kernels.partition.privacy_models import KAnonymity, PrivacyModel
from duckdb_anon.model.coded_table import Attribute, CodeArray, CodedTable, IntArray
from duckdb_anon.model.function_specs import ColumnPlan, Cutting, Parameter, Params, Roles
from duckdb_anon.model.progress import tick
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Source

EDGES = Parameter(
    "edges",
    "ends of intervals: 'rounded': moved outwards to values that at least k records share, or to "
    "round numbers; 'tight': the smallest and largest value of each group, which may be those of "
    "one individual",
    "text",
    "rounded",
    ("rounded", "tight"),
)
WIDTHS = ("range", "distinct", "spread")
CUTS = (
    Parameter(
        "cut",
        "'loss': cut where information loss falls most; 'median': Mondrian's cut; 'sse': cut where "
        "squared error falls most",
        "text",
        "loss",
        ("loss", "median", "sse"),
    ),
    Parameter(
        "width",
        "attribute that a median cut takes first: by range, distinct values or squared spread",
        "text",
        "range",
        WIDTHS,
    ),
)

# by which groups, and classes of boxes, exceed 1 / delta: what an insider gains by a model of the sensitive values
MARGIN, BOX_MARGIN = Fraction(8, 5), Fraction(2)


def least_size(params: Params, margin: Fraction = MARGIN) -> int:
    """Rows (persons) of a group, at least, whose members an insider who learns stays within delta of.

    >>> [least_size({"delta": delta}) for delta in (1, 0.5, 0.1, 0.05)]
    [1, 4, 16, 32]
    """
    delta = Fraction(params["delta"])
    return 1 if delta >= 1 else ceil(margin / delta)


GUARANTEE_TRIALS = (
    "k := 1", "k := 3", "k := 5, l := 1.5", "l := 2", "l := 3, diversity := 'distinct'",
    "l := 1.5, diversity := 'entropy'", "k := 2, l := 2, t := 0.6, distance := 'equal'",
    "t := 0.3, distance := 'equal'",
)  # fmt: skip
"""Trials of methods with k, l and t."""


def plain_layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Every column keeps its type: quasi-identifiers, sensitive, insensitive."""
    coded = tuple(ColumnPlan(info.name, Coded) for info in roles.qi + roles.sensitive)
    return coded + tuple(ColumnPlan(info.name, Source) for info in roles.keep)


def unchanged(table: CodedTable) -> dict[str, Cells]:
    """Sensitive columns as they are, and the source rows of a release of all records in their order."""
    codes: dict[str, Cells] = {a.name: Coded(a.name, a.codes) for a in table.sensitive}
    return {**codes, ROWS: Source(np.arange(table.rows, dtype=np.int64))}


def cut_by_person(least: float) -> Cutting:
    """How a table is cut into parts of at least `least` individuals, each with all their records."""
    return Cutting("cut", KAnonymity(ceil(least)), persons=True)


def cut_groups(
    function: str,
    qi: tuple[Attribute, ...],
    sensitive: CodeArray | None,
    requirement: PrivacyModel,
    params: Params,
    person: CodeArray | None = None,
) -> IntArray:
    """Group of each record; every group satisfies the requirement."""
    codes = sensitive if requirement.needs_sensitive else None
    if params["cut"] == "sse":
        return partition(qi, codes, requirement, person=person, tick=tick, cut="sse", function=function)
    return partition(
        qi if person is None else person_level(qi, person),
        codes,
        requirement,
        person=person,
        cut=params["cut"],
        width=params["width"],
        tick=tick,
        function=function,
    )
