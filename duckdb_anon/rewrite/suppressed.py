"""Suppressed: a constant column `suppressed` says how many original rows were left out.

Nothing is known of them, so they are taken to be like the released rows: each of n released rows stands for
1 + suppressed / n. They are the unusual ones in truth. A COUNT has hard bounds all the same: none or all of them
count.
"""

from __future__ import annotations

from duckdb_anon.rewrite.reading import Reading, field_of_row


def claim(reading: Reading) -> None:
    """Claim `suppressed`."""
    if reading.take("suppressed") is not None:
        rows = f"(select count(*) from {reading.release.sql})"
        reading.weights.append(f"(1 + {field_of_row('suppressed')} / {rows})")
        reading.missing = f"(select max(suppressed) from {reading.release.sql})"
        reading.complete = False
