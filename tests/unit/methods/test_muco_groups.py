"""muco_groups: what it counts is what happens, by plain loops and by muco's own last step."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

from duckdb_anon.kernels.random_output_tables.min_changed import randomize_unchanged
from duckdb_anon.methods import muco, muco_lp
from duckdb_anon.methods.muco import METHOD, groups_of
from duckdb_anon.model.coded_table import CodedTable
from tests.reference.answers import answered
from tests.reference.cover_lp import nominal, ordered


@pytest.mark.parametrize("seed", range(4))
def test_moved_rows_are_those_the_last_step_finds_stuck(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = 60
    # two columns that follow the first: groups that vary on none of them are common
    first = rng.integers(0, 6, rows)
    qi = (ordered(first.tolist()), nominal((first // 2).tolist()), nominal((rng.random(rows) < 0.1).tolist()))
    secret = nominal(rng.permutation(rows).tolist())
    table = CodedTable(rows, qi, (secret,))
    for changed in (1.0, 2.0, 3.0):
        given = {"delta": 0.5, "tables": "linear", "min_changed": changed}
        full: dict[str, Any] = {p.name: p.check("muco", given.get(p.name)) for p in METHOD.parameters}
        params = METHOD.refine(full) if METHOD.refine else full
        groups = groups_of(table, params)
        covers = muco_lp.covers(table, params, groups)
        _, stuck = randomize_unchanged(covers, [c.draw(rng) for c in covers], changed, rng, exchange=True)
        told = muco.count_groups([table], params, rng)
        assert told["moved"] == [stuck]
        by_hand = 0
        for g in set(groups.tolist()):
            mine = groups == g
            by_hand += int(mine.sum()) * (sum(len(set(a.codes[mine].tolist())) > 1 for a in qi) < changed)
        assert stuck == by_hand
        assert (told["groups"], told["smallest"]) == ([len(set(groups.tolist()))], [int(np.bincount(groups).min())])


def test_counts_in_sql(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table t as select i // 40 as a, i // 40 as b, i as s from range(120) t(i)")
    roles = "qi := ['a', 'b'], sensitive := 's'"
    found = answered(con, f"from muco_groups('t', 0.1, {roles})")
    sizes = {"rows": 120, "groups": 3, "smallest": 40, "largest": 40}
    assert found == {**sizes, "as_they_were": 120, "moved": 0, "note": ""}
    linear = con.execute(f"select moved from muco_groups('t', 0.1, {roles}, tables := 'linear')").fetchall()
    assert linear == [(120,)]
    with pytest.raises(duckdb.Error, match=r"min_changed := 2\.0 belongs to the paper's"):
        con.execute(f"from muco_groups('t', 0.1, {roles}, min_changed := 2)").fetchall()
