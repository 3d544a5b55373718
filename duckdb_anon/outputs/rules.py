"""The rules of disclosure control for one value: threshold, dominance, p%, and their like for other statistics.

They are those of ACRO (Preen et al., 2022) and of the Handbook on Statistical Disclosure Control (Hundepool et al.,
2012, section 4.2), by individuals. Where a comparison meets NaN, the value is suppressed.
"""

from __future__ import annotations

from collections.abc import Sequence

from duckdb_anon.outputs.block import EXTREMES, PARAMETERS, QUANTILES, Aggregate, Block
from duckdb_anon.outputs.cells import Contributions, Group, Row
from duckdb_anon.outputs.policy import Policy

THRESHOLD, DOMINANCE, P_PERCENT = "primary: threshold", "dominance", "p_percent"
SECONDARY, DIFFERENCING = "secondary", "differencing"


def primary(block: Block, policy: Policy, row: Row) -> list[str]:
    """The rule that each aggregate of a row breaks; '' for none."""
    return [_rule(block, policy, row, place) for place, _ in enumerate(block.aggregates)]


def largest_share(row: Row, aggregate: Aggregate) -> float | None:
    """Share of the largest individual in a sum; None for other statistics and empty sums."""
    found = row.contributions.get((aggregate.condition, aggregate.measured or ""))
    return found.largest[0] / found.total if found is not None and found.total > 0 else None


def shown(block: Block, policy: Policy, rows: Sequence[Row]) -> list[Row]:
    """Rows whose keys may be shown: those of enough individuals.

    The keys of a row of fewer individuals tell that such individuals exist. They are shown where an answer of zero
    individuals is, and where enough individuals have each key's value.
    """
    finest = min((row.grouping for row in rows), default=0)
    having: dict[tuple[int, str | None], int] = {}
    for row in rows:
        for place, value in enumerate(row.keys):
            if row.grouping == finest:
                having[place, value] = having.get((place, value), 0) + row.groups[0].individuals
    zeros = zeros_are_safe(block, policy)
    return [
        row for row in rows
        if not block.keys or row.groups[0].individuals >= policy.threshold
        or (zeros and all(having.get((key, row.keys[key]), 0) >= policy.threshold for key in row.grouped))
    ]  # fmt: skip


def zeros_are_safe(block: Block, policy: Policy, arguments: Sequence[str] = ()) -> bool:
    """Whether an answer of no individuals is shown.

    That no individual has a value of a sensitive column tells something of all who are asked about, and a search by
    halves finds the largest value. So it is shown only where conditions, keys and the aggregate read columns that are
    quasi-identifiers or insensitive.
    """
    return policy.zeros == "safe" and block.table.are_known(block.read.union(arguments))


def _rule(block: Block, policy: Policy, row: Row, place: int) -> str:
    aggregate = block.aggregates[place]
    group, least = row.groups[aggregate.condition], policy.threshold
    if policy.method == "cell_key":  # noise protects; of a few individuals a sum would be too near
        return THRESHOLD if aggregate.measured is not None and 0 < group.individuals < least else ""
    if group.individuals == 0:
        return "" if zeros_are_safe(block, policy, aggregate.arguments) else THRESHOLD
    degrees = group.individuals - PARAMETERS.get(aggregate.function, 0)
    if degrees < least or 0 < group.outside < least or 0 < row.others < least:
        return THRESHOLD
    if aggregate.function in EXTREMES and not row.shared[place]:
        return THRESHOLD
    if aggregate.function in QUANTILES and _beside(aggregate, group) < least:
        return THRESHOLD
    if aggregate.measured is not None:
        return _concentration(policy, row.contributions[aggregate.condition, aggregate.measured])
    return ""


def _beside(aggregate: Aggregate, group: Group) -> int:
    """Individuals that a quantile surely has on its smaller side."""
    fraction = float(aggregate.fraction or 0.5)
    return int(min(fraction, 1 - fraction) * (group.rows - 1)) // max(group.most_rows, 1)


def _concentration(policy: Policy, sum_of: Contributions) -> str:
    largest, total = sum_of.largest, sum_of.total
    if not sum(largest[: policy.largest]) <= policy.share * total:
        return DOMINANCE
    rest = total - sum(largest[:2])
    # a sum without amounts tells that everybody's amount is 0
    if policy.p_percent and not (rest >= policy.p_percent / 100 * largest[0] and total > 0):
        return P_PERCENT
    return ""
