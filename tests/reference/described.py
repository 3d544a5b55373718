"""Descriptions of tables that tests make by hand, as `duckdb_anon.release` writes them: only these have bounds."""

from __future__ import annotations

import duckdb

from duckdb_anon.engine.release_digest import release_digest, row_checksum
from duckdb_anon.model.release_comment import Description


def describe(
    con: duckdb.DuckDBPyConnection, release: str, original: str, method: str = "mondrian", persons: bool = False
) -> None:
    """Comment a table as a release of an original, with the digest of its rows."""
    digest = {"checksum": row_checksum(con, release), "digest": release_digest(con, release)}
    said = Description(original, method, {}, "2026-11-26", "1", persons, **digest)
    con.execute(f"comment on table {release} is '{said.comment()}'")
