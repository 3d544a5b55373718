"""The attacker who finds the groups inside which a method moved values.

Cells move inside groups of similar records only, so running the method's grouping on the release finds most groups
again. The attacker locates the individual in a group by its values: P(x | group) is the product over columns of the
share of the group's records that have the value, smoothed by a part of a record drawn from the column. The rows of that
group, and their shares of sensitive values, are what delta leaves open. Rows of the group are ranked by their
likelihood, to a quarter, because group and row are two readings of the same cells.
Cost: one run of the grouping, and targets times groups times columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy
from numpy.typing import NDArray

from duckdb_anon.measures.risk.attackers.record_linkage import likelihood
from duckdb_anon.measures.risk.attacks import Attacker, ColumnScore, Label, NotApplicable, Scoring
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.measures.risk.targets import Targets
from duckdb_anon.model.coded_table import BoolArray, CodeArray, FloatArray, IntArray

CHANNEL = 0.25
"""Weight of a row's own likelihood against that of its group."""
STRENGTH = 0.2
_MOST_ENTRIES = 2_000_000


@dataclass(frozen=True, eq=False)
class GroupValues:
    """How often each group has each value."""

    size: FloatArray  # records of each group
    # for each column the records of each group with each value, shape (values, groups)
    counts: list[scipy.sparse.csr_matrix]
    # for each column log P(value | group), shape (values, groups); None where that is too large
    tables: list[NDArray[np.float32] | None]

    @classmethod
    def of(cls, group: IntArray, codes: CodeArray, domains: list[int]) -> GroupValues:
        """Count the groups of some records."""
        size = np.bincount(group).astype(np.float64)
        counts = [
            scipy.sparse.csr_matrix((np.ones(len(group)), (column, group)), (domain, len(size)))
            for column, domain in zip(codes, domains, strict=True)
        ]
        found = cls(size, counts, [None] * len(domains))
        for a, domain in enumerate(domains):
            if domain * len(size) <= _MOST_ENTRIES:
                found.tables[a] = found._table(a, np.arange(domain))
        return found

    def log_likelihood(self, values: CodeArray, known: BoolArray) -> NDArray[np.float32]:
        """Log P(known values | group), shape (records, groups). `values`, `known`: shape (records, columns)."""
        total = np.zeros((len(values), len(self.size)), dtype=np.float32)
        for a, table in enumerate(self.tables):
            if not known[:, a].any():
                continue
            column = values[:, a].astype(np.int64)
            if table is None:
                different, column = np.unique(column, return_inverse=True)
                table = self._table(a, different)
            if known[:, a].all():
                total += table[column]
            else:
                total += np.where(known[:, a, None], table[column], np.float32(0))
        return total

    def _table(self, a: int, values: IntArray) -> NDArray[np.float32]:
        share = np.asarray(self.counts[a].sum(axis=1)).ravel() / self.size.sum()
        extra = STRENGTH * np.maximum(share, 1e-9)[values]
        shares = (self.counts[a][values].toarray() + extra[:, None]) / (self.size + STRENGTH)
        return np.asarray(np.log(shares), dtype=np.float32)


def scoring(release: PublishedRecords) -> Scoring:
    """Score each row by its group, and a little by its own cells."""
    if release.replay is None or release.replay.group is None:
        raise NotApplicable("This attacker needs a release of plain values whose method moves them inside groups")
    group, base = release.replay.group, likelihood(release)
    codes = np.stack([cells.value_codes()[cells.of_row] for cells in release.columns])
    values = GroupValues.of(group, codes, [cells.domain.size for cells in release.columns])

    def tempered(score: ColumnScore, codes: CodeArray) -> FloatArray:
        return CHANNEL * score(codes)

    def by_group(some: Targets) -> FloatArray:
        return values.log_likelihood(some.values, some.known).astype(np.float64)

    columns: list[ColumnScore] = [partial(tempered, score) for score in base.columns]
    return replace(base, columns=columns, labels=[Label(group, by_group)])


REGROUP = Attacker("regroup", "records of the group in which the method's grouping of the release places the target",
                   scoring, order=5)  # fmt: skip
