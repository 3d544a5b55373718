"""What a generalization promises about its equivalence classes, and checking that it keeps it."""
