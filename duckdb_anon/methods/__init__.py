"""Methods: one file each, a pure kernel and the `Method` entry that makes it a SQL function."""
