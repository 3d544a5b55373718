"""The loss to expect of a part that will be cut further: what the loss-guided cut compares cuts by.

A part of n rows whose groups need k rows can become n // k groups, and more groups of the same box lose
less: its expected loss is n * width * (n // k) ** -e, width being the sum over the attributes of the
normalized certainty penalty (Xu et al. 2006). This keeps a cut from leaving a part of 2k - 1 rows where one
of k would do. With e too large, cutting off k rows would look better than halving the widest attribute, and
partitions would take n / k levels: halving multiplies the loss by 2 ** e * (1 - s / 2), s being the share of
the widest attribute in the width, so e stays below -log2(1 - s / 2). Within that, e = .15 was chosen on two
tables of seven attributes; between .12 and .20 the loss differs by less than 2%. Cost: constant per part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.model.table import FloatArray, IntArray

_EXPONENT = 0.15
_MARGIN = 0.9


@dataclass(frozen=True)
class Outlook:
    """What to expect of the parts of each group.

    Attributes:
        min_size: fewest rows of a group.
        exponent: how fast the loss falls with further cuts, for each group.
    """

    min_size: int
    exponent: FloatArray

    @staticmethod
    def of(widths: FloatArray, min_size: int) -> Outlook:
        """Look at groups.

        Args:
            widths: width of each group on each attribute, shape (attributes, groups).
            min_size: fewest rows of a group.

        >>> Outlook.of(np.array([[1.0, 0.1], [0.0, 0.9]]), 10).exponent.round(2).tolist()
        [0.15, 0.15]
        >>> Outlook.of(np.full((20, 1), 1.0), 10).exponent.round(3).tolist()
        [0.033]
        """
        total = widths.sum(axis=0)
        widest = np.where(total > 0, widths.max(axis=0), 1.0) / np.where(total > 0, total, 1.0)
        return Outlook(min_size, np.minimum(_EXPONENT, -_MARGIN * np.log2(1 - widest / 2)))

    def loss(self, group: IntArray, rows: NDArray[Any], width: FloatArray) -> FloatArray:
        """Return the expected loss of parts.

        Args:
            group: the group each part is cut from.
            rows: number of rows of each part.
            width: sum of its widths over the attributes.

        >>> outlook = Outlook(10, np.array([0.15]))
        >>> outlook.loss(np.zeros(3, dtype=int), np.array([10, 19, 20]), np.ones(3)).round(2).tolist()
        [10.0, 19.0, 18.03]
        """
        loss: FloatArray = rows * width * np.maximum(rows // self.min_size, 1) ** -self.exponent[group]
        return loss
