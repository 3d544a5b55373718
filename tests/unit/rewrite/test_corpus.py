"""Over 200 queries as BI tools, benchmarks and analysts write them, each with its verdict for each shape of release."""

from __future__ import annotations

from collections import Counter
from statistics import median

import duckdb
import pytest

from tests.reference.corpus import RELEASES, database, queries, verdicts
from tests.reference.corpus_verdicts import judge

CORPUS = dict(queries())
OFTEN = ("buckets",)
"""Shapes tried on every run; the others are a campaign."""


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    return database()


@pytest.mark.parametrize(
    "shape", [pytest.param(shape, marks=() if shape in OFTEN else pytest.mark.campaign) for shape in RELEASES]
)
def test_every_query_has_its_verdict_and_hard_bounds_hold_the_truth(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    known = verdicts()
    wrong = []
    for name, query in CORPUS.items():
        verdict, outside = judge(con, query, shape)
        if verdict != known[name, shape] or outside:
            wrong.append((name, verdict, known[name, shape], outside[:2]))
    assert not wrong


def test_the_text_over_boxes_is_in_the_median_less_than_six_times_the_query(con: duckdb.DuckDBPyConnection) -> None:
    ratios = []
    for (name, shape), verdict in verdicts().items():
        if shape == "boxes" and not verdict.startswith("refused"):
            row = con.execute("select rewrite_query($1, 'people', 'r_boxes')", [CORPUS[name]]).fetchone()
            assert row is not None
            ratios.append(len(row[0]) / len(CORPUS[name]))
    assert median(ratios) < 5.9


def test_the_corpus_is_large_and_mostly_answered() -> None:
    known = verdicts()
    assert len(CORPUS) >= 200 and set(known) == {(name, shape) for name in CORPUS for shape in RELEASES}
    kinds = Counter((shape, verdict.split(":")[0]) for (_, shape), verdict in known.items())
    assert not any("FAILED" in verdict or "internal error" in verdict for verdict in known.values())
    for shape in ("rows", "boxes", "buckets"):
        assert kinds[shape, "refused"] <= 0.2 * len(CORPUS)
