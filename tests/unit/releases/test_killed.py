"""What a process leaves beside what it publishes when it is killed: nothing of the original."""

import subprocess
import sys
from pathlib import Path

import pytest

import duckdb_anon
from tests.reference.killed import PREAMBLE

pytestmark = pytest.mark.campaign

CALL = "mondrian('people', 5, qi := ['age'], sensitive := 'dis')"
WORK = {
    "release": "duckdb_anon.release(duckdb_anon.connect(source), target + '/r.parquet', CALL, independent=True)",
    "publish": "publish(source, target + '/published.duckdb')",
}
PROGRAM = f"""{PREAMBLE}
from duckdb_anon.serve.publish import publish
source, target, CALL = sys.argv[2:]
count()
"""


def _run(work: str, source: Path, target: Path, point: int) -> subprocess.CompletedProcess[str]:
    program = f"{PROGRAM}{WORK[work]}\nprint(seen[0])"
    command = [sys.executable, "-c", program, str(point), str(source), str(target), CALL]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("work", ["release", "publish"])
def test_a_killed_process_leaves_nothing_of_the_original_beside_what_it_publishes(work, tmp_path):
    folder = tmp_path / "holder"
    folder.mkdir()
    source = folder / "people.duckdb"
    con = duckdb_anon.connect(str(source))
    con.execute("""create table people as select 'Zyx' || (range * 7919) || 'Name' as name, 20 + range * 7 % 40 as age,
        'ill' || range % 9 as dis from range(3000)""")
    con.execute("comment on column people.name is 'anon: identifier'")
    duckdb_anon.release(con, "boxes", CALL)
    con.close()
    whole = source.read_bytes()
    assert b"Zyx" in whole  # what is looked for stands in such files as it is
    done = _run(work, source, _empty(tmp_path / "whole"), 0)
    assert done.returncode == 0, done.stderr
    statements = int(done.stdout)
    for number, point in enumerate(range(1, statements + 1, max(1, statements // 8))):
        source.write_bytes(whole)
        target = _empty(tmp_path / str(number))
        assert _run(work, source, target, point).returncode == -9
        for file in (file for file in target.rglob("*") if file.is_file()):
            assert b"Zyx" not in file.read_bytes(), (file, point, statements)
        Path(f"{source}.wal").unlink(missing_ok=True)


def _empty(folder: Path) -> Path:
    folder.mkdir()
    return folder
