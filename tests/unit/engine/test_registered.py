"""What DuckDB calls of ours, and what the numbers beside a release may be."""

import gc
import sys
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import duckdb_anon
from duckdb_anon import sql_functions
from duckdb_anon.engine.arrow import owning
from duckdb_anon.engine.draws import imputation
from duckdb_anon.engine.transport import input_scan
from duckdb_anon.engine.transport.result_encoding import Result, take


class Registering:
    """A connection that notes what is registered on it."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}

    def execute(self, statement: str) -> None:
        raise duckdb.CatalogException(statement)

    def create_function(self, name: str, function: Any, *_: Any, **options: Any) -> None:
        self.made[name] = (function, options)


def test_every_function_that_answers_with_arrays_owns_them():
    # a thread of DuckDB's that drops a numpy array's memory waits for the GIL, perhaps for ever
    con = Registering()
    sql_functions._instance_number(con)  # type: ignore[arg-type]
    arrays = {name: function for name, (function, options) in con.made.items() if options}
    assert set(con.made) - set(arrays) == {"_anon_instance"}
    assert len(arrays) > 5
    for name, function in arrays.items():
        if name == "_anon_take" or name in imputation.LISTS:
            continue  # what they hand over was copied before, see below
        assert function.__code__.co_qualname == "owning.<locals>.copying", name


def test_databases_share_their_functions_and_are_forgotten():
    several = [Registering() for _ in range(3)]
    for one in several:
        sql_functions._instance_number(one)  # type: ignore[arg-type]
    made = [{name: function for name, (function, options) in one.made.items() if options} for one in several]
    assert all(one == made[0] for one in made)

    gc.collect()  # connections of other tests
    kept, known = len(sql_functions._KEEP), set(sql_functions._CONNECTIONS)
    for _ in range(5):
        con = duckdb_anon.connect()
        con.execute("from anon_functions() limit 1").fetchall()
        con.cursor().close()
        con.close()
        del con
    gc.collect()
    assert set(sql_functions._CONNECTIONS) <= known  # other tests' may have gone, too
    assert len(sql_functions._KEEP) == kept + 5  # one small one a database
    assert all(sys.getrefcount(function) > 2 for function in made[0].values())


def test_a_call_is_planned_on_the_database_it_came_from():
    databases = [duckdb_anon.connect() for _ in range(3)]
    for number, con in enumerate(databases):
        con.execute(f"create table people as select i % 4 as age, i % 3 as only_{number} from range(40) t(i)")
    for number, con in reversed([*enumerate(databases)]):
        found = con.execute(f"select * from mondrian('people', 4, qi := ['only_{number}'], keep := ['age'])")
        assert {name for name, *_ in found.description or ()} == {"age", f"only_{number}"}


def test_what_is_registered_returns_a_copy_in_memory_of_arrow():
    held = pa.array(np.arange(5.0))
    found = owning(lambda column: column)(held)
    assert found.equals(held)
    assert found.buffers()[1].address != held.buffers()[1].address


def test_rows_of_a_release_are_in_memory_of_arrow():
    codes, result = np.arange(100, dtype=np.int32), Result()
    result.rows.codes["a"] = codes
    number = result.to_arrow("f", 100, (0, 0, 1)).to_pylist()[0]["rows"]
    rows = take(pa.array([{"rows": number}]))
    sent = rows.field("codes").items.values
    assert sent.to_pylist() == codes.tolist()
    assert sent.buffers()[1].address != codes.ctypes.data


def test_rates_that_are_no_chance_and_rows_that_weigh_nothing_are_refused_by_name():
    con = duckdb_anon.connect()
    con.execute("create table people as select i % 5 as age, i % 3 as job from range(30) t(i)")
    boxes = "select distinct {lower: age, upper: age} as age"
    for rows, said in (
        ("select *, 1.5::double as sampling_rate", "sampling_rate of the release is the chance .* at most 1"),
        (f"{boxes}, 0.0::double as noisy_count", "rows of the original in all, so they have no distribution"),
        (f"{boxes}, -2.0::double as noisy_count", "rows of the original in all, so they have no distribution"),
    ):
        con.execute(f"create or replace table r as {rows} from people")
        with pytest.raises(duckdb.Error, match=said):
            con.execute("from distribution_distance('people', 'r', columns := ['age'], qi := ['age'])").fetchall()


def test_databases_and_what_is_held_have_numbers_that_nobody_guesses():
    databases = [duckdb_anon.connect() for _ in range(4)]
    numbers = [con.execute("select _anon_instance()").fetchall()[0][0] for con in databases]
    numbers += [input_scan.put((0, connection, 1), "rows") for connection in range(4)]
    assert len(set(numbers)) == 8
    assert max(abs(one - other) for one, other in pairwise(numbers)) > 2**40
    assert all(one > 2**30 for one in numbers)
    for number in numbers[4:]:
        input_scan.pop(number)
