"""A query as a tree: read, bound, its outputs and grouping sets; templates, spelling and layout of what is written."""
