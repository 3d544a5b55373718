"""Large tables whose values repeat are released with each different cell looked up once; rows are what they were."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pytest

from duckdb_anon.engine import memory_estimate, planner
from duckdb_anon.engine.decode import Decoder
from duckdb_anon.engine.different_cells import different
from duckdb_anon.model import released_columns as c

CALLS = {
    "boxes and sets": "mondrian('many', 5, qi := ['age', 'job', 'town'], sensitive := 's', seed := 1)",
    "boxes alone": "mondrian('many', 5, qi := ['age', 'town'], seed := 1)",
    "nodes": "mondrian('many', 5, qi := ['age', 'job'], hierarchies := {'job': 'jobs'}, sensitive := 's', seed := 1)",
    "new ends": "mondrian('many', 5, qi := ['age', 'town'], sensitive := 's', sensitive_edges := 7, seed := 1)",
    "cells": "muco('many', 0.2, qi := ['age', 'job', 'town'], sensitive := 's', seed := 1)",
    "told domains": "rr_distort('many', p := 0.7, qi := ['age', 'job'], sensitive := 's', seed := 1)",
    "a row of the source": "mondrian('many', 5, qi := ['age', 'job'], row_id := true, seed := 1)",
    "buckets": "anatomy('many', 3, qi := ['age', 'job'], sensitive := 's', seed := 1)",
    "new values": "microaggregate('many', 5, qi := ['age'], sensitive := 's', seed := 1)",
}


@pytest.fixture
def many(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    con.execute(
        "create table many as select (hash(i) % 60)::int as age, 'job ' || hash(i, 1) % 20 as job, "
        "case when hash(i, 2) % 10 > 0 then hash(i, 3) % 40 / 4 end as town, 's' || hash(i, 4) % 9 as s "
        "from range(5000) t(i)"
    )
    con.execute("create table jobs as select distinct job, 'kind ' || right(job, 1) as kind, '*' as root from many")
    return con


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_releases_are_the_same_in_the_same_order(
    many: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    plain = many.execute(f"from {call}")
    described, rows = plain.description, in_order(plain.fetchall())
    monkeypatch.setattr(memory_estimate, "_MANY", 0)
    beside = many.execute(f"from {call}")
    assert beside.description == described
    assert in_order(beside.fetchall()) == rows


def in_order(rows: list[Any]) -> list[Any]:
    """Rows as they come; DuckDB 1.5 hands over what a CTE keeps in the order in which threads come by."""
    return sorted(rows, key=str) if duckdb.__version__.startswith("1.") else rows


def test_which_plans_read_rows_on_several_threads(
    many: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoders: list[Decoder] = []

    def decoder(*args: Any, **options: Any) -> Decoder:
        decoders.append(Decoder(*args, **options))
        return decoders[-1]

    def beside(call: str) -> bool:
        many.execute(f"explain from {call}")
        return decoders.pop().beside

    monkeypatch.setattr(planner, "Decoder", decoder)
    assert not any(beside(call) for call in CALLS.values())  # of few rows no thread gets a share
    monkeypatch.setattr(memory_estimate, "_MANY", 0)
    assert [name for name, call in CALLS.items() if beside(call)] == [
        "boxes and sets", "boxes alone", "nodes", "cells", "told domains",
    ]  # fmt: skip
    many.execute("update many set job = md5(s || age || rowid)")
    assert not beside(CALLS["cells"])  # so many values are not copied for every vector


def test_different_cells_are_what_each_group_has() -> None:
    rng = np.random.default_rng(5)
    index = rng.integers(0, 40, 300)
    sizes = rng.integers(0, 4, 40)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    members = np.concatenate([np.sort(rng.permutation(4)[:size]) for size in sizes]).astype(np.int32)
    lists = [members[lo:hi].tolist() for lo, hi in pairwise(offsets)]
    ends = rng.integers(-1, 3, (2, 40)).astype(np.int32)
    boxes = different(c.Interval("a", *ends, index))
    assert len(boxes.lower) == len({tuple(pair) for pair in ends.T.tolist()}) < 40
    assert (boxes.lower[boxes.index] == ends[0][index]).all() and (boxes.upper[boxes.index] == ends[1][index]).all()
    node = different(c.Node(("x", "y"), ends[0], index))
    assert len(node.node) == 4 and (node.node[node.index] == ends[0][index]).all()
    for one in (c.ValueSet("a", offsets, members, index), c.NodeSet(("x",), offsets, members, index)):
        told = different(one)
        codes = told.codes if isinstance(told, c.ValueSet) else told.nodes
        found = [codes[lo:hi].tolist() for lo, hi in pairwise(told.offsets)]
        assert len(found) == len({tuple(each) for each in lists}) < 40
        assert [found[i] for i in told.index.tolist()] == [lists[i] for i in index.tolist()]
