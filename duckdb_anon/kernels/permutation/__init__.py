"""Columns permuted inside groups, the tables such permutations are draws from, and repair of what is cut apart."""

from duckdb_anon.kernels.permutation.marginal_calibration import repaired
from duckdb_anon.kernels.permutation.permute_within_groups import permuted, rows_by_group, shown
from duckdb_anon.kernels.permutation.uniform_tables import uniform_cover

__all__ = ["permuted", "repaired", "rows_by_group", "shown", "uniform_cover"]
