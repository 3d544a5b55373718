"""Columns permuted inside groups, the tables such permutations are draws from, and repair of what is cut apart."""

from duckdb_anon.kernels.permutation.marginal_repair import repaired
from duckdb_anon.kernels.permutation.uniform import uniform_cover
from duckdb_anon.kernels.permutation.within import permuted, rows_by_group, shown

__all__ = ["permuted", "repaired", "rows_by_group", "shown", "uniform_cover"]
