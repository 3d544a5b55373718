"""Rows: columns with the original's types are the original's values; the query itself is the estimator.

Made by MuCo, and by any method for the columns it leaves alone. MuCo's randomness keeps expectations close
without being invertible, so its rows are read as they are (Li et al., MuCo, experiments on SUM queries).
"""

from __future__ import annotations

from duckdb_anon.rewrite.reading import Reading, field_of_row


def claim(reading: Reading) -> None:
    """Claim every column that the original has under the same name."""
    for name in list(reading.unclaimed):
        if reading.original_type(name):
            del reading.unclaimed[name]
            reading.exact[name.lower()] = field_of_row(name)
