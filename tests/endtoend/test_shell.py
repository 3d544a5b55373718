"""The interactive shell on a real pseudo-terminal, with the shell extra and without it."""

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

pexpect = pytest.importorskip("pexpect", reason="pexpect (extra 'test') drives the terminal")

WITH_EXTRA = ["-m", "duckdb_anon.cli"]
WITHOUT_EXTRA = [
    "-c",
    "import sys; sys.modules['prompt_toolkit'] = None; import duckdb_anon.cli as c; sys.exit(c.main())",
]
LONG = "select sum(sqrt(a.range * b.range)) from range(1000000) a, range(1000000) b;"
PASTED = ("\x1b[200~", "\x1b[201~")  # what a terminal sends around pasted text
README = Path(__file__).resolve().parents[2] / "README.md"
_SQL_WITH_OUTPUT = re.compile(r"```sql\n(.*?)```\n\n?((?:\|[^\n]*\n)*)", re.DOTALL)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")


class Terminal:
    """A shell on a pseudo-terminal; `output` is what it wrote, without colours."""

    def __init__(self, start: list[str], home: Path, *arguments: str) -> None:
        environment = {**os.environ, "HOME": str(home), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self.child = pexpect.spawn(
            sys.executable, [*start, *arguments], env=environment, dimensions=(40, 120), encoding="utf-8", timeout=30
        )
        self.output = ""
        self.wait_for("anon>")

    def wait_for(self, text: str, seconds: float = 30) -> None:
        """Read until `text` has been written since the last call."""
        end = time.monotonic() + seconds
        while text not in self.output:
            assert time.monotonic() < end, f"{text!r} did not come; got {self.output[-800:]!r}"
            try:
                self.output += _ESCAPES.sub("", self.child.read_nonblocking(4096, 0.2))
            except pexpect.TIMEOUT:
                continue
        self.output = self.output[self.output.index(text) + len(text) :]

    def type(self, keys: str) -> None:
        """Press keys."""
        self.child.send(keys)

    def leave(self) -> int:
        """Press Ctrl-D and return the exit code."""
        self.child.send("\x04")
        self.child.expect(pexpect.EOF)
        self.child.close()
        return int(self.child.exitstatus)


@pytest.fixture(scope="module", params=["with the extra", "without it"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """One open shell of each kind for all tests: each must leave it usable."""
    if request.param == "with the extra":
        pytest.importorskip("prompt_toolkit", reason="the shell extra is not installed")
    home = tmp_path_factory.mktemp("home")
    terminal = Terminal(WITH_EXTRA if request.param == "with the extra" else WITHOUT_EXTRA, home)
    yield terminal
    assert terminal.leave() == 0


@pytest.fixture
def rich(tmp_path: Path) -> Iterator[Terminal]:
    """An open shell with the extra."""
    pytest.importorskip("prompt_toolkit", reason="the shell extra is not installed")
    terminal = Terminal(WITH_EXTRA, tmp_path)
    yield terminal
    terminal.child.close(force=True)


def test_statement_over_several_lines_runs_once_it_ends(shell: Terminal) -> None:
    shell.type("select 40 +\r")
    shell.wait_for("...")
    shell.type("2 as answer\r")
    shell.wait_for("...")
    shell.type(";\r")
    shell.wait_for("│     42 │")
    shell.wait_for("anon>")


def test_errors_leave_the_shell_open(shell: Terminal) -> None:
    shell.type("select nowhere;\r")
    shell.wait_for("Binder Error")
    shell.type(".nonsense\r")
    shell.wait_for("unknown command .nonsense")
    shell.type("select 6 * 7 as answer;\r")
    shell.wait_for("│     42 │")
    shell.wait_for("anon>")


def test_long_statement_shows_how_far_it_is_and_an_interrupt_stops_it_within_seconds(shell: Terminal) -> None:
    shell.type(f"{LONG}\r")
    shell.wait_for(", 2 s", seconds=20)
    shell.type("\x03")
    shell.wait_for("interrupted", seconds=10)
    shell.type("select 6 * 7 as answer;\r")
    shell.wait_for("│     42 │")
    shell.wait_for("anon>")


def test_interrupt_stops_a_long_anonymization_and_writes_nothing(shell: Terminal) -> None:
    shell.type("create table c as from anon_sample('census', 600000);\r")
    shell.type("select count(*) as made from c;\r")
    shell.wait_for("│ 600000 │", seconds=60)
    # Its time grows with the square of the rows: no machine is done with it before the interrupt comes.
    shell.type("create table r as from microaggregate('c', 10, groups := 'mdav', qi := ['age', 'education']);\r")
    shell.wait_for("microaggregate: ")
    shell.type("\x03")
    shell.wait_for("interrupted", seconds=15)
    shell.type("select table_name from duckdb_tables();\r")
    shell.wait_for("│ c          │")
    shell.wait_for("anon>")
    shell.type("drop table c;\r")
    shell.wait_for("anon>")


def test_interrupt_at_the_prompt_drops_what_was_typed(shell: Terminal) -> None:
    shell.type("select wrong")
    time.sleep(0.5)
    shell.type("\x03")
    shell.wait_for("anon>")
    shell.type("select 6 * 7 as answer;\r")
    shell.wait_for("│     42 │")
    shell.wait_for("anon>")


@pytest.mark.campaign
def test_blocks_of_readme_run_as_they_are_pasted(shell: Terminal, request: pytest.FixtureRequest) -> None:
    """A statement ends before a comment, and comments have quotes; every cell of a table's last row is shown."""
    begin, end = PASTED if "with the extra" in request.node.name else ("", "")
    blocks = _SQL_WITH_OUTPUT.findall(README.read_text(encoding="utf-8"))
    assert len(blocks) > 2
    for sql, output in blocks:
        shell.type(f"{begin}{sql.rstrip()}{end}\r")
        for cell in output.splitlines()[-1].strip("| ").split(" | ") if output else ():
            shell.wait_for(cell, seconds=120)
    shell.type("select count(*) as n from release;\r")
    shell.wait_for("│ 20000 │", seconds=60)
    shell.wait_for("anon>")
    shell.type("drop table release; drop table checked; drop table people;\r")
    shell.wait_for("anon>")


def test_a_comment_after_a_statement_waits_for_nothing(shell: Terminal) -> None:
    shell.type("select 6 * 7 as answer; -- it's a note; done\r")
    shell.wait_for("│     42 │")
    shell.wait_for("anon>")
    shell.type(".mode line\r")
    shell.wait_for("anon>")
    shell.type("select 1 as one /* it's\r")
    shell.wait_for("...")
    shell.type("; */;\r")
    shell.wait_for("one = 1")
    shell.type(".mode box\r")
    shell.wait_for("anon>")


def test_tab_completes_functions_and_tables(rich: Terminal) -> None:
    rich.type("create table patients as select 1 as age;\r")
    rich.wait_for("anon>")
    rich.type("select count(*) > 0 as answer from anon_fun")
    rich.wait_for("one row per function")
    rich.type("\t")
    time.sleep(0.5)
    rich.type(");\r")
    rich.wait_for("│ true    │")
    rich.type("select count(*) + 41 as answer from pati")
    rich.wait_for("patients")
    rich.type("\t")
    time.sleep(0.5)
    rich.type(";\r")
    rich.wait_for("│     42 │")
    assert rich.leave() == 0


def test_nothing_is_completed_inside_a_comment(con: duckdb.DuckDBPyConnection) -> None:
    pytest.importorskip("prompt_toolkit", reason="the shell extra is not installed")
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from duckdb_anon.shell.prompt import WordCompleter

    con.execute("create table patients as select 1 as age")
    completer = WordCompleter(con)
    completer.refresh()

    def offered(before: str) -> list[str]:
        return [found.text for found in completer.get_completions(Document(before), CompleteEvent())]

    assert offered("select 1; -- pati") == offered("-- it's pati") == offered("/* pati") == []
    assert offered("from pati") == offered("-- it's\nfrom muco('pati") == ["patients"]


def test_history_outlives_the_shell_and_belongs_to_its_owner(rich: Terminal, tmp_path: Path) -> None:
    rich.type("select 6 * 7 as answer;\r")
    rich.wait_for("│     42 │")
    assert rich.leave() == 0
    again = Terminal(WITH_EXTRA, tmp_path)
    again.type("\x1b[A\r")
    again.wait_for("│     42 │")
    assert again.leave() == 0
    assert (tmp_path / ".duckdb_anon_history").stat().st_mode & 0o077 == 0


def test_quit_command_leaves_and_keeps_the_database(tmp_path: Path) -> None:
    file = str(tmp_path / "kept.duckdb")
    first = Terminal(WITHOUT_EXTRA, tmp_path, file)
    first.type("create table kept as select 42 as answer;\r.quit\r")
    first.child.expect(pexpect.EOF)
    first.child.close()
    assert first.child.exitstatus == 0
    second = Terminal(WITHOUT_EXTRA, tmp_path, file)
    second.type("from kept;\r")
    second.wait_for("│     42 │")
    assert second.leave() == 0
