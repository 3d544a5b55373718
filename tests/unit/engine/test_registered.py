"""What DuckDB calls of ours, and what the numbers beside a release may be."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import duckdb_anon
from duckdb_anon import functions


class Registering:
    """A connection that notes what is registered on it."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}

    def execute(self, statement: str) -> None:
        raise duckdb.CatalogException(statement)

    def create_function(self, name: str, function: Any, *_: Any, **options: Any) -> None:
        self.made[name] = (function, options)


def test_every_function_that_answers_with_arrays_owns_them() -> None:
    # a thread of DuckDB's that drops a numpy array's memory waits for the GIL, perhaps for ever
    con = Registering()
    number = functions._instance_number(con)  # type: ignore[arg-type]
    functions._CONNECTIONS.pop(number)
    arrays = {name: function for name, (function, options) in con.made.items() if options}
    assert set(con.made) - set(arrays) == {"_anon_instance"}
    assert len(arrays) > 10
    for name, function in arrays.items():
        assert function.__code__.co_qualname == "_register.<locals>.owning", name


def test_what_is_registered_returns_a_copy_in_memory_of_arrow() -> None:
    con = Registering()
    held = pa.array(np.arange(5.0))
    functions._register(con, "f", lambda column: column, "DOUBLE")  # type: ignore[arg-type]
    functions._KEEP.pop()
    found = con.made["f"][0](held)
    assert found.equals(held)
    assert found.buffers()[1].address != held.buffers()[1].address


@pytest.mark.parametrize("rate", [0.0, -0.5, 1.5])
def test_a_rate_that_is_no_chance_is_refused_by_name(rate: float) -> None:
    con = duckdb_anon.connect()
    con.execute("create table people as select i % 5 as age, i % 3 as job from range(30) t(i)")
    con.execute(f"create table sample as select *, {rate}::double as sampling_rate from people")
    with pytest.raises(
        duckdb.Error, match=r"column sampling_rate of the release is the chance .* above 0 and at most 1"
    ):
        con.execute("from distribution_distance('people', 'sample', columns := ['age'])").fetchall()


def test_rows_that_weigh_nothing_have_no_distribution() -> None:
    con = duckdb_anon.connect()
    con.execute("create table people as select i % 5 as age, i % 3 as job from range(30) t(i)")
    for count in ("0.0", "-2.0"):
        con.execute(
            "create or replace table counts as select distinct {lower: age, upper: age} as age, "
            f"{count}::double as noisy_count from people"
        )
        with pytest.raises(duckdb.Error, match="rows of the original in all, so they have no distribution"):
            con.execute("from distribution_distance('people', 'counts', columns := ['age'], qi := ['age'])").fetchall()
