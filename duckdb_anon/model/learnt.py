"""What the writer of a query and the functions it calls agree on: how the values of cells are spread."""

from __future__ import annotations

from typing import Literal

Spread = Literal["learnt", "uniform"]
"""How the records of a generalized cell are spread over its values: by shares learnt from all cells of the column, or
evenly."""

MOST_COLUMNS = 8
"""Of more randomized and other columns together nothing is learnt."""

NOISE = 0.5
"""A count of randomized columns whose standard error is a greater share of what its columns together tell gives way to
that."""
