"""A file of a release is there only where the register lists it."""

import subprocess
import sys
import threading

import pytest

import duckdb_anon

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
@pytest.mark.parametrize("point", ["register.Register.enter", "private_files.os.replace"])
def test_a_process_that_dies_leaves_no_file_without_an_entry(tmp_path, point):
    duckdb_anon.connect(str(tmp_path / "a.db")).execute(TABLE).close()
    file = tmp_path / "r.parquet"
    module, _, name = point.partition(".")
    program = f"""
import os, duckdb_anon
from duckdb_anon.engine import {module}
{module}.{name} = lambda *given, **named: os._exit(9)
duckdb_anon.release(duckdb_anon.connect({str(tmp_path / "a.db")!r}), {str(file)!r}, {CALL!r})
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False)
    con = duckdb_anon.connect(str(tmp_path / "a.db"))
    listed = [name for (name,) in con.execute("select name from anon_register()").fetchall()]
    assert set(map(str, tmp_path.glob("*.parquet"))) <= set(listed)
    assert ended.returncode == 9
    assert not file.exists()
    assert duckdb_anon.release(con, str(file), CALL, replace=True, independent=True)
    assert list(tmp_path.glob(".*part*")) == []
