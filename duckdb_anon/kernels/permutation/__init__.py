"""Columns permuted inside groups, and calibration of the associations that this cuts."""
