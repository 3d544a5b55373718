"""Rows in as codes, results out as columns."""
