"""Programs that are killed at one of their statements."""

PREAMBLE = """
import os, signal, sys, duckdb, duckdb_anon
point, seen = int(sys.argv[1]), [0]

def counted(function):
    def call(*given, **named):
        seen[0] += 1
        if seen[0] == point:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **named)
    return call

def count():
    duckdb.DuckDBPyConnection.execute, os.replace = map(counted, (duckdb.DuckDBPyConnection.execute, os.replace))

"""
"""Starts a program whose first argument is the number of the statement or move, counted from `count()` on, at which it
is killed; 0 for none. `seen[0]` is how many there were."""
