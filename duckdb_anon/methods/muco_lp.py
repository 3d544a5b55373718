"""The paper's random output tables: `muco` with tables := 'linear'.

Every quasi-identifier value is drawn from its record's row of a random output table; other columns and the number of
records are unchanged. Guarantee: delta-probability of every table, that is, no record has more than the share delta in
the mass of a published value of its group, and no record keeps all its quasi-identifiers. Records of a group that
varies on too few of them get values from outside it, which no table bounds (`muco_groups` counts them). Delta bounds
one attribute's table as if groups were known; it does not bound the risk of re-identification. Tables with several
records of an individual are refused.

Source: Li et al. (2020), arXiv 2008.10771, sections 3 and 4. Departure: with no sensitive column, or several, groups
are not divided into small ones. Cost: O(n log n d), then one small linear program for each distinct pattern of gaps.
"""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np

from duckdb_anon.kernels.partition.m_invariance import assign
from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.partition.privacy_models import FrequencyDiversity, KAnonymity, PrivacyModel
from duckdb_anon.kernels.random_output_tables.min_changed import randomize_unchanged
from duckdb_anon.kernels.random_output_tables.output_tables import MutualCover, cover
from duckdb_anon.methods.privacy_spec import all_of, every_column
from duckdb_anon.model.coded_table import CodeArray, CodedTable, IntArray
from duckdb_anon.model.errors import ParameterError, RequirementError
from duckdb_anon.model.function_specs import Params
from duckdb_anon.model.progress import tick


def refine(params: dict[str, Any]) -> dict[str, Any]:
    """Fill in l and the parameters of the tables, and check l against delta."""
    if "min_changed" in params and params["min_changed"] is None:
        params["min_changed"] = 1.0
    least = ceil(1 / params["delta"])
    if params["l"] is None:
        params["l"] = float(least)
    if params["l"] < 1 / params["delta"] - 1e-9:
        raise ParameterError(
            f"l := {params['l']:g} is below 1/delta = {float(1 / params['delta']):g}; groups would be too small "
            f"for delta. Take l := {least} or more, or a larger delta"
        )
    return params


def required(table: CodedTable, params: Params) -> tuple[PrivacyModel, CodeArray | None]:
    """What every group must satisfy, and the sensitive codes that are read for it."""
    # dealing needs whole numbers of different sensitive values
    least = float(ceil(params["l"])) if len(table.sensitive) == 1 else params["l"]
    if not table.sensitive:
        return KAnonymity(ceil(least)), None
    sensitive, each = every_column(table.sensitive, lambda _: FrequencyDiversity(least))
    return all_of(each), sensitive


def groups_of(table: CodedTable, params: Params, function: str = "muco") -> IntArray:
    """Group of each row under the grouping parameters, shape (n,).

    With one sensitive column, groups have about l rows of different values, dealt from larger ones. Without a sensitive
    column they have at least ceil(l) rows; with several, each is l-diverse in every group.
    """
    if table.repeated_person is not None:
        raise ParameterError(
            f"{function}: tables := 'linear' bounds the share of a row, and persons have several here; leave it out, "
            "so that delta counts persons"
        )
    requirement, sensitive = required(table, params)
    try:
        groups = partition(table.qi, sensitive, requirement, cut="median", width="spread", tick=tick, function=function)
    except RequirementError as error:
        most = table.rows / max((int(np.bincount(a.codes).max()) for a in table.sensitive), default=1)
        raise RequirementError(
            f"{error}; so l := {floor(most * 1000 + 1e-6) / 1000:g} and delta := 1/{max(1, floor(most))} are the "
            "strictest it can have"
        ) from error
    return (
        assign(groups, sensitive, ceil(params["l"])) if len(table.sensitive) == 1 and sensitive is not None else groups
    )


def covers(table: CodedTable, params: Params, groups: IntArray) -> list[MutualCover]:
    """Random output tables of each quasi-identifier, verified."""
    return [cover(attribute, groups, params["delta"]) for attribute in table.qi]


def drawn(table: CodedTable, params: Params, rng: np.random.Generator) -> list[CodeArray]:
    """Released codes of every quasi-identifier."""
    tables = covers(table, params, groups_of(table, params))
    codes = [c.draw(rng) for c in tables]
    published, _ = randomize_unchanged(tables, codes, params["min_changed"], rng)
    return list(published)
