"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import duckdb_anon

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the real tables; a clone without them skips the tests that need them."""
    folder = Path(os.environ.get("ANON_SHARED_DATA", PROJECT.parent / "shared" / "data"))
    if not (folder / "census.csv").exists():
        pytest.skip("the real tables are not beside this checkout")
    return folder


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """An in-memory database with the package loaded."""
    connection = duckdb_anon.connect()
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def census(shared_data: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the labelled table census; tests must not change it."""
    connection = duckdb_anon.connect()
    connection.execute(f"create table census as from read_csv('{shared_data / 'census.csv'}')")
    for column in ("RELATE", "SEX", "AGE", "MARST", "RACE", "EDUC", "UHRSWORK"):
        connection.execute(f"comment on column census.{column} is 'anon: quasi'")
    connection.execute("comment on column census.INCWAGE is 'anon: sensitive'")
    yield connection
    connection.close()
