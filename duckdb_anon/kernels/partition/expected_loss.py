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

import math

from duckdb_anon.kernels.jit import compiled_in_place

_EXPONENT = 0.15
_MARGIN = 0.9


@compiled_in_place
def exponent_of(widest: float, total: float) -> float:
    """Return how fast the loss of a group's parts falls with further cuts.

    Args:
        widest: the group's width on its widest attribute.
        total: the sum of its widths over all attributes.

    >>> round(exponent_of(1.0, 1.1), 2), round(exponent_of(1.0, 20.0), 3)
    (0.15, 0.033)
    """
    if total <= 0:
        return _EXPONENT
    return min(_EXPONENT, -_MARGIN * math.log2(1 - widest / total / 2))


@compiled_in_place
def expected_loss(rows: int, width: float, exponent: float, min_size: int) -> float:
    """Return the expected loss of a part.

    Args:
        rows: number of rows of the part.
        width: sum of its widths over the attributes.
        exponent: that of the group it is cut from.
        min_size: fewest rows of a group.

    >>> [round(expected_loss(rows, 1.0, 0.15, 10), 2) for rows in (10, 19, 20)]
    [10.0, 19.0, 18.03]
    """
    groups = rows // min_size
    if groups < 2:
        return rows * width
    return rows * width * groups**-exponent
