"""The prompt of the `shell` extra: history, many-line editing, completion and colours, by prompt_toolkit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected, has_focus
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import PostgresLexer

from duckdb_anon.shell.completer import Words
from duckdb_anon.shell.session import Session
from duckdb_anon.shell.statement_splitter import is_blank, split_complete

_LEAST_WORD = 2


class WordCompleter(Completer):
    """Offers `Words` to prompt_toolkit."""

    def __init__(self, words: Words) -> None:
        """Complete from `words`, which may change between prompts."""
        self.words = words

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield what could stand at the cursor; while typing only once a word has begun."""
        for word in self.words.at(document.text_before_cursor):
            if complete_event.completion_requested or word.replaces >= _LEAST_WORD:
                yield Completion(
                    word.text, -word.replaces, display_meta=self.words.functions.get(word.text[:-1], word.kind)
                )


def is_finished(text: str) -> bool:
    """Tell whether Enter should run `text`: a command, nothing at all, or statements that have all ended.

    >>> is_finished("select 1;"), is_finished("select 1"), is_finished(".help")
    (True, False, True)
    """
    if not text.strip() or text.lstrip().startswith("."):
        return True
    complete, rest = split_complete(text)
    return bool(complete) and is_blank(rest)


def prompt_reader(session: Session, history: Path) -> Callable[[str], str]:
    """A function that reads one statement or command, with all the comfort there is.

    Args:
        session: whose connection the completions come from.
        history: file of earlier statements; readable by its owner alone, since statements may hold values.

    Returns:
        A function from the prompt to what was typed. It raises EOFError and KeyboardInterrupt as `input` does.
    """
    words = Words()
    words.learn(session.con)
    reader: PromptSession[str] = PromptSession(
        history=_opened(history),
        lexer=PygmentsLexer(PostgresLexer),
        completer=WordCompleter(words),
        complete_while_typing=True,
        auto_suggest=AutoSuggestFromHistory(),
        key_bindings=_keys(),
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: "... ".rjust(width),
    )

    def read(prompt: str) -> str:
        words.refresh(session.con)
        return reader.prompt(prompt)

    return read


def _opened(path: Path) -> History:
    """The history of `path`, or one for this session only where the file cannot be written."""
    try:
        path.touch(mode=0o600, exist_ok=True)
        path.chmod(0o600)
        path.open("a").close()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _keys() -> KeyBindings:
    """Enter runs what is finished and otherwise begins a new line."""
    keys = KeyBindings()

    @keys.add("enter", filter=has_focus("DEFAULT_BUFFER") & ~completion_is_selected)
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_finished(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    @keys.add("enter", filter=has_focus("DEFAULT_BUFFER") & completion_is_selected)
    def _take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return keys
