"""Several tables of the same individuals, released together: they still join, and the joined record is protected."""
