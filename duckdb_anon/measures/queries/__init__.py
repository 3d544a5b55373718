"""The original question asked of a release: one query, a cube, a random workload."""
