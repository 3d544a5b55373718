"""Buckets of records whose sensitive values all differ."""

from duckdb_anon.buckets.anatomize import anatomize, largest_l

__all__ = ["anatomize", "largest_l"]
