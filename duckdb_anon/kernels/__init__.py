"""Algorithms: arrays of codes in, arrays out. Nothing here knows SQL, names of columns or DuckDB."""
