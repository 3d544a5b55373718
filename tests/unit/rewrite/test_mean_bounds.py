"""Bounds of means hold for the rows behind the boxes, and are no wider than those of sum and count together."""

from __future__ import annotations

import random

import duckdb_anon

QUERIES = (
    "select avg(x), sum(x), count(x) from t where x < 2",
    "select avg(x), sum(x), count(x) from t where x in (0, 1, 4) and s = 'b'",
    "select s, avg(x), sum(x), count(x) from t where x > -1 group by s",
)


def test_bounds_of_means_hold_and_use_what_sums_and_counts_say() -> None:
    source = random.Random(3)
    con = duckdb_anon.connect()
    con.execute("create table t(x integer, s varchar)")
    con.execute("create table r(x struct(lower integer, upper integer), s varchar[])")
    tried = 0
    for _ in range(6):
        con.execute("truncate t; truncate r")
        for i in range(5):
            x = source.choice([None, *range(-3, 6)])
            box = None if x is None else {"lower": x - source.randint(0, 2), "upper": x + source.randint(0, 2)}
            con.execute("insert into t values (?, ?)", [x, "ab"[i % 2]])
            con.execute("insert into r values (?, ?)", [box, source.choice([["ab"[i % 2]], ["a", "b"]])])
        for query in QUERIES:
            found = con.execute(
                "select keys, original, low, high from relative_error($1, 't', 'r', bounds := 'hard')", [query]
            ).fetchall()
            for k in range(0, len(found), 3):
                (_, mean, low, high), (_, _, least, most), (_, _, fewest, _) = found[k : k + 3]
                tried += mean is not None and low is not None
                assert mean is None or low is None or low - 1e-9 <= mean <= high + 1e-9, (query, found)
                if fewest and most is not None and most >= 0:
                    assert high <= most / fewest + 1e-9, (query, found)
                if fewest and least is not None and least <= 0:
                    assert low >= least / fewest - 1e-9, (query, found)
    assert tried > 10
