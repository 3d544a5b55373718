"""Slicing: columns of related attributes, permuted independently inside buckets of rows."""
