"""Cells of a randomized column: what share of an original row each released value stands for.

The share of a released value a under a predicate f is (P^-1 f)(a) = own * f(a) + other * sum f. Shares may be
negative or above 1; their sums over rows are unbiased (Guo, Ying and Wu 2011, section III.B). Cost: O(domain *
queries).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, inverse_terms
from duckdb_anon.model.coded_table import FloatArray
from duckdb_anon.model.release_table import BoolArray, Randomization


@dataclass(frozen=True)
class InvertedValues:
    """Released values of one randomized column, one cell a code of the common domain.

    Attributes:
        size: codes of the common domain.
        channel: how the column was randomized.
        values: what a value adds instead of 1, by code (SUM over this column); None for COUNT.
    """

    size: int
    channel: Randomization
    values: FloatArray | None = None

    def shares(self, matches: BoolArray, interval: bool) -> FloatArray:
        """Weight of each code in each query, shape (size, n).

        Args:
            matches: whether each query asks for each code, shape (n, size).
            interval: not used; a randomized value is no interval.
        """
        asked = matches.T.astype(np.float64)
        if self.values is not None:
            asked *= self.values[:, None]
        own, other = inverse_terms(RetentionChannel(len(self.channel.domain), self.channel.p))
        return np.asarray(own * asked + other * asked[self.channel.domain].sum(axis=0), dtype=np.float64)
