"""The exponential mechanism, over lists and over the points of an interval.

The exponential mechanism (McSherry and Talwar 2007) picks a candidate with probability proportional to
exp(epsilon u / (2 Delta)); it is epsilon-differentially private when one record more or less changes every
score u by at most Delta. Scores are handled in log space. Noise and choices in floating point are not a
proof-grade mechanism. Cost: linear in the candidates.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.model.table import FloatArray


def choice_probabilities(scores: FloatArray, epsilon: float, sensitivity: float) -> FloatArray:
    """Probability of each candidate.

    Args:
        scores: score of each candidate, -inf for one that must not be picked.
        epsilon: budget of the choice.
        sensitivity: largest change of a score by one record.

    >>> choice_probabilities(np.array([55.0, 40.0]), 0.125, 1.0).round(5).tolist()
    [0.71859, 0.28141]
    """
    exponent = scores * (epsilon / (2 * sensitivity))
    weight = np.exp(exponent - exponent.max())
    probability: FloatArray = weight / weight.sum()
    return probability


def choose(scores: FloatArray, epsilon: float, sensitivity: float, rng: np.random.Generator) -> int:
    """Pick a candidate by the exponential mechanism; arguments as in `choice_probabilities`."""
    return int(rng.choice(len(scores), p=choice_probabilities(scores, epsilon, sensitivity)))


def choose_point(
    edges: FloatArray, scores: FloatArray, epsilon: float, sensitivity: float, rng: np.random.Generator
) -> float:
    """Pick a point of an interval whose score is constant on pieces.

    Args:
        edges: ends of the pieces, non-decreasing, shape (pieces + 1,); the interval has positive length.
        scores: score of each piece, shape (pieces,).
        epsilon: budget of the choice.
        sensitivity: largest change of a score by one record.
        rng: source of randomness.

    Returns:
        A point, uniform inside the piece that was picked. The density depends on the data through scores
        alone, so the pieces' ends (values of records) get no probability of their own.
    """
    length = np.diff(edges)
    with np.errstate(divide="ignore"):
        by_length = np.log(length) * (2 * sensitivity / epsilon)
    probability = choice_probabilities(scores + by_length, epsilon, sensitivity)
    piece = int(rng.choice(len(scores), p=probability))
    return float(edges[piece] + rng.random() * length[piece])
