"""Random workloads: how many values each predicate asks for, and what the queries say."""

import numpy as np

from duckdb_anon.measures.queries.workload import WorkloadSpec, draw
from duckdb_anon.model.coded_table import Attribute


def attribute(name: str, kind: str, domain: int, null: bool = False) -> Attribute:
    """An attribute whose codes are 0 .. domain - 1, the last one NULL if wanted."""
    places = np.arange(domain, dtype=np.float64)
    last = domain - 1 if null else domain
    codes = np.arange(domain, dtype=np.int32)
    return Attribute(name, kind, codes, places, last, domain - 1 if null else -1, codes.astype(np.int64))


QI = [
    attribute("age", "ordered", 80, null=True),
    attribute("sex", "nominal", 3, null=True),
    attribute("zip", "ordered", 50),
]
DISEASE = attribute("disease", "nominal", 12)


def test_default_predicates_cover_the_root_of_the_selectivity():
    workload = draw(QI, DISEASE, WorkloadSpec(200, 2, 0.05, sensitive=True), np.random.default_rng(0))
    statement = workload.matches[0][workload.used[:, 0]].sum(axis=1)
    assert set(statement) == {int(np.ceil(79 * 0.05 ** (1 / 3)))}
    assert set(workload.matches[3].sum(axis=1)) == {int(np.ceil(12 * 0.05 ** (1 / 3)))}


def test_half_style_covers_that_share_of_every_domain():
    workload = draw(QI, None, WorkloadSpec(100, 3, 0.5, style="half"), np.random.default_rng(0))
    assert [set(m.sum(axis=1)) for m in workload.matches] == [{40}, {1}, {25}]


def test_ordered_attributes_get_intervals_and_null_is_never_asked_for():
    workload = draw(QI, None, WorkloadSpec(300, 3, 0.3), np.random.default_rng(1))
    for position in (0, 2):
        edges = np.diff(workload.matches[position].astype(int), axis=1)
        assert (np.abs(edges).sum(axis=1) <= 2).all()
    assert not workload.matches[0][:, 79].any()
    assert not workload.matches[1][:, 2].any()


def test_every_query_uses_exactly_dims_attributes_and_all_of_them_equally_often():
    workload = draw(QI, None, WorkloadSpec(3000, 2), np.random.default_rng(2))
    assert (workload.used.sum(axis=1) == 2).all()
    assert np.allclose(workload.used.mean(axis=0), 2 / 3, atol=0.04)
    assert all(workload.matches[a][~workload.used[:, a]].all() for a in range(3))
