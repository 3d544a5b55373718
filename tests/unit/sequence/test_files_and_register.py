"""A file of a release is there only where the register lists it."""

import subprocess
import sys
import threading

import pytest

import duckdb_anon
from duckdb_anon.engine.records.release_digest import release_digest
from tests.reference.killed import PREAMBLE

CALL = "mondrian('t', 5, qi := ['age', 'sex'], sensitive := 'dis')"
TABLE = "create table t as select 20 + range * 7 % 40 as age, range % 2 as sex, range * 13 % 9 as dis from range(400)"


def test_of_four_files_at_once_there_are_those_that_the_register_lists(tmp_path):
    con = duckdb_anon.connect(str(tmp_path / "a.db"))
    con.execute(TABLE)
    con.execute("comment on column t.dis is 'anon: sensitive'")
    written: list[str] = []

    def write(file: str) -> None:
        with con.cursor() as own:
            try:
                duckdb_anon.release(own, file, CALL)
                written.append(file)
            except duckdb_anon.AnonError:
                pass

    threads = [threading.Thread(target=write, args=(str(tmp_path / f"r{k}.parquet"),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    listed = [name for (name,) in con.execute("select name from anon_register()").fetchall()]
    assert sorted(map(str, tmp_path.glob("*.parquet"))) == sorted(listed) == sorted(written)
    assert len(written) <= 1


@pytest.mark.campaign
@pytest.mark.parametrize("point", ["register.Register.enter", "private_files.place"])
def test_a_process_that_dies_leaves_no_file_without_an_entry(tmp_path, point):
    duckdb_anon.connect(str(tmp_path / "a.db")).execute(TABLE).close()
    file = tmp_path / "r.parquet"
    module, _, name = point.partition(".")
    program = f"""
import os, duckdb_anon
from duckdb_anon.engine.records import {module}
{module}.{name} = lambda *given, **named: os._exit(9)
duckdb_anon.release(duckdb_anon.connect({str(tmp_path / "a.db")!r}), {str(file)!r}, {CALL!r})
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False)
    assert ended.returncode == 9 and not file.exists()
    con = duckdb_anon.connect(str(tmp_path / "a.db"))
    assert agreeing(con, tmp_path, "next.parquet") == ([str(file)] if "place" in point else [])


@pytest.mark.campaign
@pytest.mark.weekly
def test_processes_that_are_killed_at_any_point_leave_files_and_register_that_agree(tmp_path):
    """Two processes with four threads each, that write one register; each is killed at one of twenty points."""
    program = tmp_path / "program.py"
    program.write_text(f"""{PREAMBLE}
import threading, time
folder, process = sys.argv[2], sys.argv[3]

while True:
    try:
        con = duckdb_anon.connect(f"{{folder}}/a.db")
        break
    except duckdb.IOException:  # the other process has it
        time.sleep(0.05)

def work(number):
    with con.cursor() as own:
        try:
            duckdb_anon.release(own, f"{{folder}}/{{process}}_{{number}}.parquet", {CALL!r}, independent=True)
        except duckdb_anon.AnonError as error:
            assert error.code == "released-meanwhile", error

count()
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(seen[0])
""")

    def command(folder, process, point):
        return [sys.executable, str(program), str(point), str(folder), process]

    def database(folder):
        folder.mkdir()
        duckdb_anon.connect(str(folder / "a.db")).execute(TABLE).close()
        return folder

    whole = subprocess.check_output(command(database(tmp_path / "whole"), "a", 0), text=True)
    points = [int(whole) * number // 20 + 1 for number in range(20)]
    for number, pair in enumerate(zip(points[::2], points[1::2], strict=True)):
        folder = database(tmp_path / str(number))
        both = [
            subprocess.Popen(command(folder, *one), stdout=subprocess.DEVNULL) for one in zip("ab", pair, strict=True)
        ]
        assert -9 in [process.wait() for process in both]
        with duckdb_anon.connect(str(folder / "a.db")) as con:
            agreeing(con, folder, "next.parquet")


def agreeing(con, folder, name):
    """Make one more release; the other files of the folder, once they are those of the register and hold its rows."""
    duckdb_anon.release(con, str(folder / name), CALL, independent=True)
    listed = dict(con.execute("select name, digest from anon_register()").fetchall())
    files = sorted(map(str, folder.glob("*.parquet")))
    assert sorted(listed) == files
    assert [release_digest(con, f"'{file}'") for file in files] == [listed[file] for file in files]
    return [file for file in files if not file.endswith(name)]
