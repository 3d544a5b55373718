"""Releases of a table that lives: the register is read before a release and written with it."""
