"""Population uniqueness estimated from a sample, and special uniques."""
