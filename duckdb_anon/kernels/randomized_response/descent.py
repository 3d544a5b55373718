"""One run of sequential quadratic programming on the gains of the channels.

Variables are the logarithms of the gains: the objective is convex in them and the logarithm of the risk
nearly linear. Only the riskiest pairs are constraints; pairs found violated afterwards are added and the run
is repeated. The result may still be slightly infeasible; the caller repairs it.
"""

from __future__ import annotations

import warnings

import numpy as np

from duckdb_anon.kernels.randomized_response.problem import Problem
from duckdb_anon.kernels.randomized_response.sensitivity import rec_qi_gradient, rec_sensitive_gradient
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.progress import tick

WATCHED = 50
ROUNDS = 8
TOLERANCE = 1e-9
LEAST_LOG_GAIN = -12.0
LARGEST_LOG_GAIN = -1e-9
"""Derivatives are taken strictly inside: at a gain of 1 the channel forgets which values it could reach."""


def descend(problem: Problem, start: FloatArray) -> FloatArray:
    """Return gains of a local optimum near `start`, feasible up to rounding.

    Args:
        problem: objective, free attributes and bound.
        start: gains of the free attributes, shape (free,), in (0, 1].
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
    last: dict[bytes, tuple[FloatArray, FloatArray]] = {}

    def objective(y: FloatArray) -> tuple[float, FloatArray]:
        odds = (sizes - 1.0) * np.exp(-2.0 * y)
        return float(np.log1p(odds).sum()), -2.0 * odds / (1.0 + odds)

    def slack(y: FloatArray) -> tuple[FloatArray, FloatArray]:
        key = y.tobytes()
        if key not in last:
            last.clear()
            last[key] = log_slack(problem, y, watched)
        return last[key]

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
            constraints={"type": "ineq", "fun": lambda y: slack(y)[0], "jac": lambda y: slack(y)[1]},
            options={"maxiter": 200, "ftol": 1e-12},
        )
    moved = np.clip(found.x, LEAST_LOG_GAIN, LARGEST_LOG_GAIN)
    return moved if np.isfinite(moved).all() else point


def _riskiest(problem: Problem, point: FloatArray) -> IntArray:
    """Return the positions, over all sensitive attributes' pairs, of the riskiest pairs the bound covers."""
    channels = problem.channels(np.exp(point))
    risks = problem.model.risks(channels[: problem.qi_count], channels[problem.qi_count :])
    flat = np.where(np.concatenate(problem.included()), np.concatenate(risks), -1.0)
    if problem.target == "mean":
        return np.flatnonzero(flat >= 0)
    count = min(WATCHED, int((flat >= 0).sum()))
    return np.sort(np.argpartition(-flat, count - 1)[:count]) if count else np.empty(0, dtype=np.int64)


def log_slack(problem: Problem, point: FloatArray, watched: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return log(limit) - log(risk) of the watched pairs and its derivative by the log gains.

    With target 'mean' there is one such figure per sensitive attribute, of the mean risk.

    Args:
        problem: what is minimised under which bounds.
        point: log gain of each free channel, shape (free,).
        watched: numbers of the pairs that are looked at.
    """
    tick()
    channels = problem.channels(np.exp(point))
    column = {attribute: place for place, attribute in enumerate(problem.free)}
    values, slopes, first = [], [], 0
    for number, table in enumerate(problem.model.tables):
        mine = watched[(watched >= first) & (watched < first + len(table.pair_count))] - first
        first += len(table.pair_count)
        if not len(mine):
            continue
        cells = table.pair_cell[mine]
        risk = table.conditional[mine].copy()
        slope = np.zeros((len(mine), len(point)))
        if problem.scope != "sensitive":
            rec, by_axis = rec_qi_gradient(table, channels[: problem.qi_count], cells)
            risk *= rec
            for axis, change in by_axis.items():
                slope[:, column[axis]] = change / rec * channels[axis].gain
        own = problem.qi_count + number
        if own in column:
            rec, change = (part[mine] for part in rec_sensitive_gradient(problem.model, table, channels[own]))
            risk *= rec
            slope[:, column[own]] = change / rec * channels[own].gain
        if problem.target == "mean":
            weight = table.pair_count[mine] / table.pair_count[mine].sum()
            mean = float(weight @ risk)
            slope = ((weight * risk) @ slope / mean)[None, :]
            risk = np.array([mean])
        values.append(np.log(problem.limit) - np.log(risk))
        slopes.append(-slope)
    return np.concatenate(values), np.concatenate(slopes)
