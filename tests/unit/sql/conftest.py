"""A plain DuckDB connection with the macros of `sql/`, as the stock shell would read them."""

from pathlib import Path

import duckdb
import pytest

SQL = Path(__file__).resolve().parents[3] / "sql"


@pytest.fixture(scope="session")
def macros():
    with duckdb.connect() as connection:
        for file in ("risk.sql", "utility.sql", "risk_of_persons.sql"):
            connection.execute((SQL / file).read_text())
        yield connection


@pytest.fixture
def plain(macros):
    """Without the tables of the test before."""
    yield macros
    for (name,) in macros.execute("select table_name from duckdb_tables()").fetchall():
        macros.execute(f'drop table "{name}"')
