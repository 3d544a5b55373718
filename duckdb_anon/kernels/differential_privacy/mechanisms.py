"""Discrete mechanisms from OpenDP, and a ledger of what they spend.

Counts get discrete Laplace noise (Ghosh, Roughgarden and Sundararajan 2009) and come out whole; choices are made by
report noisy max with exponential noise, which is permute-and-flip (McKenna and Sheldon 2020) and never worse than the
exponential mechanism. OpenDP samples both exactly:
floating-point Laplace noise on whole numbers rules candidates out by its low bits (Mironov 2012). Every use is put down
in a `Ledger` with the loss OpenDP proves for it, so that the privacy of a whole run is composed by code.
With a generator (calls with `seed`, for tests and studies) draws of the same distributions come from that instead;
they are repeatable and protect nothing. Cost: about 10 microseconds a count, 1 a candidate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ParameterError, RequirementError
from duckdb_anon.model.progress import tick

_PIECE = 8192
"""Counts that OpenDP is given at a time: between two pieces a call can be stopped."""


@dataclass
class Ledger:
    """What a run has spent, step by step; steps add up, uses on disjoint rows inside a step cost their maximum."""

    epsilon: float  # what may be spent: epsilon of pure differential privacy, or rho of zCDP
    steps: list[Fraction] = field(default_factory=list)  # loss of each step

    def spend(self, losses: list[float]) -> None:
        """Put down one step: mechanisms on disjoint rows, with the loss of each."""
        self.steps.append(max((Fraction(loss) for loss in losses), default=Fraction(0)))

    @property
    def spent(self) -> Fraction:
        """Loss of all steps by sequential composition, exactly."""
        return sum(self.steps, Fraction(0))

    def check(self, function: str) -> None:
        """Raise unless no more was spent than may be.

        >>> Ledger(1.0, [Fraction(1, 2), Fraction(1, 2)]).check('diffgen')
        """
        if self.spent > Fraction(self.epsilon):
            raise RequirementError(
                f"{function}: {float(self.spent)!r} was spent of a budget of {self.epsilon!r}; nothing is released. "
                "This is an error of the package, not of the call"
            )


@dataclass(frozen=True)
class Mechanisms:
    """The mechanisms of one run."""

    function: str  # SQL function, for messages
    # None draws from OpenDP's own cryptographic source; a generator imitates, without protection
    repeatable: np.random.Generator | None = None

    def counts(self, counts: IntArray, epsilon: float, changed: int = 1) -> tuple[IntArray, float]:
        """Counts with discrete Laplace noise, whole, and the loss.

        `changed`: by how much neighbouring tables may differ, summed over all counts.
        """
        dp = _opendp(self.function)
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
        made, loss = _fitted(lambda scale: dp.m.make_laplace(*space, scale=scale), changed, changed / epsilon, epsilon)
        if self.repeatable is not None:
            p = -np.expm1(-epsilon / changed)
            draw = self.repeatable.geometric
            return counts + draw(p, len(counts)) - draw(p, len(counts)), loss
        noisy = np.empty(len(counts), dtype=np.int64)
        for start in range(0, len(counts), _PIECE):
            tick()
            # noise is drawn count by count, so the pieces together are the mechanism on all counts
            noisy[start : start + _PIECE] = made(counts[start : start + _PIECE].tolist())
        return noisy, loss

    def gaussian(self, counts: IntArray, scale: float, changed: float) -> tuple[IntArray, float]:
        """Counts with discrete Gaussian noise (Canonne, Kamath and Steinke 2020), whole, and the loss in rho of zCDP.

        `changed`: largest Euclidean distance between the counts of neighbouring tables.
        """
        dp = _opendp(self.function)
        made = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64"), scale=scale)
        loss = float(made.map(float(changed)))
        if self.repeatable is not None:
            return counts + np.rint(self.repeatable.normal(0.0, scale, len(counts))).astype(np.int64), loss
        noisy = np.empty(len(counts), dtype=np.int64)
        for start in range(0, len(counts), _PIECE):
            tick()
            noisy[start : start + _PIECE] = made(counts[start : start + _PIECE].tolist())
        return noisy, loss

    def choose(self, scores: FloatArray, epsilon: float, sensitivity: float) -> tuple[int, float]:
        """Place of the largest score after noise of scale 2 sensitivity / epsilon, and the loss.

        `epsilon`: most that may be lost; `sensitivity`: largest change of any score between neighbouring tables.
        """
        dp = _opendp(self.function)
        space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.linf_distance(T="f64")
        made, loss = _fitted(
            lambda scale: dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale),
            float(sensitivity), 2 * sensitivity / epsilon, epsilon,
        )  # fmt: skip
        if self.repeatable is not None:
            noise = self.repeatable.exponential(2 * sensitivity / epsilon, len(scores))
            return int(np.argmax(scores + noise)), loss
        return int(made(scores.tolist())), loss


def _fitted(make: Any, distance: float, scale: float, epsilon: float) -> tuple[Any, float]:
    """A measurement of the smallest scale from `scale` on whose loss, rounded up by OpenDP, is within epsilon."""
    while True:
        made = make(scale)
        loss = float(made.map(distance))
        if loss <= epsilon:
            return made, loss
        scale *= 1 + 2.0**-50


@cache
def _loaded() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    return dp


def _opendp(function: str) -> Any:
    dp = _loaded()
    if dp is None:
        raise ParameterError(
            f"{function}: its noise comes from OpenDP, which is not installed; pip install 'duckdb-anon[dp]'"
        )
    return dp


def check_written(function: str, cells: int, entries: int, most: int, remedy: str) -> None:
    """Refuse to write more than `most`.

    `entries`: values in the lists of these rows; 0 where there are none; `remedy`: what to change in the call so that
    fewer are made, apart from `max_cells`.

    Raises:
        RequirementError: cells and entries together are more.
    """
    if cells + entries > most:
        lists = f" with lists of {entries} values in all" if entries else ""
        raise RequirementError(
            f"{function}: {cells} cells{lists} would be released, all of them with noise, and max_cells := {most}; "
            f"{remedy} or raise max_cells"
        )
