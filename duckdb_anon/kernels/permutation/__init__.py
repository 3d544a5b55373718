"""Columns permuted inside groups, and calibration of the associations that this cuts."""

from duckdb_anon.kernels.permutation.marginal_calibration import repaired
from duckdb_anon.kernels.permutation.permute_within_groups import permuted, rows_by_group, shown

__all__ = ["permuted", "repaired", "rows_by_group", "shown"]
