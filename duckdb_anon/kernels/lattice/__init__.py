"""Full-domain generalization: the lattice of levels, searched for the node of least information loss."""

from duckdb_anon.kernels.lattice.frequency import FrequencySet
from duckdb_anon.kernels.lattice.levels import GeneralizationLevels, generalization_levels
from duckdb_anon.kernels.lattice.search import least_loss_node, necessary_condition, number_of_nodes

__all__ = [
    "FrequencySet",
    "GeneralizationLevels",
    "generalization_levels",
    "least_loss_node",
    "necessary_condition",
    "number_of_nodes",
]
