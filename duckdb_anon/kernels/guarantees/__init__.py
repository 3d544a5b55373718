"""What a generalization promises about its equivalence classes, and checking that it keeps it."""

from duckdb_anon.kernels.guarantees.privacy_spec import asked, every_column, joined, parameters_of_guarantee, refine
from duckdb_anon.kernels.guarantees.verify_release import classes_of, recheck

__all__ = ["asked", "classes_of", "every_column", "joined", "parameters_of_guarantee", "recheck", "refine"]
