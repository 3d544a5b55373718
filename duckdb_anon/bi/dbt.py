"""A plugin of dbt-duckdb: every cursor of a dbt run knows the functions of the package.

In profiles.yml, `plugins: [{module: duckdb_anon.bi.dbt}]`. Labels are descriptions in schema.yml ('anon: quasi') that
`persist_docs` writes as comments. examples/dbt is a project with generic tests that fail the build.
"""

from __future__ import annotations

from typing import Any

from dbt.adapters.duckdb.plugins import BasePlugin

from duckdb_anon.sql_functions import load


class Plugin(BasePlugin):
    """What dbt-duckdb looks for in the module."""

    def configure_cursor(self, cursor: Any) -> None:
        """Load the functions on one cursor, which is a connection of its own to the project's database."""
        load(cursor)
