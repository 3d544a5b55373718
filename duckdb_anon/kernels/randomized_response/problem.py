"""The optimisation problem of randomized response: least estimation error under a bound on the risk.

Minimise F = prod_i (1 + (d_i - 1) / a_i^2), a_i the gain of channel i, subject to risk <= limit = 1/l (Guo,
Ying and Wu 2011, Problem 1 and Result 2). F is, up to constants, the expected squared error of the estimated
cell shares. The risk never falls when a gain grows, so the feasible gains are a down-closed set and whether
there are any shows at gains of zero (Property 1).

Departures: several sensitive attributes share the QI channels and each is held to the limit; `target` 'mean'
bounds the mean risk of the records instead of the largest, and `min_count` leaves out records in smaller QI
cells (the paper reports parameters for randomizing S alone on tables where its own risk cannot go below 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel
from duckdb_anon.kernels.randomized_response.risk import RiskModel, require_dense
from duckdb_anon.model.coded_table import FloatArray
from duckdb_anon.model.errors import RequirementError

Scope = Literal["both", "qi", "sensitive"]
Target = Literal["max", "mean"]
SLACK = 1e-9


@dataclass(frozen=True)
class Problem:
    """What is randomized, and the bound on the risk.

    Attributes:
        model: the risk of the table.
        limit: largest risk allowed, 1 / l.
        scope: 'qi' and 'sensitive' leave the other part alone.
        target: 'max' bounds every record's risk, 'mean' their mean.
        min_count: records in QI cells with fewer rows are left out of the bound.
    """

    model: RiskModel
    limit: float
    scope: Scope = "both"
    target: Target = "max"
    min_count: int = 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """Domain sizes: QI attributes, then sensitive ones."""
        return self.model.tables[0].sizes + tuple(t.sensitive_size for t in self.model.tables)

    @property
    def qi_count(self) -> int:
        """Number of QI attributes."""
        return len(self.model.tables[0].sizes)

    @property
    def free(self) -> tuple[int, ...]:
        """Positions in `sizes` of the attributes whose channel is to be chosen."""
        chosen = {"both": range(len(self.sizes)), "qi": range(self.qi_count)}.get(
            self.scope, range(self.qi_count, len(self.sizes))
        )
        return tuple(i for i in chosen if self.sizes[i] > 1)

    def channels(self, gains: FloatArray) -> list[RetentionChannel]:
        """Return the channels of all attributes for the gains of the free ones."""
        every = np.ones(len(self.sizes))
        every[list(self.free)] = gains
        return [RetentionChannel.of_gain(size, float(gain)) for size, gain in zip(self.sizes, every, strict=True)]

    def objective(self, gains: FloatArray) -> float:
        """Return log F over the free attributes."""
        sizes = np.array([self.sizes[i] for i in self.free], dtype=np.float64)
        return float(np.log1p((sizes - 1.0) / gains**2).sum())

    def included(self) -> list[np.ndarray]:
        """Return for each sensitive attribute the pairs the bound covers, shape (pairs,)."""
        return [t.cell_count[t.pair_cell] >= self.min_count for t in self.model.tables]

    def excluded_share(self) -> float:
        """Return the share of records that `min_count` leaves out of the bound."""
        table = self.model.tables[0]
        return float(table.cell_count[table.cell_count < self.min_count].sum() / max(table.records, 1))

    def bounded_risk(self, channels: Sequence[RetentionChannel]) -> float:
        """Return the figure compared with the limit: the largest or mean risk of the records covered."""
        risks = self.model.risks(channels[: self.qi_count], channels[self.qi_count :])
        worst = 0.0
        for risk, table, covered in zip(risks, self.model.tables, self.included(), strict=True):
            if not covered.any():
                continue
            weight = table.pair_count[covered]
            figure = risk[covered].max() if self.target == "max" else np.average(risk[covered], weights=weight)
            worst = max(worst, float(figure))
        return worst

    def feasible(self, gains: FloatArray) -> bool:
        """Say whether the risk stays within the limit for these gains of the free attributes."""
        return self.bounded_risk(self.channels(gains)) <= self.limit

    def floor(self) -> float:
        """Return the risk at gains of zero, the least that this scope can reach (Property 1)."""
        return self.bounded_risk(self.channels(np.zeros(len(self.free))))

    def require_feasible(self, function: str) -> None:
        """Raise a RequirementError that names the cause when no channels meet the limit."""
        if self.scope != "sensitive":
            require_dense(self.model.tables[0].sizes)
        floor = self.floor()
        if floor <= self.limit * (1.0 - SLACK):
            return
        reach = f"the smallest reachable risk is {floor:.6g}, that is l below {max(1.0, 1.0 / floor):.6g}"
        raise RequirementError(
            f"{function}: l := {1.0 / self.limit:g} cannot be met with scope := '{self.scope}': {self._cause()};"
            f" {reach}. {self._advice()}"
        )

    def _cause(self) -> str:
        table = self.model.tables[0]
        covered = self.included()[0]
        if self.scope != "sensitive":
            return "a combination of QI and sensitive values is too frequent to be hidden by randomizing"
        uniform = covered & (table.pair_count == table.cell_count[table.pair_cell])
        heavy = covered & (table.conditional**2 > self.limit)
        alone, many = int(table.pair_count[uniform].sum()), int(table.pair_count[heavy].sum())
        return (
            f"{many:,} of {table.records:,} records lie in QI cells where their sensitive value has a share"
            f" above sqrt(1/l), {alone:,} of them in cells with a single sensitive value, whose risk is 1"
            " whatever p is"
        )

    def _advice(self) -> str:
        if self.scope != "sensitive":
            return "Lower l."
        return (
            "Randomize the QI as well (scope := 'both' or 'qi'), bin the QI (bins := ...), leave small cells out"
            " of the bound (min_count := ...), or bound the mean risk (target := 'mean')."
        )
