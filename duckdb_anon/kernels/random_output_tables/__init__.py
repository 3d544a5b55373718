"""Mutual cover (Li et al. 2020): random output tables that hide the records of a group behind one another."""

from duckdb_anon.kernels.random_output_tables.min_changed import randomize_unchanged
from duckdb_anon.kernels.random_output_tables.output_tables import Delta, MutualCover, cover, uniform_cover

__all__ = ["Delta", "MutualCover", "cover", "randomize_unchanged", "uniform_cover"]
