"""Full-domain generalization: the lattice of levels, searched for the node of least information loss."""
