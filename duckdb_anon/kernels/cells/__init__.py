"""What published cells stand for: a line of the values of a column, and cells that are ranges or lists on it."""
