"""Mutual cover (Li et al. 2020): random output tables that hide the records of a group behind one another."""
