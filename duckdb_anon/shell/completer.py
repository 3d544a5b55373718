"""What a shell can complete: keywords, the package's functions and their parameters, tables and columns.

Knows no terminal: `Words.at` takes the text before the cursor and returns what could stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import duckdb

from duckdb_anon.shell.dot_commands import COMMANDS

_WORD = re.compile(r'[A-Za-z_"][\w"]*$')
_QUOTED = re.compile(r"'([^']*)$")
_CALL = re.compile(r"(\w+)\s*\([^()]*$")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_AFTER_POINT = re.compile(r"^\s*\.(\w*)$")


@dataclass(frozen=True)
class Word:
    """One completion: its text, what kind of thing it is, how many typed characters it replaces."""

    text: str
    kind: str
    replaces: int


@dataclass
class Words:
    """Everything a connection knows, as of the last `refresh`.

    Attributes:
        functions: function of the package to its summary.
        parameters: function to the names of its parameters.
        tables: names of tables and views.
        columns: names of their columns.
        keywords: SQL keywords, lower case.
    """

    functions: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, list[str]] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)

    def learn(self, con: duckdb.DuckDBPyConnection) -> None:
        """Read what does not change: functions, parameters, keywords."""
        self.functions = dict(con.execute('select "function", summary from anon_functions()').fetchall())
        for function, parameter in con.execute('select "function", parameter from anon_parameters()').fetchall():
            self.parameters.setdefault(function, []).append(parameter)
        self.keywords = [name for (name,) in con.execute("select keyword_name from duckdb_keywords()").fetchall()]

    def refresh(self, con: duckdb.DuckDBPyConnection) -> None:
        """Read tables and columns again; keeps the old ones where the connection cannot answer."""
        try:
            rows = con.execute(
                "select table_name, list(column_name order by column_index) from duckdb_columns() "
                "where not internal group by all order by all"
            ).fetchall()
        except duckdb.Error:
            return  # a failed transaction answers nothing until it is rolled back
        self.tables = [table for table, _ in rows]
        self.columns = sorted({column for _, columns in rows for column in columns})

    def at(self, before: str) -> list[Word]:
        """Completions for the text before the cursor, the likeliest kinds first.

        >>> [w.text for w in Words(functions={'muco': ''}, keywords=['from']).at('from mu')]
        ['muco(']
        """
        point = _AFTER_POINT.match(before)
        if point:
            return _matching(point.group(1), ((name, "command") for name in COMMANDS))
        if before.count("'") % 2:
            typed = _QUOTED.search(before)
            inside = typed.group(1) if typed else ""
            return _matching(inside, self._names(quote=False))
        word = _WORD.search(before)
        typed_word = word.group() if word else ""
        call = _CALL.search(before[: len(before) - len(typed_word)])
        own = self.parameters.get(call.group(1).lower(), []) if call else []
        candidates = [(f"{name} := ", "parameter") for name in own]
        candidates += [(f"{name}(", "function") for name in self.functions]
        candidates += self._names(quote=True)
        if typed_word:
            upper = typed_word.isupper()
            candidates += [(k.upper() if upper else k, "keyword") for k in self.keywords]
        elif not own:
            return []
        else:
            candidates = candidates[: len(own)]
        return _matching(typed_word, candidates)

    def _names(self, quote: bool) -> list[tuple[str, str]]:
        named = [(table, "table") for table in self.tables] + [(column, "column") for column in self.columns]
        return [(_spelled(name) if quote else name.replace("'", "''"), kind) for name, kind in named]


def _spelled(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _matching(typed: str, candidates: Iterable[tuple[str, str]]) -> list[Word]:
    folded = typed.lower()
    found = dict.fromkeys(
        Word(text, kind, len(typed))
        for text, kind in candidates
        if text.lower().startswith(folded) or text.lower().startswith(f'"{folded}')
    )
    return list(found)
