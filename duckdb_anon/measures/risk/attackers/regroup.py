"""The attacker who finds the groups inside which a method moved values.

Cells move inside groups of similar records only, so running the method's grouping on the release finds most groups
again. She locates the individual in a group by its values (`group_location`); the rows of that group, and their shares
of sensitive values, are what delta leaves open. Rows of the group are told apart by their likelihood, to a quarter,
because group and row are two readings of the same cells.
Cost: one run of the grouping, and targets times groups times columns.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from duckdb_anon.measures.risk.attackers.record_linkage import likelihood
from duckdb_anon.measures.risk.attacks import Attacker, CannotAsk
from duckdb_anon.measures.risk.group_location import GroupValues
from duckdb_anon.measures.risk.linkage_view import PublishedRecords, refined
from duckdb_anon.measures.risk.scores import ColumnScore, Scoring
from duckdb_anon.measures.risk.targets import Targets
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray

CHANNEL = 0.25
"""Weight of a row's own likelihood beside that of its group."""


def scoring(release: PublishedRecords) -> Scoring:
    """Score each row by its group, and a little by its own cells.

    Raises:
        CannotAsk: the method forms no groups, or nobody said what call made the release.
    """
    if release.replay is None or release.replay.group is None:
        raise CannotAsk("This attacker needs a release of plain values whose method moves them inside groups")
    group, base = release.replay.group, likelihood(release)
    codes = np.stack([cells.codes[cells.of_row] for cells in release.columns])
    values = GroupValues.of(group, codes, [cells.domain.size for cells in release.columns])
    view = refined(release, [group])
    of_unit = group[np.unique(view.unit_of_row, return_index=True)[1]]
    columns: list[ColumnScore] = [partial(_tempered, column) for column in base.columns]
    return replace(base, columns=columns, view=view, added=partial(_by_group, values, of_unit))


def _tempered(score: ColumnScore, values: CodeArray) -> FloatArray:
    return CHANNEL * score(values)


def _by_group(values: GroupValues, of_unit: IntArray, some: Targets) -> FloatArray:
    scores: FloatArray = values.log_likelihood(some.values, some.known)[:, of_unit].astype(np.float64)
    return scores


REGROUP = Attacker("regroup", "records of the group in which the method's grouping of the release places the target",
                   scoring, order=5)  # fmt: skip
