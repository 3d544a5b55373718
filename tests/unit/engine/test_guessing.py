"""What SQL of one database can name of another one's in the same process: nothing that it could guess."""

from __future__ import annotations

from itertools import pairwise

import duckdb_anon
from duckdb_anon.engine import input_scan


def test_databases_and_what_is_held_have_numbers_that_nobody_guesses() -> None:
    databases = [duckdb_anon.connect() for _ in range(4)]
    numbers = [con.execute("select _anon_instance()").fetchall()[0][0] for con in databases]
    numbers += [input_scan.put((0, connection, 1), "rows") for connection in range(4)]
    assert len(set(numbers)) == 8
    assert max(abs(one - other) for one, other in pairwise(numbers)) > 2**40
    assert all(one > 2**30 for one in numbers)
    for number in numbers[4:]:
        input_scan.pop(number)
