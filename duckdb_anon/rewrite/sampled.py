"""Sampled: a constant column `sampling_rate` says that each original row was kept with this probability.

Every released row then stands for 1 / rate original rows (Horvitz and Thompson 1952). No hard bounds exist; the
rows were drawn independently, so 95% intervals do (`bounds.sample_interval`).
"""

from __future__ import annotations

from duckdb_anon.rewrite.reading import Reading, field_of_row


def claim(reading: Reading) -> None:
    """Claim `sampling_rate`."""
    if reading.take("sampling_rate") is not None:
        reading.rate = field_of_row("sampling_rate")
        reading.weights.append(f"(1 / {reading.rate})")
        reading.complete = False
