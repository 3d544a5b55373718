"""A call that will not fit says so before it starts, and the command it names works."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.cli import main

ROWS = 300_000
ROLES = "qi := ['a', 'b', 'c'], sensitive := 's'"


def fill(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        f"create table big as select i % 90 as a, i * 7 % 50 as b, i * 13 % 20 as c, i * 31 % 9 as s from range({ROWS}) r(i)"
    )


def test_the_message_names_rows_estimate_and_a_command_that_works(tmp_path: Path) -> None:
    file = tmp_path / "people.duckdb"
    with duckdb_anon.connect(str(file)) as con:
        fill(con)
        con.execute("set memory_limit = '50MB'")
        with pytest.raises(duckdb.Error, match="300,000 rows, which takes about 110 MB in one call") as caught:
            con.execute(f"create table r as from mondrian('big', 50, {ROLES})")
        con.execute("set memory_limit = '4GB'")
    command = re.search(r"Work in parts: duckdb-anon (.*), or in Python", str(caught.value))
    assert command is not None
    arguments = shlex.split(command.group(1))
    assert arguments[:3] == ["release", str(file), "NAME"]
    assert main([*arguments[:-2], "--memory", "1GB", "--part-rows", "100000"]) == 0
    with duckdb.connect(str(file)) as con:
        assert con.execute("select count(*) from NAME").fetchall() == [(ROWS,)]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["people.duckdb"]


def test_the_python_call_of_the_message_works(con: duckdb.DuckDBPyConnection) -> None:
    fill(con)
    before = con.execute("select current_setting('memory_limit')").fetchall()[0][0]
    con.execute("set memory_limit = '50MB'")
    with pytest.raises(duckdb.Error, match=r"Work in parts: duckdb_anon\.release") as caught:
        con.execute(f"from muco('(from big where a >= 0)', 0.1, {ROLES})")
    con.execute(f"set memory_limit = '{before}'")
    command = re.search(r"Work in parts: (duckdb_anon.release\(.*\))", str(caught.value))
    assert command is not None
    said = eval(command.group(1))
    assert said.startswith("anon: release of a query by muco(delta := 0.1)")
    assert con.execute("select count(*) from NAME").fetchall() == [(ROWS,)]


@pytest.mark.parametrize(("role", "size"), [("keep := ['note']", 895), ("sensitive := 'note'", 903)])
def test_long_texts_are_reckoned_with(con: duckdb.DuckDBPyConnection, role: str, size: int) -> None:
    con.execute("create table notes as select i % 9 as a, repeat(md5(i::varchar), 100) as note from range(30000) r(i)")
    con.execute("set memory_limit = '400MB'")
    with pytest.raises(duckdb.Error, match=f"30,000 rows, which takes about {size} MB in one call"):
        con.execute(f"explain from mondrian('notes', 50, qi := ['a'], {role})")
    assert con.execute("select count(*) from mondrian('notes', 50, qi := ['a'])").fetchall() == [(30000,)]


def test_counts_of_buckets_are_reckoned_with(con: duckdb.DuckDBPyConnection) -> None:
    fill(con)
    con.execute("set memory_limit = '120MB'")
    con.execute(f"explain from muco('big', 0.2, {ROLES})")
    with pytest.raises(duckdb.Error, match="300,000 rows, which takes about 179 MB in one call"):
        con.execute(f"explain from anatomy('big', 5, {ROLES})")


MEASURED = """
import re, sys, duckdb_anon
from duckdb_anon.engine import memory_estimate
con = duckdb_anon.connect(sys.argv[1])
con.execute("set threads = 2; set enable_progress_bar = false")
value, call = sys.argv[2:]
con.execute(f"create table big as select {value} as x, (hash(i, 1) % 60)::int as a, 'n' || hash(i, 2) % 20 as b, "
            "'s' || hash(i, 3) % 50 as s, 'p' || hash(i, 4) % 100000 as p from range(200000) r(i)")
con.execute("create table tree as select distinct s, 'm' || left(s, 2) as middle, '*' as root from big")
con.execute("create table few as from big limit 3000")
con.execute(f"create table warm as from {call.format('few')}")  # compiles
limit, told = con.execute("select current_setting('memory_limit')").fetchall()[0][0], 0
con.execute("set memory_limit = '20MB'")
try:
    con.execute(f"explain from {call.format('big')}")
except Exception as error:
    told = fits.size_of("", re.search("takes about (.*?B) in one call", str(error))[1])
con.execute(f"set memory_limit = '{limit}'; checkpoint")
status = lambda key: 1024 * int(re.search(key + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before = status("VmRSS")
con.execute(f"create table r as from {call.format('big')}")
print(told, status("VmHWM") - before)
"""
KINDS = {
    "whole numbers": "(hash(i) % 90)::int",
    "times": "timestamp '2000-01-01' + interval 1 second * (hash(i) % 100000000)",
    "names": "'text' || hash(i) % 1000000000000000",
    "notes": "repeat(md5(i::varchar), 6)",
}
METHODS = [
    "mondrian('{}', 10, %s)",
    "rank_swap('{}', 5, %s)",
    "anatomy('{}', 10, %s)",
    "rr_distort('{}', p := 0.8, %s)",
    "muco('{}', 0.2, %s)",
    "slicing('{}', 2, sensitive_column := 'alone', %s)",
    "merging('{}', 2, %s)",
    "hybrid('{}', 5, %s)",
    "composition('{}', 5, %s)",
    "probabilistic('{}', 5, %s)",
    "one_to_m_generalize('{}', 3, 2, person := 'p', changing := 'first', hierarchies := {{'s': 'tree'}}, %s)",
    "incognito('{}', 10, max_suppression := 0.0, %s)",
]
PAIRS = [
    (call, kind)
    for i, call in enumerate(METHODS)
    for k, kind in enumerate(KINDS)
    if ("CI" not in os.environ or (i + k) % 2 == 0)
    and not (call.startswith("incognito") and kind in ("names", "notes"))  # is refused, see below
]
"""Methods and kinds of values; half of them in CI, each method and each kind among them."""


@pytest.mark.campaign
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize(("call", "kind"), PAIRS)
def test_a_call_takes_no_more_than_is_said(tmp_path: Path, kind: str, call: str) -> None:
    given, told = call % "qi := ['x', 'a', 'b'], sensitive := 's', seed := 1", 0
    seen: list[int] = []
    # the peak of one call varies by a quarter from run to run, and pages of files that the system takes back meanwhile
    # may be missing in it: the most of three runs is what counts
    while not seen or (told > 3 * max(seen) and len(seen) < 3):
        run = subprocess.run(
            [sys.executable, "-c", MEASURED, str(tmp_path / f"{len(seen)}.duckdb"), KINDS[kind], given],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        told, taken = map(int, run.stdout.split())
        seen.append(taken)
        assert taken <= told, (told, seen)
    assert told <= 3 * max(seen), (told, seen)


def test_levels_of_names_that_do_not_repeat_are_refused_before_they_fill_the_disk(
    con: duckdb.DuckDBPyConnection,
) -> None:
    con.execute("create table own as select 'name' || i as name, i % 9 as a from range(200000) r(i)")
    with pytest.raises(duckdb.Error, match=r"200,000 rows, which takes about \d+\.\d GB .* decides for the table"):
        con.execute("explain from incognito('own', 5, qi := ['name', 'a'])")


def test_what_has_no_parts_says_so(con: duckdb.DuckDBPyConnection) -> None:
    fill(con)
    con.execute("set memory_limit = '50MB'")
    with pytest.raises(duckdb.Error, match="decides for the table as a whole, so it cannot be worked in parts; raise"):
        con.execute(f"from incognito('big', 50, {ROLES})")


def test_a_view_whose_estimate_is_too_large_is_counted_before_it_is_refused(con: duckdb.DuckDBPyConnection) -> None:
    fill(con)
    con.execute("create view few as from big where hash(a, b, c, s) % 100000 < 200")
    con.execute("set memory_limit = '50MB'")
    rows = con.execute("select count(*) from few").fetchall()[0][0]
    assert con.execute(f"select count(*) from mondrian('few', 2, {ROLES})").fetchall() == [(rows,)]


def test_more_rows_than_a_list_can_number_are_refused_before_the_call_starts(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "create view huge as select i % 90 as a, i % 50 as b, i % 20 as c, i % 9 as s from range(2200000000) r(i)"
    )
    con.execute("set memory_limit = '9000GB'")
    with pytest.raises(
        duckdb.Error, match=r"huge has 2,200,000,000 rows, which is more than the 2,147,483,647 .* Work in parts: "
    ):
        con.execute(f"explain from mondrian('huge', 50, {ROLES})")
