"""What the three criteria of WP29 share: tables as numbers, predicates and nearest rows, rates with their intervals.

Each criterion is attacked on the original's persons (attack), with random guesses (baseline), and on persons who are
not in it (control, from `holdout`); risk = (attack - control) / (1 - control), what the release tells of those in it.
Source: Article 29 Working Party, Opinion 05/2014; Giomi, Boenisch, Wehmeyer and Tasnadi (2023), PETS, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from duckdb_anon.measures.cells import comparable
from duckdb_anon.measures.released_rows import require_columns
from duckdb_anon.measures.risk.attacks import wilson
from duckdb_anon.model.coded_table import FloatArray
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, listed, nearest
from duckdb_anon.model.function_specs import Parameter, Report, fields
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_table import BoolArray, ReadTable

PAPER = "Article 29 Working Party, Opinion 05/2014; Giomi et al. (2023), PETS, section 4"
BOXES = "boxes are taken at their middle, sets and nodes at their most frequent value"
RETURNS = fields(
    "criterion VARCHAR, attack DOUBLE, attack_low DOUBLE, attack_high DOUBLE, baseline DOUBLE, "
    "control DOUBLE OR NULL, risk DOUBLE, risk_low DOUBLE, risk_high DOUBLE, attacks BIGINT, note VARCHAR"
)
Criterion = partial(
    Report, paper=PAPER, section="Risk", returns=RETURNS, tables=("original", "release"), optional=("holdout",),
    answers=("rows", "boxes", "buckets", "sliced", "randomized", "sampled", "suppressed", "retained"), reads="tables",
)  # fmt: skip
"""Entry of a criterion."""
HOLDOUT = Parameter("holdout", "table of individuals who are not in the original, for the control", "text")
ATTACKS = Parameter("attacks", "number of attacks", "integer", 2000, low=1)


@dataclass(frozen=True)
class Numbers:
    """A table as numbers.

    Attributes:
        names: its columns.
        values: places on the line of ordered columns, codes of the others, shape (columns, rows).
        nominal: columns without order, shape (columns,).
        span: range of each ordered column over all tables, 1 where it is 0, shape (columns,).
    """

    names: list[str]
    values: FloatArray
    nominal: BoolArray
    span: FloatArray

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[1])

    def only(self, names: Sequence[str]) -> Numbers:
        """Some of its columns."""
        at = [self.names.index(name) for name in names]
        return Numbers(list(names), np.ascontiguousarray(self.values[at]), self.nominal[at], self.span[at])


def numbers(function: str, read: Mapping[str, ReadTable], which: str, names: Sequence[str]) -> tuple[Numbers, bool]:
    """Read columns as numbers; tell whether some were boxes.

    `which`: one of these.
    """
    table = read[which]
    require_columns(function, table, names)
    if not table.rows:
        raise RequirementError(f"{function}: the {which} is empty, so there is no record to attack")
    if table.counted:
        raise ColumnError(f"{function}: the release holds noisy counts; this attack needs one row per record")
    values, boxes = [], False
    for name in names:
        cells = comparable(table.columns[name])
        values.append(cells.middles()[cells.of_row])
        boxes |= not cells.plain
    domains = [table.columns[name].domain for name in names]
    nominal = np.array([d.kind != "ordered" for d in domains])
    span = np.array([d.span or 1.0 for d in domains])
    return Numbers(list(names), np.ascontiguousarray(np.stack(values)), nominal, span), boxes


def columns_of(function: str, params: Mapping[str, Any], given: Sequence[str] | None, what: str) -> list[str]:
    """Columns a call names, checked; by default all quasi-identifiers and sensitive columns.

    `given`: names the call gives.
    `what`: what they are for, for messages.
    """
    roles = params["roles"]
    every = [info.name for info in roles.qi + roles.sensitive]
    if given is None:
        return every
    folded = {fold(name): name for name in every}
    for name in given:
        if fold(name) not in folded:
            raise ParameterError(f"{function}: {what} has '{name}'{nearest(name, every)}; there are {listed(every)}")
    return [folded[fold(name)] for name in given]


def of_rows(names: Sequence[str], release: ReadTable) -> tuple[list[str], str]:
    """Leave columns out of which a release shows no value beside a row; give the others, and what to say of it."""
    without = [name for name in names if name in release.columns and release.columns[name].counted]
    left_out = f"{', '.join(without)} left out: rows show counts of their bucket" if without else ""
    return [name for name in names if name not in without], left_out


def rates(
    criterion: str, attack: FloatArray, baseline: FloatArray, control: FloatArray | None, note: str
) -> dict[str, Any]:
    """One row of a criterion's answer, from the success of each attack, by chance, and on the holdout."""
    low, high = wilson(float(attack.sum()), len(attack))
    rate, (risk, risk_low, risk_high) = float(attack.mean()), residual(attack, control)
    return {
        "criterion": criterion, "attack": rate, "attack_low": low, "attack_high": high,
        "baseline": float(baseline.mean()) if len(baseline) else 0.0,
        "control": float(control.mean()) if control is not None and len(control) else np.nan,
        "risk": risk, "risk_low": risk_low, "risk_high": risk_high, "attacks": len(attack), "note": note,
    }  # fmt: skip


def residual(attack: FloatArray, control: FloatArray | None) -> tuple[float, float, float]:
    """Risk and its 95% interval, errors of both rates propagated; without a control the rate of the attack."""
    low, high = wilson(float(attack.sum()), len(attack))
    if control is None or not len(control):
        return float(attack.mean()), low, high
    below, above = wilson(float(control.sum()), len(control))
    a, b = (low + high) / 2, (below + above) / 2
    rest = max(1.0 - b, 1e-9)
    risk = (a - b) / rest
    half = float(np.hypot((high - low) / 2 / rest, (above - below) / 2 * (1 - a) / rest**2))
    return max(0.0, risk), max(0.0, risk - half), min(1.0, max(0.0, risk + half))


def answer(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns."""
    return {name: [row[name] for row in rows] for name in RETURNS}
