"""Over 200 queries as BI tools, benchmarks and analysts write them, each with its verdict and its error for each shape of release."""

from collections import Counter

import pytest

from tests.reference.corpus import RELEASES, database, queries, verdicts
from tests.reference.corpus_verdicts import judge

pytestmark = pytest.mark.campaign

CORPUS = dict(queries())
WEEKLY = ("sliced", "sampled")


@pytest.fixture(scope="module")
def con():
    return database()


@pytest.mark.parametrize("shape", [pytest.param(s, marks=[pytest.mark.weekly] * (s in WEEKLY)) for s in RELEASES])
def test_queries_have_their_verdicts_and_errors_and_hard_bounds_hold_the_truth(con, shape):
    known = verdicts()
    wrong = []
    # each query is asked of every second shape
    for name, query in list(CORPUS.items())[list(RELEASES).index(shape) % 2 :: 2]:
        verdict, error, outside = judge(con, query, shape)
        expected, usual = known[name, shape]
        worse = usual is not None and (error is None or error > 1.2 * usual + 0.02)
        if verdict != expected or outside or worse:
            wrong.append((name, verdict, expected, error, usual, outside[:2]))
    assert not wrong


def test_the_corpus_is_large_and_mostly_answered():
    known = verdicts()
    assert len(CORPUS) >= 290 and set(known) == {(name, shape) for name in CORPUS for shape in RELEASES}
    types = Counter((shape, verdict.split(":")[0]) for (_, shape), (verdict, _) in known.items())
    assert not any("FAILED" in verdict or "internal error" in verdict for verdict, _ in known.values())
    for shape in set(RELEASES) - {"counts"}:
        assert types[shape, "refused"] <= 0.05 * len(CORPUS)
