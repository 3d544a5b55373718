"""What a released row says of an original one: its weight, its exact columns, and its independent parts."""
