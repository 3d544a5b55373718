"""Results travel as named columns: each different value of a released column is listed once, rows have places."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from duckdb_anon.engine import input_scan
from duckdb_anon.engine.column_coding import code_column
from duckdb_anon.engine.result_encoding import ReleaseEncoder, Result
from duckdb_anon.model import released_columns as c
from duckdb_anon.model.coded_table import Attribute
from duckdb_anon.model.function_specs import ColumnPlan


def attribute(name: str) -> Attribute:
    return code_column("test", name, pa.array(["v0", "v1", "v2", "v3", "v4"]), "nominal")


def encoded(cells: Any, order: np.ndarray) -> Result:
    result = Result()
    encoder = ReleaseEncoder({"a": attribute("a")}, np.arange(5), order)
    encoder.column(result, ColumnPlan("a", type(cells)), cells, "a")
    return result


def test_places_of_different_cells_say_what_each_row_has():
    rng = np.random.default_rng(5)
    index, order = rng.integers(0, 40, 300), rng.permutation(300)
    sizes = rng.integers(0, 4, 40)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    members = np.concatenate([np.sort(rng.permutation(4)[:size]) for size in sizes]).astype(np.int32)
    values = np.array([f"v{code}" for code in range(5)])
    lists = [(members[low:high] + 1).tolist() for low, high in pairwise(offsets)]
    low, high = rng.integers(-1, 3, (2, 40)).astype(np.int32)

    boxes = encoded(c.Interval("a", low, high, index), order)
    place = boxes.rows.codes["a"] - 1
    assert len(boxes.looked_up.texts["a.lower"]) == len(set(zip(low.tolist(), high.tolist(), strict=True))) < 40
    for name, codes in (("lower", low[index][order]), ("upper", high[index][order])):
        ends = np.array(boxes.looked_up.texts[f"a.{name}"].to_pylist())
        assert (ends[place] == np.where(codes < 0, None, values[codes])).all()

    nodes = encoded(c.Node(("x", "y", "z"), low % 3, index), order)
    labels = np.array(nodes.looked_up.texts["a"])
    assert sorted(labels) == ["x", "y", "z"]
    assert (labels[nodes.rows.codes["a"] - 1] == np.array(["x", "y", "z"])[(low % 3)[index][order]]).all()

    for cells in (c.ValueSet("a", offsets, members, index), c.NodeSet(tuple("abcd"), offsets, members, index)):
        sets = encoded(cells, order)
        starts, entries = sets.looked_up.lists["a"]
        found = [entries[low:high].tolist() for low, high in pairwise(starts.tolist())]
        assert len(found) == len({tuple(each) for each in lists}) < 40
        assert [found[place - 1] for place in sets.rows.codes["a"]] == [lists[i] for i in index[order]]


def test_a_cell_of_another_class_than_planned_is_refused():
    with pytest.raises(TypeError, match="planned as Coded, got Whole"):
        ReleaseEncoder({}, np.arange(2), np.arange(2)).column(
            Result(), ColumnPlan("a", c.Coded), c.Whole(np.arange(2)), "a"
        )


def test_rows_are_handed_over_once():
    result = Result()
    result.rows.numbers["n"] = np.arange(3)
    told = result.to_arrow("f", 3, (0, 0, 1)).to_pylist()[0]
    assert (told["n"], told["error"]) == (3, None)
    rows = input_scan.pop(told["rows"])
    assert rows.to_pylist()[0]["numbers"] == [("n", [0, 1, 2])]
    with pytest.raises(KeyError):
        input_scan.pop(told["rows"])


def test_channels_stand_in_few_rows_where_domains_are_long(con):
    con.execute("create table t as select i as name, i % 4 as s from range(3000) r(i)")
    call = "rr_distort('t', p := 0.7, qi := ['name'], sensitive := 's')"
    columns = [row[0] for row in con.execute(f"describe from {call}").fetchall()]
    told = next(name for name in columns if name not in ("name", "s"))
    rows, with_channel = con.execute(f'select count(*), count("{told}") from {call}').fetchall()[0]
    assert (rows, with_channel) == (3000, 2)
