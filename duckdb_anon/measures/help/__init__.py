"""Help: the list of functions, made-up data, views of releases."""
