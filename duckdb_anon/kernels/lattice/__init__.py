"""Full-domain generalization: the lattice of levels, searched for the nodes that satisfy a requirement."""

from duckdb_anon.kernels.lattice.choose import cheapest, failing_rows
from duckdb_anon.kernels.lattice.frequency import Counter
from duckdb_anon.kernels.lattice.levels import Generalizations, ladder_of
from duckdb_anon.kernels.lattice.search import minimal_nodes, most_nodes, valid_nodes

__all__ = [
    "Counter",
    "Generalizations",
    "cheapest",
    "failing_rows",
    "ladder_of",
    "minimal_nodes",
    "most_nodes",
    "valid_nodes",
]
