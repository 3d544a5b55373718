"""What the columns of a table look like, and the role that follows."""
