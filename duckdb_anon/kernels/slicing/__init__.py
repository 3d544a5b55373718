"""Slicing a table: columns of related attributes, buckets of rows, and what may be said about both."""
