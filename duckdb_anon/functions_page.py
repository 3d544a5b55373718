"""The page of functions, FUNCTIONS.md, from entries: `python -m duckdb_anon.functions_page` writes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from duckdb_anon.model.function_specs import SECTIONS, Entry
from duckdb_anon.registry import ENTRIES

PAGE = Path(__file__).with_name("FUNCTIONS.md")
_HEAD = """# Functions

`FROM anon_functions()` lists every parameter with its default and range, the paper behind the function, an example,
and what it promises and costs; in the shell, `.functions muco` shows one.
"""


def page(entries: Sequence[Entry]) -> str:
    """The text of the page: a table of functions and their summaries in each section."""
    text = _HEAD
    for section in SECTIONS:
        rows = [f"| `{entry.name}` | {entry.summary} |" for entry in entries if entry.section == section]
        text += "\n".join(["", f"## {section}", "", "| function | what it does |", "|---|---|", *rows, ""])
    return text


if __name__ == "__main__":
    PAGE.write_text(page(ENTRIES), encoding="utf-8")
