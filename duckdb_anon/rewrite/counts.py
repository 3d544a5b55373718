"""Counts: a released row is a box with a `noisy_count` of the original rows in it.

Noise may make counts negative; they are summed as they are, which keeps sums unbiased. No hard bounds exist.
"""

from __future__ import annotations

from duckdb_anon.rewrite.reading import Reading, field_of_row


def claim(reading: Reading) -> None:
    """Claim `noisy_count`."""
    if reading.take("noisy_count") is not None:
        reading.weights.append(field_of_row("noisy_count"))
        reading.bounded = reading.complete = False
