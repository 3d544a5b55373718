"""The adapter in Harlequin itself: the screen, driven by key presses, and the command hsql."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

harlequin = pytest.importorskip("harlequin", reason="the bi extra is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # the screen's own libraries warn

PEOPLE = """
create table people as select i % 50 as age, i % 3 as sex, 'd' || (i % 7) as disease from range(1000) t(i);
comment on column people.age is 'anon: quasi';
comment on column people.sex is 'anon: quasi';
comment on column people.disease is 'anon: sensitive';
"""
HSQL = Path(sys.executable).parent / "hsql"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with a labelled table."""
    path = tmp_path / "p.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(PEOPLE)
    return path


def test_hsql_finds_the_adapter_and_anonymizes(file: Path) -> None:
    command = [str(HSQL), "-a", "anon", str(file), "--csv", "-c", "select count(*) as n from muco('people', 0.2)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["n", "1000"])


def test_hsql_answers_a_wrong_parameter_name_with_the_nearest(file: Path) -> None:
    command = [str(HSQL), "-a", "anon", str(file), "-c", "from muco('people', delte := 0.2)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert "did you mean 'delta'" in " ".join((done.stdout + done.stderr).replace("│", " ").split())


def test_functions_are_completed(file: Path) -> None:
    from duckdb_anon.bi.harlequin import AnonAdapter

    connection = AnonAdapter((str(file),), no_init=True).connect()
    own = {completion.label for completion in connection.get_completions() if completion.type_label == "anon"}
    assert {"muco", "relative_error", "anon_functions"} <= own
    connection.conn.close()


def test_query_typed_on_the_screen_shows_its_result(file: Path) -> None:
    from duckdb_anon.bi.harlequin import AnonAdapter

    async def drive() -> int:
        app = harlequin.Harlequin(AnonAdapter((str(file),), no_init=True), connection_hash="test")
        async with app.run_test(size=(120, 36)) as pilot:
            await until(pilot, lambda: app.editor is not None and app.connection is not None)
            app.editor.text = "select * from muco('people', 0.2)"
            await pilot.press("ctrl+j")
            await until(pilot, lambda: app.results_viewer.get_visible_table() is not None)
            table = app.results_viewer.get_visible_table()
            await until(pilot, lambda: table.source_row_count > 0)
            return int(table.source_row_count)

    assert asyncio.run(drive()) == 1000


async def until(pilot: object, condition: Callable[[], bool], seconds: float = 40) -> None:
    """Let the screen work until `condition` holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the screen did not get there"
        await pilot.pause(0.1)  # type: ignore[attr-defined]
