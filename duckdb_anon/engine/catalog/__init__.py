"""Names, types, comments and roles of tables and columns: what is read before any row."""
