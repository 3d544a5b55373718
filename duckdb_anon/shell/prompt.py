"""The prompt of the `shell` extra: history, editing over several lines, completion and colours, by prompt_toolkit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected, has_focus
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import PostgresLexer

from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.shell.session import COMMANDS, Session, is_blank, is_code, split_line

_LEAST_WORD = 2
_WORD = re.compile(r'[\w."]*$')
_CALL = re.compile(r"(\w+)\s*\([^()]*$")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


class WordCompleter(Completer):
    """Completes dot commands, functions of the package and their parameters, tables, columns and keywords."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        """Read what does not change: functions, parameters, keywords."""
        self.con = con
        self.functions = dict(con.execute('select "function", summary from anon_functions()').fetchall())
        self.parameters: dict[str, list[str]] = {}
        for function, parameter in con.execute('select "function", parameter from anon_parameters()').fetchall():
            self.parameters.setdefault(function, []).append(parameter)
        self.keywords = [name for (name,) in con.execute("select keyword_name from duckdb_keywords()").fetchall()]
        self.names: list[tuple[str, str]] = []

    def refresh(self) -> None:
        """Read tables and columns again; the old ones stay where the connection cannot answer."""
        tables = "select distinct table_name, 'table' from duckdb_columns() where not internal"
        columns = "select distinct column_name, 'column' from duckdb_columns() where not internal"
        try:
            self.names = self.con.execute(f"{tables} union all {columns} order by 2 desc, 1").fetchall()
        except duckdb.Error:
            return  # a failed transaction answers nothing until it is rolled back

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield what could stand at the cursor; while typing only once a word has begun."""
        before = document.text_before_cursor
        found = _WORD.search(before)
        typed = found.group() if found else ""
        if len(typed) < (0 if complete_event.completion_requested else _LEAST_WORD):
            return
        folded = typed.lower()
        for text, meaning in dict(self._candidates(before, typed)).items():
            if text.lower().startswith((folded, f'"{folded}')):
                yield Completion(text, -len(typed), display_meta=meaning)

    def _candidates(self, before: str, typed: str) -> Iterator[tuple[str, str]]:
        """What could stand there, the likeliest kinds first."""
        if before.lstrip() == typed and typed.startswith("."):
            yield from ((f".{name}", command.summary) for name, command in COMMANDS.items())
            return
        before = before[: len(before) - len(typed)]
        if not is_code(before):
            if is_code(before + "'"):  # a table named in a call, and no comment
                yield from ((name.replace("'", "''"), kind) for name, kind in self.names)
        else:
            call = _CALL.search(before)
            yield from (
                (f"{name} := ", "parameter") for name in self.parameters.get(call[1].lower() if call else "", [])
            )
            if typed:
                yield from ((f"{name}(", summary) for name, summary in self.functions.items())
                yield from ((name if _PLAIN.fullmatch(name) else ident(name), kind) for name, kind in self.names)
                yield from ((word.upper() if typed.isupper() else word, "keyword") for word in self.keywords)


def is_finished(text: str) -> bool:
    r"""Tell whether Enter runs `text`: commands, and statements that have all ended, or nothing at all.

    >>> is_finished("select 1; -- it's"), is_finished("select 1"), is_finished(".mode csv\nselect 1")
    (True, False, False)
    """
    pending = ""
    for line in text.split("\n"):
        *_, pending = split_line(pending, line)
    return is_blank(pending)


def prompt_reader(session: Session, history: Path) -> Callable[[str], str]:
    """A function that reads one statement or command. It raises EOFError and KeyboardInterrupt as `input` does."""
    completer = WordCompleter(session.con)
    reader: PromptSession[str] = PromptSession(
        history=_opened(history),
        lexer=PygmentsLexer(PostgresLexer),
        completer=completer,
        complete_while_typing=True,
        auto_suggest=AutoSuggestFromHistory(),
        key_bindings=_keys(),
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: "... ".rjust(width),
    )

    def read(prompt: str) -> str:
        completer.refresh()
        return reader.prompt(prompt)

    return read


def _opened(path: Path) -> History:
    """The history of `path`, or one of this session only where the file cannot be written."""
    try:
        path.touch(mode=0o600, exist_ok=True)
        path.chmod(0o600)
        path.open("a").close()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _keys() -> KeyBindings:
    """Enter takes a completion, runs what is finished and otherwise begins a new line."""
    keys = KeyBindings()

    @keys.add("enter", filter=has_focus("DEFAULT_BUFFER"))
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if completion_is_selected():
            buffer.complete_state = None
        elif is_finished(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    return keys
