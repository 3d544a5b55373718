"""The command line's shells: a plain one that needs nothing, and a better one with the `shell` extra."""
