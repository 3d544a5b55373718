"""Threads of a server open and close connections of their own to one database, all at the same time."""

import doctest
import importlib
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import duckdb_anon

QUERY = "select sex, count(*) from people where age < 20 group by sex"


def test_a_call_is_planned_while_other_connections_close(tmp_path):
    file = str(tmp_path / "people.duckdb")
    kept = duckdb_anon.connect(file)
    kept.execute("create table people as select i % 50 as age, i % 2 as sex, i % 5 as s from range(300) t(i)")
    kept.execute("comment on column people.age is 'anon: quasi'; comment on column people.sex is 'anon: quasi'")
    kept.execute("comment on column people.s is 'anon: sensitive'")
    duckdb_anon.release(kept, "boxes", "mondrian('people', 5)")
    (expected,) = kept.execute("select rewrite_query(?, 'people', 'boxes')", [QUERY]).fetchall()
    kept.close()
    found: list[object] = []

    def serve() -> None:
        for _ in range(4):
            con = duckdb_anon.connect(file)
            try:
                found.extend(con.execute("select rewrite_query(?, 'people', 'boxes')", [QUERY]).fetchall())
            except Exception as error:
                found.append(error)
            finally:
                con.close()

    threads = [threading.Thread(target=serve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 16


def test_a_connection_that_outlives_the_program_says_nothing():
    program = "import json, duckdb_anon; json.kept = duckdb_anon.connect()"  # modules are cleared before it
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""


PACKAGE = Path(duckdb_anon.__file__).parent
FILES = sorted(path for path in PACKAGE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


def test_there_are_examples():
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_examples_of_a_module_give_what_they_show(path):
    name = ".".join(["duckdb_anon", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("duckdb_anon"):
            raise
        pytest.skip(f"{error.name} is not installed")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
