"""What measures must say of the tiny releases, worked out by plain loops over their printed rows."""
