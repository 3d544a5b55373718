"""README's picture of a session: the statements of its worked example and the boxes that the shell writes, as SVG."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

import duckdb

from duckdb_anon.shell.render import render

_WIDTH, _HEIGHT, _LEFT, _TOP = 8.4, 18, 16, 52  # of a character, of a line, of the margins, in pixels
_TEXT = "#d8dee9"
_COLOURS = {"keyword": "#7ee787", "string_const": "#ffa28b", "numeric_const": "#9aa4b2", "comment": "#9aa4b2"}
_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" \
aria-label="A session: a release is made, attacked, and asked a question">
<rect width="{width}" height="{height}" rx="8" fill="#161b22"/>
<circle cx="20" cy="18" r="6" fill="#ff5f57"/><circle cx="40" cy="18" r="6" fill="#febc2e"/>\
<circle cx="60" cy="18" r="6" fill="#28c840"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
"""


def session(statement: str, result: duckdb.DuckDBPyRelation | None) -> list[str]:
    """What the prompt shows of a statement without its comments, and of its result."""
    lines = [line for line in statement.strip().splitlines() if not line.startswith("--")]
    lines[-1] = lines[-1].removesuffix(";") + ";"
    shown = [f"{'  ... ' if number else 'anon> '}{line}" for number, line in enumerate(lines)]
    if result is None:
        return shown
    box = io.StringIO()
    render(result, "box", 20, box)
    return shown + box.getvalue().rstrip().splitlines()


def svg(lines: Iterable[str]) -> str:
    """Lines of a session as a picture; SQL is coloured by DuckDB's lexer."""
    lines = [*lines, "anon> "]
    width = round(max(map(len, lines)) * _WIDTH + 2 * _LEFT)
    texts = [
        f'<text x="{_LEFT + start * _WIDTH:.1f}" y="{_TOP + row * _HEIGHT}" fill="{colour}"'
        f"{' font-weight=' + chr(34) + 'bold' + chr(34) if colour == _COLOURS['keyword'] else ''} "
        f'textLength="{len(text) * _WIDTH:.1f}" lengthAdjust="spacingAndGlyphs" xml:space="preserve">'
        f"{html.escape(text)}</text>\n"
        for row, line in enumerate(lines)
        for start, text, colour in _coloured(line)
    ]
    return _HEAD.format(width=width, height=_TOP + len(lines) * _HEIGHT) + "".join(texts) + "</g>\n</svg>\n"


def _coloured(line: str) -> Iterator[tuple[int, str, str]]:
    """Pieces of a line without blanks at their ends: where each begins, its text and its colour."""
    is_sql = line.startswith(("anon> ", "  ... "))
    tokens = [(place + 6, kind.name) for place, kind in duckdb.tokenize(line[6:])] if is_sql else []
    starts = [(0, "prompt"), *tokens, (len(line), "")]
    for (start, kind), (end, _) in pairwise(starts):
        text = line[start:end].rstrip() if is_sql else line
        if text.strip():
            indent = len(text) - len(text.lstrip()) if is_sql else 0
            # DuckDB's keywords include names of columns; README writes those that are meant in capitals
            plain = kind == "keyword" and not text.isupper()
            yield start + indent, text[indent:], _TEXT if plain else _COLOURS.get(kind, _TEXT)


def is_shown(statement: str) -> bool:
    """Whether the picture shows a statement of README: those on the release that is checked."""
    return re.search(r"\bchecked\b", statement) is not None
