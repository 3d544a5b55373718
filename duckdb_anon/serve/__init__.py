"""Publishing releases into a file of their own, and serving a database over Quack to stock DuckDB shells."""
