"""Columns permuted inside groups, and calibration of the associations that this cuts."""

from duckdb_anon.kernels.permutation.marginal_calibration import repaired
from duckdb_anon.kernels.permutation.permute_within_groups import permuted, permuted_codes, rows_by_group

__all__ = ["permuted", "permuted_codes", "repaired", "rows_by_group"]
