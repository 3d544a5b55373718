"""Optimal channels: least estimation error under a bound on the disclosure risk.

Minimize F = prod_i (1 + (d_i - 1) / a_i^2), a_i the gain of channel i, subject to risk <= limit = 1/l (Guo, Ying and Wu
2011, Problem 1 and Result 2). F is, up to constants, the expected squared error of the estimated cell shares. The risk
never falls when a gain grows (Property 1), so one free attribute is found by bisection. Several are found by sequential
quadratic programming on the logarithms of the gains, from several starts on the boundary of the feasible set; every
candidate is then pulled back until the whole table is within the limit and pushed out along each attribute. The problem
is not convex: the best candidate is returned, never worse than randomizing one part alone. No random numbers are drawn.

Departures: several sensitive attributes share the QI channels and each is bound by the limit; `target` 'mean' bounds
the mean risk of the records, and `min_count` leaves out records in smaller QI cells (the paper reports parameters for
randomizing S alone on tables where its own risk cannot go below 1). Cost: some hundred evaluations of the risk.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel
from duckdb_anon.kernels.randomized_response.risk import RiskModel, require_dense
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import RequirementError

Scope = Literal["both", "qi", "sensitive"]
Target = Literal["max", "mean"]
SLACK = 1e-9
PRECISION = 1e-12
"""Absolute precision of gains found by bisection."""
STEP = 1e-9
"""Gains that cannot grow by this much stay as they are."""
FEW_STARTS_ABOVE = 10_000
"""QI cells beyond which only the most promising starts are tried."""
WATCHED, ROUNDS, TOLERANCE = 50, 8, 1e-9
LEAST_LOG_GAIN, LARGEST_LOG_GAIN = -12.0, -1e-9
"""The search stays strictly inside: at a gain of 1 the channel no longer says which values it could reach."""


@dataclass(frozen=True)
class Problem:
    """What is randomized, and the bound on the risk."""

    model: RiskModel  # the risk of the table
    limit: float  # largest risk allowed, 1 / l
    scope: Scope = "both"  # 'qi' and 'sensitive' leave the other part alone
    target: Target = "max"  # 'max' bounds every record's risk, 'mean' their mean
    min_count: int = 1  # records in QI cells with fewer rows are left out of the bound

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

    def risks(self, channels: Sequence[RetentionChannel]) -> list[FloatArray]:
        """Return the risk of each occupied pair, one array per sensitive attribute."""
        return self.model.risks(channels[: self.qi_count], channels[self.qi_count :])

    def mean_risks(self, channels: Sequence[RetentionChannel]) -> FloatArray:
        """Return the mean risk of the records covered, one per sensitive attribute that has some."""
        parts = zip(self.risks(channels), self.included(), self.model.tables, strict=True)
        return np.array([np.average(r[c], weights=t.pair_count[c]) for r, c, t in parts if c.any()])

    def bounded_risk(self, channels: Sequence[RetentionChannel]) -> float:
        """Return the figure compared with the limit: the largest or mean risk of the records covered."""
        if self.target == "mean":
            return float(self.mean_risks(channels).max(initial=0.0))
        covered = np.concatenate(self.included())
        return float(np.concatenate(self.risks(channels))[covered].max(initial=0.0))

    def feasible(self, gains: FloatArray) -> bool:
        """Whether the risk stays within the limit for these gains of the free attributes."""
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
        advice = "Lower l."
        if self.scope == "sensitive":
            advice = (
                "Randomize the QI as well (scope := 'both' or 'qi'), bin the QI (bins := ...), leave small cells out"
                " of the bound (min_count := ...), or bound the mean risk (target := 'mean')."
            )
        reach = f"the smallest reachable risk is {floor:.6g}, that is l below {max(1.0, 1.0 / floor):.6g}"
        raise RequirementError(
            f"{function}: l := {1.0 / self.limit:g} cannot be met with scope := '{self.scope}': {self._cause()};"
            f" {reach}. {advice}"
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


def optimal_channels(problem: Problem, function: str) -> tuple[RetentionChannel, ...]:
    """Return the channels of least expected squared error whose risk is within the limit, QI attributes first."""
    gains = np.ones(len(problem.free))
    if not problem.feasible(gains):
        problem.require_feasible(function)
        gains = min((pull_back(problem, g) for g in _candidates(problem)), key=problem.objective)
        gains = push_out(problem, gains)
    channels = tuple(problem.channels(gains))
    if problem.bounded_risk(channels) > problem.limit:
        raise RequirementError(
            f"{function}: no channels were found with a risk of at most {problem.limit:.6g}; lower l"
        )
    return channels


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
        yield np.array([found[i].gain for i in problem.free])


def largest(fits: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest x in [low, high] with fits(x), by bisection; fits must hold at `low`."""
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


def descend(problem: Problem, start: FloatArray) -> FloatArray:
    """Return gains of a local optimum near `start` (in (0, 1]), feasible up to rounding.

    Only the riskiest pairs are constraints; pairs violated afterwards are added and the run is repeated.
    """
    point = np.clip(np.log(start), LEAST_LOG_GAIN, LARGEST_LOG_GAIN)
    watched = _riskiest(problem, point)
    for _ in range(ROUNDS):
        point = _solve(problem, point, watched)
        fresh = np.setdiff1d(_riskiest(problem, point), watched)
        within = problem.bounded_risk(problem.channels(np.exp(point))) <= problem.limit * (1.0 + TOLERANCE)
        if within or not len(fresh) or problem.target == "mean":
            break
        watched = np.union1d(watched, fresh)
    return np.asarray(np.exp(point), dtype=np.float64)


def _solve(problem: Problem, point: FloatArray, watched: IntArray) -> FloatArray:
    sizes = np.array([problem.sizes[i] for i in problem.free], dtype=np.float64)

    def objective(y: FloatArray) -> tuple[float, FloatArray]:
        odds = (sizes - 1.0) * np.exp(-2.0 * y)
        return float(np.log1p(odds).sum()), -2.0 * odds / (1.0 + odds)

    # importing the solver takes longer than opening a database, and most calls never need it
    from scipy.optimize import minimize

    with warnings.catch_warnings():
        # SciPy up to 1.15 warns of a step it has put back inside the bounds; the result is clipped and repaired anyway
        warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
        found = minimize(
            objective,
            point,
            jac=True,
            method="SLSQP",
            bounds=[(LEAST_LOG_GAIN, LARGEST_LOG_GAIN)] * len(point),
            constraints={"type": "ineq", "fun": lambda y: _log_slack(problem, y, watched)},
            options={"maxiter": 200, "ftol": 1e-12},
        )
    moved = np.clip(found.x, LEAST_LOG_GAIN, LARGEST_LOG_GAIN)
    return moved if np.isfinite(moved).all() else point


def _riskiest(problem: Problem, point: FloatArray) -> IntArray:
    """Return the positions, over all sensitive attributes' pairs, of the riskiest pairs the bound covers."""
    risks = np.concatenate(problem.risks(problem.channels(np.exp(point))))
    flat = np.where(np.concatenate(problem.included()), risks, -1.0)
    if problem.target == "mean":
        return np.flatnonzero(flat >= 0)
    count = min(WATCHED, int((flat >= 0).sum()))
    return np.sort(np.argpartition(-flat, count - 1)[:count]) if count else np.empty(0, dtype=np.int64)


def _log_slack(problem: Problem, point: FloatArray, watched: IntArray) -> FloatArray:
    """log(limit) - log(risk) of the watched pairs; with target 'mean', of the mean risk of each sensitive attribute."""
    channels = problem.channels(np.exp(point))
    mean = problem.target == "mean"
    risk = problem.mean_risks(channels) if mean else np.concatenate(problem.risks(channels))[watched]
    return np.asarray(np.log(problem.limit) - np.log(risk), dtype=np.float64)
