"""Releases with a seed, which `release()` refuses: for tests that repeat a draw."""

from typing import Any

import duckdb
import pytest

from duckdb_anon import release_api


def seeded_release(con: duckdb.DuckDBPyConnection, name: str, call: str, **options: Any) -> str:
    """`release()` of a call with a seed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_api, "_refuse_seed", lambda found: None)
        return release_api.release(con, name, call, **options)
