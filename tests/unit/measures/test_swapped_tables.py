"""A release in the place of its original is named, whatever its shape."""

from __future__ import annotations

import duckdb

ROLES = "qi := ['a', 'b'], sensitive := 's'"
METHODS = ("mondrian('t', 2", "rr_distort('t', p := 0.7", "slicing('t', 1", "anatomy('t', 1", "hybrid('t', 1")
CALLS = (
    "delta_presence('t', 'r'", "k_map('t', 'r'", "membership_risk('r', 't', 'r'", "linkage_risk('r', 't'",
    "workload_error('r', 't'", "distribution_distance('r', 't'", "composition_risk('t', 'r', 'r'",
)  # fmt: skip


def test_a_release_in_the_place_of_its_original_is_no_internal_error(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table t as select i % 4 as a, 'x' || i % 2 as b, 'y' || i % 3 as s from range(12) r(i)")
    for method in METHODS:
        con.execute(f"create or replace table r as from {method}, {ROLES})")
        for call in CALLS:
            try:
                con.execute(f"from {call}, {ROLES})").fetchall()
            except duckdb.Error as error:
                assert "internal error" not in str(error)
