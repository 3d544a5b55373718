"""Rows as they come: narrowed, widened, and dropped with the statement that left them."""

from concurrent.futures import ThreadPoolExecutor

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from duckdb_anon.engine.transport import input_scan, result_encoding
from duckdb_anon.model.errors import RequirementError


@pytest.mark.campaign
@pytest.mark.weekly
def test_more_bytes_than_offsets_reach_are_a_clear_error(monkeypatch):
    monkeypatch.setattr(input_scan, "_MOST_BYTES", 1)
    long = pa.array([f"{i:04}" * 256 for i in range(2048)], pa.binary())  # 2 MB, which all vectors share
    table = input_scan.InputTable()
    for _ in range(1030):
        table.put(pa.StructArray.from_arrays([long], ["long"]))
    with pytest.raises(RequirementError, match=r"2,109,440 rows holds more than 2 GB of text, .* --part-rows 1000000"):
        table.field("long")


@pytest.mark.parametrize("most", [10**4, 10**9])
def test_vectors_of_several_threads_stay_whole(most, monkeypatch):
    monkeypatch.setattr(input_scan, "_MOST_BYTES", most)
    rows = pa.array(range(200 * 500), pa.int64())
    vectors = pa.StructArray.from_arrays([rows, rows.cast(pa.string()), pc.multiply(rows, 3)], ["rn", "text", "three"])
    table = input_scan.InputTable()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: table.put(vectors.slice(k * 500, 500)), range(200)))
    table.put_together()
    rn, three = table.field("rn").to_numpy(), table.field("three").to_numpy()
    texts = table.field("text").dictionary_decode().cast(pa.int64()).to_numpy()
    assert sorted(rn.tolist()) == rows.to_pylist()
    assert (three == 3 * rn).all()
    assert (texts == rn).all()


def test_texts_of_few_values_are_stored_once():
    long = pa.array([f"{i % 3}" * 2000 for i in range(2048)])
    table = input_scan.InputTable()
    for _ in range(600):
        table.put(pa.StructArray.from_arrays([long], ["long"]))
    table.put_together()
    assert table.field("long").dictionary.to_pylist() == ["0" * 2000, "1" * 2000, "2" * 2000]


def test_a_feed_left_behind_goes_with_the_next_statement_of_its_connection():
    left, other = input_scan.open_buffer((0, 7, 1)), input_scan.open_buffer((0, 8, 1))
    same = input_scan.open_buffer((0, 7, 1))
    input_scan.take_buffer(same, pa.struct([]))
    input_scan.open_buffer((0, 7, 2))
    input_scan.take_buffer(other, pa.struct([]))
    with pytest.raises(KeyError):
        input_scan.take_buffer(left, pa.struct([]))


def test_two_calls_in_one_statement_do_not_mix(con):
    con.execute("create table t as select range as x from range(5000)")
    both = "select (select count(*) from mondrian('t', 2, qi := ['x'])), (select count(*) from mondrian('(from t limit 3000)', 3, qi := ['x']))"
    assert con.execute(both).fetchone() == (5000, 3000)


def test_more_entries_than_a_list_can_hold_are_refused(con, monkeypatch):
    monkeypatch.setattr(result_encoding, "MOST_ROWS", 100)
    con.execute("create table t as select range as x from range(200)")
    with pytest.raises(duckdb.Error, match=r"mondrian: the answer has .* entries .* 100. Work in parts"):
        con.execute("create table r as from mondrian('t', 2, qi := ['x'])")
    assert con.execute("select count(*) from duckdb_tables() where table_name = 'r'").fetchone() == (0,)


def test_released_rows_go_once_they_are_taken(con):
    con.execute("create table t as select range as x, (range % 7)::varchar as s from range(5000)")
    before = set(input_scan._stored)
    con.execute("create table r as from muco('t', 0.2, qi := ['x'], sensitive := 's')")
    assert set(input_scan._stored) <= before
    con.execute("from muco('t', 0.2, qi := ['x'], sensitive := 's') limit 1").fetchall()
    con.execute("create table q as from muco('t', 0.2, qi := ['x'], sensitive := 's')")
    assert set(input_scan._stored) <= before
