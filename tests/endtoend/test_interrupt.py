"""Ctrl-C as users press it: SIGINT to a real process that is in the middle of a long call."""

import signal
import subprocess
import sys
import time

import duckdb
import pytest

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

LABELS = "qi := ['age', 'gender', 'education', 'hours_per_week'], sensitive := 'salary'"
CALLS = {
    "recommend": f"from recommend('people', {LABELS}, rows := 200000, targets := 200000)",
    "disclosure": f"from disclosure('people', 'boxes', {LABELS})",
}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A database with a table large enough to be busy with for a while, and a release of it."""
    path = tmp_path_factory.mktemp("busy") / "people.duckdb"
    subprocess.run(
        [sys.executable, "-m", "duckdb_anon.cli", str(path), "-c",
         "create table people as from anon_sample('census', 200000, seed := 1);"
         f"create table boxes as from mondrian('people', 2, {LABELS}, row_id := true);"],
        check=True,
    )  # fmt: skip
    return path


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_interrupt_ends_a_long_call_with_a_plain_message(file, call):
    command = [sys.executable, "-m", "duckdb_anon.cli", str(file), "-c", f".maxrows 1\nselect 'begun';\n{call};"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while "begun" not in process.stdout.readline():
        assert process.poll() is None
    time.sleep(1.5)
    pressed = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        rest, said = process.communicate(timeout=60)
    finally:
        process.kill()
    print(f"ended {time.monotonic() - pressed:.1f} s after the key")
    assert (process.returncode, said) == (130, "interrupted\n")
    assert "│ frequency" not in rest
    with duckdb.connect(str(file), read_only=True) as con:
        assert con.execute("select table_name from duckdb_tables() order by all").fetchall() == [
            ("boxes",),
            ("people",),
        ]
