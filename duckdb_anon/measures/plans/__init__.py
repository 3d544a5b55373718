"""What a method would do to a table, before it does it."""
