"""Anonymization workbench inside DuckDB: protect a table, attack it, and ask what an analyst loses, in SQL."""

from duckdb_anon.database.release import release_database
from duckdb_anon.database.risk import database_risk
from duckdb_anon.gate.files import write_parquet
from duckdb_anon.model.errors import AnonError, AnonWarning, ColumnError, ParameterError, RequirementError, RewriteError
from duckdb_anon.model.version import __version__
from duckdb_anon.release_api import release
from duckdb_anon.sql_functions import connect, load

__all__ = [
    "AnonError",
    "AnonWarning",
    "ColumnError",
    "ParameterError",
    "RequirementError",
    "RewriteError",
    "__version__",
    "connect",
    "database_risk",
    "load",
    "release",
    "release_database",
    "write_parquet",
]  # fmt: skip
