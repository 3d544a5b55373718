"""Where a statement ends: the one thing a shell must know before it may send a text to DuckDB.

Quotes, dollar quotes and comments are skipped; nothing else of SQL is understood here.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
    (?P<escaped>\b[eE]'(?:[^'\\]|''|\\.)*(?:'|\Z))
  | (?P<text>'(?:[^']|'')*(?:'|\Z))
  | (?P<name>"(?:[^"]|"")*(?:"|\Z))
  | (?P<dollar>\$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z))
  | (?P<line>--[^\n]*)
  | (?P<block>/\*.*?(?:\*/|\Z))
  | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)


def split_complete(text: str) -> tuple[str, str]:
    """Cut `text` after its last statement-ending semicolon: what may run, and what is still being written.

    >>> split_complete("select ';'; select 1 -- more;")
    ("select ';';", ' select 1 -- more;')
    """
    cut = max((m.end() for m in _TOKEN.finditer(text) if m.lastgroup == "end"), default=0)
    return text[:cut], text[cut:]


def is_blank(text: str) -> bool:
    r"""Tell whether `text` holds nothing but space, comments and semicolons.

    >>> is_blank(" -- a note\n ; "), is_blank("select 1")
    (True, False)
    """
    ignored = ("line", "block", "end")
    return not _TOKEN.sub(lambda m: " " if m.lastgroup in ignored else m.group(), text).strip()
