"""linkage_risk against its definitions, on tiny tables and in the limits."""

from collections import Counter
from collections.abc import Sequence

import duckdb
import numpy as np
import pytest

from duckdb_anon.kernels.rng_streams import derived_seed
from duckdb_anon.measures.risk.attackers import ATTACKERS
from tests.reference import linkage

LABELS = "qi := ['a', 'b', 'c'], sensitive := 's'"
FAST = "targets := 1000"
Rows = list[tuple[object, ...]]


def table(con: duckdb.DuckDBPyConnection, name: str, rows: int, salt: int, spread: int = 5) -> Rows:
    con.execute(
        f"create table {name} as select hash(range, {salt}) % {spread} as a, 'v' || hash(range, {salt} + 1) % 3 as b, "
        f"hash(range, {salt} + 2) % {spread} as c, hash(range, {salt} + 3) % 4 as s from range({rows})"
    )
    return con.execute(f"from {name}").fetchall()


def measured(con: duckdb.DuckDBPyConnection, attacker: str, more: str = "") -> tuple[float, float]:
    found = con.execute(
        f"select identity, attribute from linkage_risk('original', 'release', {LABELS}, attackers := ['{attacker}'], "
        f"{FAST}{more}) where attacker = '{attacker}'"
    ).fetchone()
    return found[0], found[1]


def domains(original: Rows, release: Rows) -> list[list[object]]:
    return [sorted({row[a] for row in original + release}) for a in range(3)]


def expected(
    original: Rows, release: Rows, source: Sequence[int], score: linkage.Score, soft: bool, most: int | None = None
) -> tuple[float, float]:
    carried = [dict(r[3]) if isinstance(r[3], dict) else {r[3]: 1.0} for r in release]
    carried = [{v: n / sum(c.values()) for v, n in c.items()} for c in carried]
    identity = attribute = 0.0
    for t, target in enumerate(original):
        true_row = source.index(t) if t in source else None
        found = linkage.scores(target, release, score, (0, 1, 2), most)
        identity += linkage.identity(found, true_row) / len(original)
        attribute += linkage.attribute(found, carried, target[3], soft) / len(original)
    return identity, attribute


@pytest.mark.parametrize(("attacker", "most"), [("likelihood", None), ("likelihood_excluding", 2)])
def test_the_learned_channel_is_that_of_the_call_run_on_the_release(con, attacker, most):
    original = table(con, "original", 60, 2)
    call = "muco(0.5, tables := 'linear')"
    con.execute(
        f"create table release as from muco('original', 0.5, tables := 'linear', {LABELS}, row_id := true, seed := 3)"
    )
    again = con.execute(
        f"from muco('release', 0.5, tables := 'linear', {LABELS}, row_id := true, "
        f"seed := {derived_seed(11, 'simulation')})"
    ).fetchall()
    rows = con.execute("from release").fetchall()
    pairs = [(rows[r[4]], r) for r in again]
    unchanged = Counter(sum(b[a] == c[a] for a in range(3)) for b, c in pairs)
    assert max(unchanged) == 2  # muco promises that everybody differs somewhere
    score = linkage.counted(pairs, domains(original, rows))
    found = measured(con, attacker, f", call := $${call}$$, seed := 11")
    assert found == pytest.approx(expected(original, rows, [r[4] for r in rows], score, True, most), abs=1e-12)


@pytest.mark.parametrize(("method", "arguments"), [("muco", "0.2, repair := false"), ("rank_swap", "20")])
def test_an_attack_with_the_seed_of_the_release_finds_no_more_than_others(con, method, arguments):
    con.execute("create table original as select range * 7 as a, range % 2 as b, range * 5 % 13 as c, range % 3 as s "
                "from range(13)")  # fmt: skip
    same, other = [], []
    for seed in range(3):
        con.execute(
            f"create or replace table release as from {method}('original', {arguments}, {LABELS}, row_id := true, "
            f"seed := {seed})"
        )
        for found, given in ((same, seed), (other, seed + 100), (other, seed + 200)):
            more = f", call := $${method}({arguments})$$, seed := {given}"
            found.append(measured(con, "likelihood", more)[0])
    # a simulated call that repeats the draws of the release finds everybody
    assert abs(np.mean(same) - np.mean(other)) < 0.2


def test_an_undistorted_copy_is_found_up_to_equal_rows(con):
    rows = table(con, "original", 400, 3, spread=9)
    con.execute("create table release as select *, rowid as row_id from original order by hash(rowid)")
    equal = Counter(r[:3] for r in rows)
    wanted = sum(1 / equal[r[:3]] for r in rows) / len(rows)
    # delta 1 with nothing that must change is a call that moves nothing
    call = "call := $$muco(1, l := 1, repair := false)$$"
    for attacker, identity in con.execute(
        f"select attacker, identity from linkage_risk('original', 'release', {LABELS}, {call})"
    ).fetchall():
        # there are no classes to use, or to be told; the model alone looks for no record; one group is no grouping
        if identity is not None and attacker not in ("definetti", "told"):
            assert identity == pytest.approx(wanted, abs=1e-12), attacker


@pytest.mark.parametrize(
    "call", ["mondrian(k := 5)", "anatomy(2)", "muco(0.5)", "incognito(k := 5)"],
)  # fmt: skip
def test_a_temporary_release_is_attacked_like_a_committed_one(con, call):
    table(con, "original", 200, 7)
    method, arguments = call[:-1].split("(", 1)
    made = f"from {method}('original', {arguments}, {LABELS}, row_id := true, seed := 1)"
    con.execute(f"create table release as {made}")
    con.execute("create temp table hidden as from release")
    figures = [
        con.execute(
            f"select attacker, identity, attribute, channel from linkage_risk('original', '{name}', {LABELS}, call := $${call}$$, "
            "seed := 1) order by all"
        ).fetchall()
        for name in ("release", "hidden")
    ]
    assert figures[0] == figures[1] and len(figures[0]) == len(ATTACKERS) + 1
    channel = {row[0]: row[3] for row in figures[0]}["strongest"]
    assert channel == ("simulated" if call.startswith("muco") else "published")


@pytest.mark.parametrize("empty", ["original", "release", "holdout"])
def test_an_empty_table_is_named_by_the_measure_that_was_called(con, empty):
    table(con, "original", 40, 3)
    table(con, "holdout", 40, 3)
    con.execute("create table release as select *, rowid as row_id from original")
    con.execute(f"create or replace table {empty} as from {empty} limit 0")
    functions = ("linkage_risk", "attribute_risk", "membership_risk", "singling_out", "linkability", "inference")
    for function, call in (*((name, "") for name in functions), ("linkage_risk", ", call := 'muco(0.2)'")):
        with pytest.raises(duckdb.Error, match=f"{function}: the .*{empty}.* (is empty|has 0 rows)"):
            con.execute(f"from {function}('original', 'release', {LABELS}, holdout := 'holdout'{call})")


def test_a_call_that_no_method_takes_is_refused(con):
    table(con, "original", 40, 3)
    con.execute("create table release as select *, rowid as row_id from original")
    for call, message in (
        ("muko(0.2)", "names no method.*did you mean 'muco'"),
        ("muco(detla := 0.2)", "gives detla.*delta.*muco takes"),
        ("muco(0.2, delta := 0.2)", "gives delta twice"),
        (f"muco(0.2{', NULL' * 30})", "gives argument [0-9]+; muco takes"),
    ):
        with pytest.raises(duckdb.Error, match=f"linkage_risk: call := '.*{message}"):
            con.execute(f"from linkage_risk('original', 'release', {LABELS}, call := '{call}')")


def test_the_strongest_says_the_standard_errors_of_its_figures(con):
    """A release whose rows are alike in pairs: the chances of exact matches are one half for some and one for others."""
    con.execute("create table original as select greatest(range, 40) as a, range % 2 as s from range(80)")
    con.execute("create table release as select a, s, row_number() over () - 1 as row_id from original")
    note, identity = (
        con.execute("""select note, identity from linkage_risk('original', 'release', qi := ['a'], sensitive := 's',
        attackers := ['exact']) where attacker = 'strongest'""").fetchone()
    )
    chances = np.array([1 / 41] * 41 + [1.0] * 39)
    assert identity == pytest.approx(chances.mean())
    assert f"standard error {chances.std(ddof=1) / np.sqrt(80):.4f}" in note
