"""The command line as a shell user meets it: exit codes, stdout, stderr, scripts, pipes."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from duckdb_anon import __version__
from duckdb_anon.cli import main

LABELLED = """
create table people as select i % 50 as age, i % 3 as sex, 'd' || (i % 7) as disease from range(1000) t(i);
comment on column people.age is 'anon: quasi';
comment on column people.sex is 'anon: quasi';
comment on column people.disease is 'anon: sensitive';
"""


@dataclass(frozen=True)
class Done:
    """What a finished command left behind."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line inside this process, with `stdin` as a pipe."""

    def call(*arguments: str, stdin: str = "") -> Done:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        try:
            code = main(arguments)
        except SystemExit as left:
            code = int(left.code or 0)
        return Done(code, *capsys.readouterr())

    return call


def test_command_prints_a_box_and_statements_without_rows_print_nothing(run: Run) -> None:
    done = run("-c", "create table t(i int); insert into t values (1); set threads = 1; begin; commit")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run("-c", "select 42 as answer")
    assert (done.returncode, done.stderr) == (0, "")
    assert "answer" in done.stdout and "│     42 │" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-c", "select nowhere; select 1"), "nowhere"),
        (("-c", "from session"), "does not exist"),  # a variable of the program is no table
        (("-f", "no_such_file.sql"), "duckdb-anon: no_such_file.sql: No such file or directory\n"),
        (("-f", "{folder}/loop.sql"), "deep"),
        (("--readonly", "{folder}/none.duckdb", "-c", "select 1"), "does not exist"),
        (("-c", LABELLED + "from muco('peple', 0.2);"), "did you mean 'people'?"),
    ],
)
def test_what_fails_exits_with_1_and_writes_to_stderr_only(
    run: Run, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "loop.sql").write_text(f".read {tmp_path / 'loop.sql'}\n")
    done = run(*(word.replace("{folder}", str(tmp_path)) for word in words))
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr and "Traceback" not in done.stderr


def test_statements_before_a_failed_one_have_run_and_later_ones_have_not(run: Run, tmp_path: Path) -> None:
    file = str(tmp_path / "a.duckdb")
    done = run(file, "-c", "create table a as select 1 as x; select nowhere; create table b as select 2 as y")
    assert done.returncode == 1
    assert run(file, "--mode", "csv", "-c", "select name from (show tables)").stdout == "name\na\n"


def test_wrong_usage_exits_with_2(run: Run) -> None:
    done = run("--nonsense")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: duckdb-anon")


def test_scripts_and_commands_run_in_the_order_given(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text(LABELLED + "-- no semicolon at the end\nselect count(*) as n from muco('people', 0.5)")
    done = run("--mode", "csv", "-c", "select 'before' as w", "-f", str(script), "-c", "select 'after' as w")
    assert (done.stdout, done.stderr) == ("w\nbefore\nn\n1000\nw\nafter\n", "")


def test_standard_input_is_a_script_when_it_is_no_terminal(run: Run) -> None:
    done = run("--mode", "list", stdin="select ';' as a,\n  1 as b;\nselect $$x;\ny$$ as c; select 3 as d")
    assert done.stdout == "a|b\n;|1\nc\nx;\ny\nd\n3\n"


def test_modes_write_every_row(run: Run) -> None:
    texts = {
        "csv": 'a,b\n1,"x,y"\n2,\n', "list": "a|b\n1|x,y\n2|NULL\n", "tabs": "a\tb\n1\tx,y\n2\tNULL\n",
        "markdown": "| a | b |\n|---|---|\n| 1 | x,y |\n| 2 | NULL |\n", "line": "a = 1\nb = x,y\n\na = 2\nb = NULL\n",
    }  # fmt: skip
    query = "from (values (1, 'x,y'), (2, null)) t(a, b)"
    assert run(*(a for mode in texts for a in ("-c", f".mode {mode}", "-c", query))).stdout == "".join(texts.values())


def test_json_keeps_types(run: Run) -> None:
    done = run(
        "--mode", "json", "-c", "select 1 as a, null as b, 'é' as c, [1.5] as d, true as e; select 1 as a where false"
    )
    answer, empty = done.stdout.rsplit("\n", 2)[0], done.stdout.rsplit("\n", 2)[1]
    assert (json.loads(answer), empty) == ([{"a": 1, "b": None, "c": "é", "d": [1.5], "e": True}], "[]")


def test_large_results_are_complete_in_csv_and_cut_in_boxes(run: Run) -> None:
    assert len(run("--mode", "csv", "-c", "from range(30000)").stdout.splitlines()) == 30001
    assert len(run("-c", ".maxrows 6", "-c", "from range(30000)").stdout.splitlines()) < 20


def test_reader_that_leaves_early_causes_no_complaint() -> None:
    command = f"{sys.executable} -m duckdb_anon.cli --mode csv -c 'from range(3000000)' | head -n 2"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("range\n0\n", "")


def test_point_commands_change_mode_write_files_and_read_scripts(run: Run, tmp_path: Path) -> None:
    inner = tmp_path / "inner.sql"
    inner.write_text("select 'inner' as w;\n")
    out = tmp_path / "out file.csv"
    done = run(stdin=f".mode csv\n.output '{out}'\nselect 1 as a;\n.output\n.read {inner}\n.quit\nselect 'never';\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "w\ninner\n", "")
    assert out.read_text() == "a\n1\n"


def test_wrong_point_commands_say_what_is_allowed(run: Run) -> None:
    for line, message in (
        (".mod csv x", ".mode takes one argument"),
        (".mode cvs", "did you mean 'csv'?"),
        (".nonsense", "unknown command .nonsense"),
        (".read nowhere.sql", ".read nowhere.sql: No such file or directory"),
        (".maxrows none", "give a whole number above 0"),
        (".schema people", "Say SELECT sql FROM duckdb_tables()"),
        (".label people", "Say FROM label_statements('TABLE')"),
        (".output 'a", "a quote is not closed"),
        (".release r muco('people', 0.2)", "Say FROM anon_release('NAME', 'CALL')"),
    ):
        done = run(stdin=f"{line}\nselect 'later';\n")
        assert done.returncode == 1 and message in done.stderr and "later" not in done.stdout


def test_demo_shows_risk_loss_and_query_error(run: Run) -> None:
    done = run("demo", "--rows", "2000")
    assert (done.returncode, done.stderr) == (0, "")
    for part in ("anon: sensitive", "muco('census', 0.2", "identity", "loss", "relative_error"):
        assert part in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 120


def test_version_is_the_package_version(run: Run) -> None:
    assert run("--version").stdout == f"duckdb-anon {__version__}\n"


def test_command_may_follow_a_comment_but_not_stand_in_one(run: Run) -> None:
    done = run(stdin="-- first\n/* then */\n.mode csv\nselect 1 as a;\n/* not\n.mode box\n*/ select 2 as b;\n")
    assert (done.stdout, done.stderr) == ("a\n1\nb\n2\n", "")


def test_time_of_a_statement_stays_out_of_its_result(run: Run) -> None:
    done = run("--mode", "csv", stdin=".timer on\nselect 1 as a;\n")
    assert done.stdout == "a\n1\n"
    assert done.stderr.startswith("Run Time: ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("relese", "people.duckdb", "r", "mondrian('people', 2)"), "no command 'relese' (did you mean 'release'?)"),
        (("release", "{db}", "r.csv", "mondrian('my people', 2)"), "r.csv is the name of a file that is not Parquet"),
        (("release", "{db}", "", "mondrian('my people', 2)"), "the name is empty"),
        (("keygen", "{db}/no/key"), "Not a directory"),
        (("report", "{db}", "--original", "my people", "--release", "r", "--queries", "0"), "whole number from 1"),
        (("report", "{db}", "--original", "my people", "--release", "r", "-o", "no/r.html"), "there is no folder"),
        (("publish", "{db}", "no/p.duckdb"), "there is no folder"),
        (("publish", "{db}", "{db}", "--replace"), "is the database itself"),
        (("publish", "{db}", "{db}.p", "--storage-version", "v0"), "is none that DuckDB"),
        (("demo", "--rows", "-1"), "whole number from 100"),
    ],
)
def test_wrong_words_are_explained(run: Run, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    database = tmp_path / "my clinic.duckdb"
    run(str(database), "-c", 'create table "my people" as select i % 50 as age from range(99) t(i)')
    done = run(*(word.format(db=database) for word in words))
    assert done.returncode in (1, 2) and message in done.stderr and "Traceback" not in done.stderr


def test_tables_with_spaces_are_named_as_they_are(run: Run, tmp_path: Path) -> None:
    database, page = str(tmp_path / "my clinic.duckdb"), tmp_path / "the page.html"
    run(database, "-c", LABELLED.replace("people", '"my people"'))
    assert run("release", database, "first wave", "mondrian('my people', 5)").stderr == ""
    pytest.importorskip("altair", reason="the report extra is not here")
    words = ("--release", "first wave", "-o", str(page), "--targets", "20", "--queries", "5")
    said = run("report", database, "--original", "my peple", *words).stderr
    assert said.startswith("duckdb-anon: report: ") and "there is no table my peple" in said and not page.exists()
    assert run("report", database, "--original", "my people", *words).returncode == 0
    assert page.stat().st_size > 1000
