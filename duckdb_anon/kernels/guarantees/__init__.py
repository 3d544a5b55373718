"""What a generalization promises about its equivalence classes, and checking that it keeps it."""

from duckdb_anon.kernels.guarantees.privacy_spec import (
    all_of,
    every_column,
    parameters_of_guarantee,
    refine,
    required_model,
)
from duckdb_anon.kernels.guarantees.verify_release import classes_of, recheck

__all__ = ["all_of", "classes_of", "every_column", "parameters_of_guarantee", "recheck", "refine", "required_model"]
