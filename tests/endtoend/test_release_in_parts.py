"""`duckdb-anon release --part-rows`, as real processes: files in and out, killed in the middle, a disk that is full."""

import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.cli import main
from tests.reference.answers import differing

pytestmark = pytest.mark.campaign

CALL = "mondrian('people', 3, qi := ['age', 'gender', 'education', 'hours_per_week'])"
ROWS = 6000
KILLED = """
import os, signal, sys
import duckdb_anon
from duckdb_anon.parts import run_duckdb

work, worked = run_duckdb.work_part, []

def dies(*arguments):
    worked.append(arguments)
    if len(worked) == 3:
        os.kill(os.getpid(), signal.{signal})
    return work(*arguments)

run_duckdb.work_part = dies
con = duckdb_anon.connect(sys.argv[1])
duckdb_anon.release(con, sys.argv[2], sys.argv[3], part_rows=1600, independent=True)
"""


@pytest.fixture(autouse=True)
def spilled(tmp_path_factory, monkeypatch):
    """Where runs keep rows of the original, in place of /var/tmp."""
    folder = tmp_path_factory.mktemp("spilled")
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder / f"duckdb-anon-{os.getuid()}"


def labelled(path: Path) -> Path:
    file = path / "people.duckdb"
    with duckdb_anon.connect(str(file)) as con:
        con.execute(f"create table people as from anon_sample('census', {ROWS}, seed := 5)")
        duckdb_anon.release(con, "once", CALL, part_rows=1600, independent=True)
        con.execute("drop schema anon cascade")  # the releases of the tests are the first ones
    return file


def left(path: Path) -> list[str]:
    return sorted(p.name for p in path.iterdir())


def test_a_table_of_a_file_to_a_table(tmp_path, capsys):
    file = labelled(tmp_path)
    assert main(["release", str(file), "r", CALL, "--part-rows", "1600"]) == 0
    assert "r: anon: release of people by mondrian(k := 3) on" in capsys.readouterr().out
    with duckdb.connect(str(file)) as con:
        assert differing(con, "r", "once") == 0
        said = dict(con.execute("select column_name, comment from duckdb_columns() where table_name = 'r'").fetchall())
        assert said["age"] == "anon: quasi"
    assert left(tmp_path) == ["people.duckdb"]


@pytest.mark.parametrize(("source", "target"), [("people.parquet", "r/"), ("people/", "r.parquet")])
def test_files_and_folders_to_files_and_folders(tmp_path, source, target):
    file = labelled(tmp_path)
    with duckdb.connect(str(file)) as con:
        if source.endswith("/"):
            con.execute(f"copy people to '{tmp_path / 'people'}' (format parquet, per_thread_output)")
        else:
            con.execute(f"copy people to '{tmp_path / source}'")
    call = CALL.replace("'people', ", "")
    given = [str(tmp_path / source), f"{tmp_path}/{target}", call, "--memory", "500MB", "--part-rows", "1600"]
    assert main(["release", *given]) == 0
    with duckdb_anon.connect(str(file)) as con:
        written = f"'{tmp_path}/{target}*.parquet'" if target.endswith("/") else f"'{tmp_path}/{target}'"
        assert differing(con, written, "once") == 0
        assert con.execute(f"from k_anonymity({written})").fetchall()[0][0] >= 3
        told = dict(con.execute(f"select fact, name from describe_release({written})").fetchall())
        assert (told["original"], told["method"]) == (f'"{source}"', "mondrian")
    assert main(["release", *given]) == 1  # it is taken
    assert main(["release", *given, "--replace"]) == 0
    assert left(tmp_path) == sorted(["people.duckdb", source.rstrip("/"), target.rstrip("/")])


def test_a_partitioned_folder_is_read_with_its_keys(tmp_path, capsys):
    with duckdb.connect() as con:
        con.execute(f"""copy (select i % 50 as age, i % 7 as ill, 'r' || i % 3 as region from range(300) r(i))
            to '{tmp_path / "people"}' (format parquet, partition_by (region))""")
        call = "mondrian(k := 5, qi := ['age', 'region'], sensitive := 'ill')"
        given = ["release", str(tmp_path / "people"), str(tmp_path / "r.parquet"), call]
        assert main(given) == 0
        columns = con.execute(f"select count(*), count(distinct region) from '{tmp_path / 'r.parquet'}'").fetchone()
        assert columns is not None and columns[0] == 300 and columns[1] >= 3
    capsys.readouterr()
    assert main(given) == 1
    assert "pass --replace" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["release", str(tmp_path / "empty"), str(tmp_path / "e.parquet"), call]) == 1
    assert "has no file that ends in .parquet" in capsys.readouterr().err


@pytest.mark.campaign
def test_a_killed_run_leaves_no_release_and_goes_on_where_it_was(tmp_path, spilled):
    file = labelled(tmp_path)
    goal = str(tmp_path / "r.parquet")
    ended = subprocess.run([sys.executable, "-c", KILLED.format(signal="SIGKILL"), str(file), goal, CALL], check=False)
    assert ended.returncode == -signal.SIGKILL
    work = [name for name in left(spilled) if name.startswith("parts-")]
    assert len(work) == 1
    for folder in (spilled, spilled / work[0]):
        assert folder.stat().st_mode & 0o777 == 0o700  # nobody else's business
    assert {name.split(".duckdb")[0] for name in left(tmp_path)} == {"people"}
    with duckdb.connect(str(file)) as con:
        assert con.execute("select table_name from duckdb_tables() order by all").fetchall() == [("once",), ("people",)]
    counted = (
        "import sys, duckdb_anon\nfrom duckdb_anon.parts import run_duckdb\nwork, worked = run_duckdb.work_part, []\n"
        "run_duckdb.work_part = lambda *a: (worked.append(a), work(*a))[1]\n"
        "con = duckdb_anon.connect(sys.argv[1])\nduckdb_anon.release(con, sys.argv[2], sys.argv[3], part_rows=1600, independent=True)\n"
        "parts = len(worked)\nassert parts\nprint(parts)"
    )
    again = subprocess.run(
        [sys.executable, "-c", counted, str(file), goal, CALL], check=True, capture_output=True, text=True
    )
    whole = subprocess.run(
        [sys.executable, "-c", counted, str(file), "other", CALL], check=True, capture_output=True, text=True
    )
    assert int(again.stdout) == int(whole.stdout) - 2  # the two that were done
    with duckdb.connect(str(file)) as con:
        assert differing(con, f"'{goal}'", "once") == 0
    assert left(tmp_path) == ["people.duckdb", "r.parquet"]
    assert left(spilled) == []


@pytest.mark.campaign
def test_a_killed_run_is_not_taken_up_by_another_call_or_other_rows(tmp_path):
    file = labelled(tmp_path)
    subprocess.run([sys.executable, "-c", KILLED.format(signal="SIGKILL"), str(file), "r", CALL], check=False)
    with duckdb_anon.connect(str(file)) as con:
        con.execute("update people set age = age + 1 where rowid % 3 = 0")
        duckdb_anon.release(con, "once", CALL, part_rows=1600, replace=True, independent=True)
        duckdb_anon.release(con, "r", CALL, part_rows=1600, independent=True)
        assert differing(con, "r", "once") == 0
    subprocess.run([sys.executable, "-c", KILLED.format(signal="SIGKILL"), str(file), "s", CALL], check=False)
    with duckdb_anon.connect(str(file)) as con:
        stricter = CALL.replace("3,", "4,")
        duckdb_anon.release(con, "s", stricter, part_rows=3000, independent=True)
        duckdb_anon.release(con, "once", stricter, part_rows=3000, replace=True, independent=True)
        assert differing(con, "s", "once") == 0
    assert left(tmp_path) == ["people.duckdb"]


@pytest.mark.campaign
def test_an_interrupted_run_can_be_taken_up(tmp_path, spilled):
    file = labelled(tmp_path)
    ended = subprocess.run(
        [sys.executable, "-c", KILLED.format(signal="SIGINT"), str(file), "r", CALL],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode != 0
    assert [name for name in left(spilled) if name.startswith("parts-")] != []
    assert main(["release", str(file), "r", CALL, "--part-rows", "1600"]) == 0
    assert left(tmp_path) == ["people.duckdb"]


@pytest.mark.campaign
def test_a_full_disk_leaves_nothing(tmp_path):
    file = labelled(tmp_path)
    limited = os.stat(file).st_size + 100_000

    def no_larger() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limited, limited))

    source = tmp_path / "wide.parquet"
    with duckdb.connect(str(file)) as con:
        con.execute(f"copy (select p.*, repeat(md5(i || age), 40) as note from people p, range(30) r(i)) to '{source}'")
    call = "mondrian(3, qi := ['age', 'gender', 'education', 'hours_per_week'], keep := ['note'])"
    command = [sys.executable, "-m", "duckdb_anon.cli", "release", str(source), str(tmp_path / "r.parquet"), call]
    ended = subprocess.run(
        [*command, "--part-rows", "20000"], preexec_fn=no_larger, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 1, ended.stderr
    assert "has no room for the run" in ended.stderr
    assert left(tmp_path) == ["people.duckdb", "wide.parquet"]


@pytest.mark.campaign
def test_two_million_rows_keep_to_their_memory(tmp_path):
    source, target = tmp_path / "people.parquet", tmp_path / "r.parquet"
    with duckdb_anon.connect() as con:
        con.execute("create table people as from anon_sample('census', 40000, seed := 5)")
        con.execute(f"""copy (select * replace (age + i % 3 as age, hours_per_week + i % 5 as hours_per_week)
            from people, range(50) r(i)) to '{source}'""")
    columns = [row[0] for row in duckdb.execute(f"describe from '{source}'").fetchall()]
    qi = ", ".join(repr(c) for c in columns if c != "salary")
    call = f"mondrian(10, l := 3, qi := [{qi}], sensitive := 'salary')"
    command = [sys.executable, "-m", "duckdb_anon.cli", "release", str(source), str(target), call]
    # a process between this one and the measured one: what is started counts the memory of who starts it as its own
    measured = "import os, subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print(os.wait4(p.pid, 0)[1:])"
    done = subprocess.run(
        [sys.executable, "-c", measured, *command, "--memory", "1GB"], stdout=subprocess.PIPE, text=True, check=True
    )
    used = re.search(r"\((\d+), .*ru_maxrss=(\d+)", done.stdout)
    assert used is not None and used[1] == "0", done.stdout
    assert int(used[2]) * 1024 < 1_250_000_000
    assert duckdb.execute(f"select count(*) from '{target}'").fetchall() == [(2_000_000,)]
    assert left(tmp_path) == ["people.parquet", "r.parquet"]
