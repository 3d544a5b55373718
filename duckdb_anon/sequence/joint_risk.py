"""What releases of one original in the register reveal together, for messages and reports.

Measured by `sequence_risk` on the releases with a key, where they have few enough rows to be measured at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from duckdb_anon.engine.records.register import Registered
from duckdb_anon.engine.sql_quoting import literal

_MOST_ROWS = 200_000
_TARGETS = 200


def joint_risk(
    con: duckdb.DuckDBPyConnection, original: str, releases: Sequence[Registered], roles: Mapping[str, Any]
) -> str:
    """The joint risk in words; '' where fewer than two releases have a key, or it cannot be measured at once."""
    followed = [release for release in releases if release.key]
    if len(followed) < 2 or sum(release.rows for release in followed) > _MOST_ROWS:
        return ""
    names = list(dict.fromkeys(release.name for release in followed))
    given = "".join(f", {name} := {literal(value)}" for name, value in roles.items())
    try:
        identity, attribute = con.execute(
            f"select identity, attribute from sequence_risk({literal(original)}, {literal(names)}{given}, "
            f"targets := {_TARGETS}, seed := 1) where release = 'together'"
        ).fetchall()[0]
    except duckdb.Error:
        return ""
    return f"re-identify {identity:.0%} of the records, and name {attribute:.0%} of sensitive values"
