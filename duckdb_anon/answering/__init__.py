"""Queries that name an original, answered from its release: shared by BI tools and by the server."""
