"""`duckdb-anon run`: a plan is done whole, or nothing is written."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import duckdb_anon
from duckdb_anon.cli import main
from duckdb_anon.engine.records.private_files import alone

PLAN = """
[tables]
people = "people.csv"
[labels.people]
age = "quasi"
gender = "quasi"
education = "quasi"
salary = "sensitive"
[[releases]]
name = "boxes"
original = "people"
call = "mondrian('people', k := 10)"
output = "out/boxes.parquet"
[releases.checks]
k = {k}
identity = {identity}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("run")
    con = duckdb_anon.connect()
    con.execute(f"copy (from anon_sample('census', 300, seed := 7)) to '{made / 'people.csv'}'")
    con.close()
    return made


def run(folder: Path, name: str, k: int = 10, identity: float = 0.5) -> int:
    plan = folder / name
    plan.write_text(PLAN.format(k=k, identity=identity).replace("out/", f"{plan.stem}/"), encoding="utf-8")
    return main(["run", str(plan)])


def test_release_that_holds_its_checks_is_written_once(folder, capsys):
    goal = folder / "good" / "boxes.parquet"
    assert run(folder, "good.toml") == 0
    first = goal.read_bytes()
    with duckdb_anon.connect() as con:
        k = con.execute(f"""select min(n) from (select count(*) as n from '{goal}'
            group by age, gender, education)""").fetchall()
        assert k[0][0] >= 10
        said = con.execute(f"select decode(value) from parquet_kv_metadata('{goal}') where decode(key) = 'anon'")
        assert said.fetchall()[0][0].startswith("anon: release of people by mondrian(k := 10)")
    assert run(folder, "good.toml") == 0
    assert "kept, nothing has changed" in capsys.readouterr().out
    assert goal.read_bytes() == first


@pytest.mark.parametrize("limits, told", [({"k": 50}, "k is 1"), ({"identity": 0.0001}, "identity is 0.")])
def test_nothing_is_written_where_a_check_fails(folder, capsys, limits, told):
    assert run(folder, f"bad{len(told)}.toml", **limits) == 3  # type: ignore[arg-type]
    said = capsys.readouterr().err
    assert told in said and "nothing was written" in said
    assert not (folder / f"bad{len(told)}").exists()


@pytest.mark.parametrize("old, new, message", [
    ("k = 10", "kk = 10", "checks of boxes has unknown 'kk'"),
    ('"quasi"', '"quasy"', "did you mean 'quasi'"),
    ("[tables]", "[tabels]", "did you mean 'tables'"),
    ('original = "people"', 'original = "peple"', "did you mean 'people'"),
])  # fmt: skip
def test_plan_that_cannot_be_right_is_refused(folder, capsys, old, new, message):
    plan = folder / "wrong.toml"
    plan.write_text(PLAN.format(k=10, identity=0.5).replace(old, new), encoding="utf-8")
    assert main(["run", str(plan)]) == 1
    assert message in capsys.readouterr().err


def test_the_example_is_written_where_it_says(tmp_path):
    example = Path(__file__).parents[2] / "examples" / "release_by_plan.toml"
    plan = tmp_path / example.name
    plan.write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    with duckdb_anon.connect() as con:
        con.execute(f"copy (from anon_sample('census', 2000, seed := 7)) to '{tmp_path / 'people.csv'}'")
    assert main(["run", str(plan)]) == 0
    assert (tmp_path / "boxes.parquet").exists()


def test_a_plan_with_a_key_continues_its_release(tmp_path, capsys):
    con, file, plan = duckdb_anon.connect(), tmp_path / "boxes.parquet", tmp_path / "plan.toml"
    con.execute("create table every as select row_number() over () as id, * from anon_sample('census', 360, seed := 7)")

    def ran(records: int, text: str) -> int:
        con.execute(f"copy (from every where id <= {records}) to '{tmp_path / 'people.csv'}'")
        plan.write_text(text.replace("out/", ""), encoding="utf-8")
        return main(["run", str(plan)])

    text = PLAN.format(k=10, identity=0.9)
    keyed = text.replace("output =", 'key = "id"\noutput =')
    assert ran(300, keyed) == 0
    con.execute(f"create table first as from '{file}'")
    assert ran(360, keyed) == 0
    assert "60 new records published" in capsys.readouterr().err
    assert con.execute(f"select count(*) from (from first except all from '{file}')").fetchall() == [(0,)]
    assert con.execute(f"select count(*) from '{file}'").fetchall() == [(360,)]
    # a run that fails leaves the register as it was, and one without the key is refused
    before = (tmp_path / ".plan.toml.register.duckdb").read_bytes()
    assert ran(350, keyed.replace("k = 10\n", "k = 400\n")) == 3
    assert ran(340, text) == 1
    assert "people has been released before" in capsys.readouterr().err
    assert (tmp_path / ".plan.toml.register.duckdb").read_bytes() == before


NIGHTLY = """
[tables]
people = "people.csv"
[labels.people]
age = "quasi"
disease = "sensitive"
[[releases]]
name = "boxes"
original = "people"
call = "mondrian('people', k := 5)"
key = "nr"
output = "boxes.parquet"
"""


def _night(folder: Path, rows: range, columns: str = "nr,age,disease", plan: str = "") -> int:
    values = {
        "nr": lambda i: i,
        "age": lambda i: 20 + i % 50,
        "years": lambda i: 20 + i % 50,
        "disease": lambda i: f"d{i % 9}",
    }
    lines = [columns, *(",".join(str(values[name](i)) for name in columns.split(",")) for i in rows)]
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "plan.toml").write_text(plan + NIGHTLY, encoding="utf-8")
    return main(["run", str(folder / "plan.toml")])


def test_five_nights_an_empty_or_much_smaller_input_writes_nothing_and_the_next_night_goes_on(tmp_path, capsys):
    assert _night(tmp_path, range(300)) == 0
    kept = {
        path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix in (".parquet", ".json", ".duckdb")
    }
    for rows, why in ((range(0), "the input has no rows"), (range(200), "has 200 rows and had 300")):
        assert _night(tmp_path, rows) == 3
        assert why in capsys.readouterr().err
        assert all((tmp_path / name).read_bytes() == content for name, content in kept.items())
    assert _night(tmp_path, range(330)) == 0
    assert "30 new" in capsys.readouterr().err
    assert _night(tmp_path, range(330), "nr,years,disease") == 1
    assert "people: changed since the last run: 'age' is gone, 'years' is new" in capsys.readouterr().err
    assert _night(tmp_path, range(250), plan="[input]\nshrink = 0.5\n") == 0
    assert _night(tmp_path, range(250), plan="[input]\nshrink = 5\n") == 1


CHILD = """
import os, resource, signal, sys
from duckdb_anon.cli import main
moved, replace, point = [], os.replace, int(sys.argv[2])
if sys.argv[1] == "killed":
    def stopped(source, goal):
        if len(moved) == point:
            os.kill(os.getpid(), signal.SIGKILL)
        moved.append(goal)
        replace(source, goal)
    os.replace = stopped
else:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (point, point))
sys.exit(main(["run", sys.argv[3]]))
"""


def _child(folder: Path, how: str, point: int) -> subprocess.CompletedProcess[str]:
    """Run the plan of a folder in a process that is killed before it moves a file, or may write no large file."""
    command = [sys.executable, "-c", CHILD, how, str(point), str(folder / "plan.toml")]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


def _contents(folder: Path) -> dict[str, bytes]:
    """What a night has written."""
    return {
        path.name: path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in (".parquet", ".json", ".duckdb") or path.name.endswith((".part", ".journal"))
    }


SECOND = """
[[releases]]
name = "buckets"
original = "people"
call = "anatomy('people', l := 3)"
independent = true
output = "out/buckets.parquet"
"""


@pytest.mark.skipif(os.name != "posix", reason="processes are killed by signals")
@pytest.mark.parametrize(
    "moved", [0, 2, pytest.param(1, marks=pytest.mark.campaign), pytest.param(4, marks=pytest.mark.campaign)]
)
def test_a_killed_night_is_finished_by_the_next_one_or_has_changed_nothing(tmp_path, capsys, monkeypatch, moved):
    monkeypatch.setattr(sys.modules[__name__], "NIGHTLY", NIGHTLY + SECOND)
    assert _night(tmp_path, range(300)) == 0
    first = _contents(tmp_path)
    people = tmp_path / "people.csv"
    people.write_text(people.read_text() + "".join(f"{i},{20 + i % 50},d{i % 9}\n" for i in range(300, 330)))
    done = _child(tmp_path, "killed", moved)  # moved: the journal, both files, the state, the register
    assert done.returncode == -signal.SIGKILL and done.stdout == ""
    left = _contents(tmp_path)
    if moved == 0:
        assert {name: left[name] for name in first} == first
    assert main(["run", str(tmp_path / "plan.toml")]) == 0
    said = capsys.readouterr()
    assert ("30 new" in said.err) == (moved == 0) and ("kept" in said.out) == (moved > 0)
    now = _contents(tmp_path)
    assert now.keys() == first.keys() and all(now[name] != first[name] for name in first)
    # no second draw of what was decided
    assert moved < 2 or now["boxes.parquet"] == left["boxes.parquet"]
    assert _night(tmp_path, range(340)) == 0
    assert "10 new" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="the size of files is limited by setrlimit")
def test_a_night_without_space_says_so_and_writes_nothing(tmp_path):
    assert _night(tmp_path, range(300)) == 0
    first = _contents(tmp_path)
    people = tmp_path / "people.csv"
    people.write_text(people.read_text() + "".join(f"{i},{20 + i % 50},d{i % 9}\n" for i in range(300, 330)))
    done = _child(tmp_path, "full", 100_000)
    assert done.returncode == 1 and "register.duckdb: File too large" in done.stderr
    assert _contents(tmp_path) == first
    assert main(["run", str(tmp_path / "plan.toml")]) == 0


def test_a_second_run_at_the_same_time_is_refused(tmp_path, capsys):
    assert _night(tmp_path, range(300)) == 0
    first = _contents(tmp_path)
    with alone(tmp_path / ".plan.toml.lock", "unused"):
        assert _night(tmp_path, range(330)) == 1
        assert "another run of this plan is under way" in capsys.readouterr().err
    assert _contents(tmp_path) == first
    assert _night(tmp_path, range(330)) == 0


def test_checks_of_a_plan_with_a_person_count_individuals(tmp_path, capsys):
    rows = [f"{i % 100},{20 + i % 100 % 30},d{i % 9}" for i in range(300)]
    (tmp_path / "people.csv").write_text("\n".join(["nr,age,disease", *rows]) + "\n", encoding="utf-8")
    plan = NIGHTLY.replace('key = "nr"\n', "").replace('age = "quasi"', 'age = "quasi"\nnr = "person"')
    for k, code in ((101, 3), (5, 0)):  # 100 individuals with 300 records
        text = f"{plan}[releases.checks]\nk = {k}\nl = 1.5\n"
        (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
        assert main(["run", str(tmp_path / "plan.toml")]) == code
        said = capsys.readouterr().err
    con = duckdb_anon.connect()
    least = con.execute(f"""select min(n) from (select count(distinct nr) as n from
        (select (row_number() over () - 1) % 100 as nr, 20 + (row_number() over () - 1) % 100 % 30 as a from range(300))
        join (select distinct age.lower as lo, age.upper as up from '{tmp_path}/boxes.parquet') on a between lo and up
        group by lo, up)""").fetchall()[0][0]
    assert f"k is {least}, at least 5" in said and least >= 5


def test_the_policy_for_answers_of_a_plan_is_written_on_its_table(tmp_path, capsys):
    with duckdb_anon.connect(str(tmp_path / "p.duckdb")) as con:
        con.execute("create table people as select i % 3 as a, i as b from range(90) t(i)")
        con.execute("comment on table people is 'staff; anon: outputs(threshold := 3)'")
    text = '[tables]\npeople = "p.duckdb:people"\n[labels.people]\na = "quasi"\n[outputs.people]\nthreshold = 31\n'
    (tmp_path / "plan.toml").write_text(text)
    for said in ("was written", "was kept"):
        assert main(["run", str(tmp_path / "plan.toml")]) == 0
        assert said in capsys.readouterr().out
    with duckdb_anon.connect(str(tmp_path / "p.duckdb")) as con:
        comments = con.execute("select comment from duckdb_tables() where table_name = 'people'").fetchall()
        assert comments == [("staff; anon: outputs(threshold := 31)",)]
        found = con.execute(
            "select count(*), any_value(suppressed) from safe_output('select a, count(*) from people group by a')"
        )
        assert found.fetchall() == [(0, None)]  # each group has 30
    for old, new in (
        ("threshold = 31", "treshold = 3"),
        ("p.duckdb:people", "people.csv"),
        ("outputs.people", "outputs.nobody"),
    ):
        (tmp_path / "plan.toml").write_text(text.replace(old, new))
        assert main(["run", str(tmp_path / "plan.toml")]) == 1


def test_the_page_of_evidence_has_the_figures_that_the_checks_judge(tmp_path, capsys):
    pytest.importorskip("vl_convert", reason="the report extra is not installed")
    with duckdb_anon.connect() as con:
        con.execute(f"copy (from anon_sample('census', 300, seed := 7)) to '{tmp_path / 'people.csv'}'")
    plan, page, file = tmp_path / "plan.toml", tmp_path / "boxes.html", tmp_path / "boxes.parquet"

    def ran(identity: float, statements: str = "") -> tuple[int, str]:
        text = PLAN.format(k=10, identity=identity).replace("out/boxes.parquet", "boxes.parquet")
        text = text.replace("[releases.checks]", 'evidence = "boxes.html"\n[releases.checks]\nadvantage = 1')
        plan.write_text(f"{text}{statements}", encoding="utf-8")
        return main(["run", str(plan)]), capsys.readouterr().err

    assert ran(0.0001)[0] == 3
    assert not page.exists() and not file.exists()
    code, said = ran(0.5)
    assert code == 0
    first, (risk,) = file.read_bytes(), json.loads(page.with_suffix(".json").read_text())["releases"][0]["risk"]
    assert f"identity is {risk['identity_high']:.4g}, at most" in said
    assert f"advantage is {risk['advantage']:.4g}, at most" in said
    page.unlink()  # it is made again of the file, which stays
    assert ran(0.5)[0] == 0 and page.exists()
    before = page.stat().st_mtime_ns
    assert ran(0.5)[0] == 0 and page.stat().st_mtime_ns == before
    assert ran(0.5, '[statements]\npurpose = "Labour research"\n')[0] == 0
    assert "Labour research" in page.read_text() and file.read_bytes() == first


def test_the_checks_measure_the_same_without_a_page(folder, capsys):
    pytest.importorskip("vl_convert", reason="the report extra is not installed")
    lines = []
    for name, page in (("with", 'evidence = "with.html"\n'), ("without", "")):
        plan = folder / f"{name}.toml"
        text = (
            PLAN.format(k=10, identity=0.9)
            .replace("out/", f"{name}/")
            .replace("[releases.checks]", f"{page}[releases.checks]\nloss = 1\nadvantage = 1")
        )
        plan.write_text(text, encoding="utf-8")
        assert main(["run", str(plan)]) == 0
        lines.append([line for line in capsys.readouterr().err.splitlines() if "is required" in line])
    assert lines[0] == lines[1] and len(lines[0]) == 4


def test_a_release_goes_to_a_table_of_a_database_and_never_over_its_original(tmp_path, capsys):
    with duckdb_anon.connect(str(tmp_path / "people.duckdb")) as con:
        con.execute("create table people as from anon_sample('census', 300, seed := 7)")
    plan = tmp_path / "plan.toml"

    def ran(output: str) -> int:
        text = PLAN.format(k=10, identity=0.9).replace("people.csv", "people.duckdb:people")
        plan.write_text(text.replace("out/boxes.parquet", output), encoding="utf-8")
        return main(["run", str(plan)])

    before = (tmp_path / "people.duckdb").read_bytes()
    assert ran("./people.duckdb") == 1
    assert "the file of an original" in capsys.readouterr().err
    assert (tmp_path / "people.duckdb").read_bytes() == before
    assert ran("released.duckdb") == 0
    with duckdb_anon.connect(str(tmp_path / "released.duckdb")) as con:
        assert con.sql("show tables").fetchall() == [("boxes",)]
        held = con.sql("""select "check", holds from verify_release('boxes') where "check" <> 'signature'""").fetchall()
    assert ("k", True) in held and all(holds for _, holds in held)


@pytest.mark.parametrize(("population", "risk"), [("", 1 / 12), ("every", 1 / 60)])
def test_the_journalist_is_counted_in_the_population_and_is_the_prosecutor_without_one(
    tmp_path, capsys, population, risk
):
    with duckdb_anon.connect() as con:
        con.execute("create table every as select 20 + i % 10 as age, i % 7 as salary, i from range(600) t(i)")
        con.execute(f"copy (select age, salary from every where i < 120) to '{tmp_path / 'people.csv'}'")
        con.execute(f"copy (select age from every) to '{tmp_path / 'every.csv'}'")
    text = PLAN.format(k=12, identity=0.9).replace("out/", "").replace("k := 10", "k := 12")
    text = text.replace('gender = "quasi"\neducation = "quasi"\n', "").replace(
        "identity =", "journalist = 0.09\nidentity ="
    )
    text = text.replace("[labels.people]", 'every = "every.csv"\n[labels.every]\nage = "quasi"\n[labels.people]')
    plan = tmp_path / "plan.toml"
    plan.write_text(f'{text}[statements]\npopulation = "{population}"\n', encoding="utf-8")
    assert main(["run", str(plan)]) == 0
    assert f"journalist is {risk:.4g}, at most 0.09 is required: holds" in capsys.readouterr().err
