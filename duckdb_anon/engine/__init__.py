"""The only code that talks to DuckDB: names, roles, coding, decoding, planning and running."""
