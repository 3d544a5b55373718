"""Optimal channels: the search behind rr_distort and rr_parameters.

One free attribute: bisection, the risk being monotone. Several: sequential quadratic programming on the
logarithms of the gains, from several starts on the boundary of the feasible set, with the riskiest pairs as
constraints (more are added while any is violated). Every candidate is then pulled back until the risk of the
whole table is within the limit and pushed out along each attribute while it stays so. The problem is not
convex: the best candidate is returned, and randomizing both parts is never worse than the better of the two,
which are among the starts. Deterministic: no random numbers are drawn.

Paper: Guo, Ying and Wu 2011, section IV.B. Cost: some hundred evaluations of the risk (see risk.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel
from duckdb_anon.kernels.randomized_response.descent import descend
from duckdb_anon.kernels.randomized_response.problem import Problem
from duckdb_anon.model.coded_table import FloatArray
from duckdb_anon.model.errors import RequirementError

PRECISION = 1e-12
"""Absolute precision of gains found by bisection."""
STEP = 1e-9
"""Gains that cannot grow by this much are left where they are."""
FEW_STARTS_ABOVE = 10_000
"""QI cells beyond which only the most promising starts are tried."""


@dataclass(frozen=True)
class Solution:
    """Channels that meet the bound.

    Attributes:
        channels: one per attribute, QI attributes first, then sensitive ones.
        risk: the bounded risk of the table at these channels, at most the limit.
        norm: F over all attributes (an attribute left alone contributes its domain size).
        excluded: share of records outside the bound.
    """

    channels: tuple[RetentionChannel, ...]
    risk: float
    norm: float
    excluded: float


def optimal_channels(problem: Problem, function: str) -> Solution:
    """Return the channels of least expected squared error whose risk is within the limit.

    Args:
        problem: what is randomized and the bound.
        function: SQL function named in errors.

    Raises:
        RequirementError: no channels meet the bound; the message says why and what would.
        ParameterError: the QI domains are too large to be held as an array.
    """
    count = len(problem.free)
    gains = np.ones(count)
    if not problem.feasible(gains):
        problem.require_feasible(function)
        gains = min((pull_back(problem, g) for g in _candidates(problem)), key=problem.objective)
        gains = push_out(problem, gains)
    channels = tuple(problem.channels(gains))
    risk = problem.bounded_risk(channels)
    if risk > problem.limit:
        raise RequirementError(
            f"{function}: no channels were found with a risk of at most {problem.limit:.6g}; lower l"
        )
    norm = float(np.prod([c.inverse_norm for c in channels]))
    return Solution(channels, risk, norm, problem.excluded_share())


def _candidates(problem: Problem) -> Iterator[FloatArray]:
    """Yield gains to be pulled back and pushed out: every start, and where descent leads from it."""
    for start in _starts(problem):
        yield start
        if len(problem.free) > 1:
            yield descend(problem, start)


def _starts(problem: Problem) -> Iterator[FloatArray]:
    """Yield boundary points: all gains equal, one part or one attribute leading, and spread directions."""
    count = len(problem.free)
    yield ray(problem, np.ones(count))
    if count == 1:
        return
    if problem.scope == "both":
        yield from _single_part_optima(problem)
    large = float(np.prod(problem.sizes[: problem.qi_count])) > FEW_STARTS_ABOVE
    if large and problem.scope != "sensitive":
        return
    for lead in range(count):
        yield ray(problem, np.where(np.arange(count) == lead, 1.0, 0.02))
    # fractional parts of multiples of sqrt(2), sqrt(3), sqrt(5), ... fill the unit cube evenly
    steps = np.sqrt(np.array([k for k in range(2, 12 * count + 2) if round(k**0.5) ** 2 != k][:count]))
    for turn in range(1, 5):
        yield ray(problem, 0.05 + 0.95 * ((turn * steps) % 1.0))


def _single_part_optima(problem: Problem) -> Iterator[FloatArray]:
    """Yield the optima of randomizing the QI only and the sensitive attributes only, where they exist."""
    for scope in ("qi", "sensitive"):
        part = replace(problem, scope=scope)
        if not part.free or part.floor() > part.limit * 0.999:
            continue
        found = optimal_channels(part, "")
        yield np.array([found.channels[i].gain for i in problem.free])


def largest(fits: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest x in [low, high] with fits(x), which must hold at `low` and fail above some x.

    Args:
        fits: true below some point, false above it.
        low: a number where it is true.
        high: end of the search.
    """
    if fits(high):
        return high
    while high - low > PRECISION:
        middle = 0.5 * (low + high)
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def ray(problem: Problem, direction: FloatArray) -> FloatArray:
    """Return the feasible gains exp(-t * direction) of smallest t >= 0; `direction` is positive."""
    reach = 0.1
    while not problem.feasible(np.exp(-reach * direction)):
        reach *= 2.0
    return np.exp(largest(lambda t: problem.feasible(np.exp(t * direction)), -reach, 0.0) * direction)


def pull_back(problem: Problem, gains: FloatArray) -> FloatArray:
    """Return `gains` times the largest common factor up to 1 that is feasible."""
    if problem.feasible(gains):
        return gains
    low = 0.5
    while not problem.feasible(low * gains):
        low *= 0.5
    return gains * largest(lambda factor: problem.feasible(factor * gains), low, 1.0)


def push_out(problem: Problem, gains: FloatArray) -> FloatArray:
    """Return `gains` with each in turn raised as far as the bound allows."""
    best = gains.copy()
    for position in range(len(best)):

        def fits(gain: float, position: int = position) -> bool:
            trial = best.copy()
            trial[position] = gain
            return problem.feasible(trial)

        gain = float(best[position])
        # after a good descent no gain can grow: one evaluation shows it
        if fits(min(1.0, gain + STEP)):
            best[position] = largest(fits, gain, 1.0)
    return best
