"""attribute_risk: the deFinetti attacker against her definition, and what l does not bound."""

import numpy as np
import pytest
from scipy import sparse

from duckdb_anon.measures.risk.attackers.definetti import PASSES, ROUNDS
from duckdb_anon.measures.risk.attribute_risk import largest_share
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.measures.risk.sensitive_attributes import Secret
from tests.reference import definetti

LABELS = "qi := ['a', 'b'], sensitive := 's'"


@pytest.mark.parametrize(
    ("different", "function", "attacker"), [(24, "attribute_risk", "definetti"), (4, "linkage_risk", "told")]
)
def test_values_are_spread_as_the_definition_says(con, different, function, attacker):
    # of 4 different values some rows of a bucket look alike
    con.execute(
        f"create table original as select range % {different} as a, hash(range, 1) % 3 as b, 's' || (hash(range, 1) + hash(range, 2) % 2) % 3 "
        "as s from range(24)"
    )
    con.execute(
        "create table release as with held as (select bucket, map_from_entries(list((s, n))) as s from (select rowid % 6 as "
        "bucket, s, count(*) as n from original group by all) group by bucket) select bucket, a, b, held.s, original.rowid "
        "as row_id from original join held on held.bucket = original.rowid % 6 order by original.rowid"
    )
    rows = con.execute("select a, b, rowid % 6, s from original order by rowid").fetchall()
    weights = definetti.spread([r[:2] for r in rows], [r[2] for r in rows], [r[3] for r in rows], ROUNDS, PASSES)
    wanted = 0.0
    for row, weight in zip(rows, weights, strict=True):
        best = [v for v, n in weight.items() if n >= max(weight.values()) * (1 - 1e-7)]
        wanted += (row[3] in best) / len(best) / len(rows)
    found = con.execute(
        f"select attribute from {function}('original', 'release', {LABELS}, attackers := ['{attacker}']) limit 1"
    ).fetchone()
    assert found == pytest.approx((wanted,), abs=1e-9)


def test_l_does_not_bound_what_is_inferred(con):
    # the secret follows from b, so other buckets tell which of a bucket's two values is whose
    con.execute(
        "create table original as select range as a, hash(range) % 4 as b, 's' || hash(range) % 4 as s from range(2000)"
    )
    con.execute(f"create table release as from anatomy('original', 2, {LABELS}, row_id := true)")
    found = dict(
        con.execute(
            f"select attacker, attribute from attribute_risk('original', 'release', {LABELS}, known := ['a', 'b'])"
        ).fetchall()
    )
    assert found["exact"] == pytest.approx(0.5, abs=0.01)
    assert found["definetti"] > 0.95


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("rows", [0, 2])
def test_the_largest_share_of_rows_that_weigh_nothing_is_no_number(rows):
    none, first = np.zeros(rows), np.zeros(rows, np.int32)
    carried = sparse.csr_matrix((none, first, np.arange(rows + 1)), (rows, 3))
    secret = Secret("s", 0, carried, carried, np.arange(rows), False)
    groups = np.zeros(rows, dtype=np.int64)
    release = PublishedRecords([], [], [], None, none, groups, groups, [secret], True, None)
    assert np.isnan(largest_share(release, secret))
    carried.data[:] = 1.0
    assert not rows or largest_share(release, secret) == 1.0
