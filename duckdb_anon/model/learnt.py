"""What the writer of a query and the functions it calls agree on: how the values of cells are spread."""

from __future__ import annotations

from typing import Literal

Spread = Literal["learnt", "uniform"]
"""How the rows of a generalized cell are spread over its values: by shares learnt from all cells of the column, by
functions of this package; or evenly, in plain SQL that runs anywhere."""

MOST_LISTED = 1_000_000
"""A box of more values is not listed value by value."""

MOST_COLUMNS = 8
"""Of more randomized and other columns together nothing is learnt."""

NOISE = 0.5
"""A count of randomized columns whose standard error is a greater share of what its columns together tell gives way to
that."""
