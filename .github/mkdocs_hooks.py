"""Pages that are made while the docs site is built: one per function, and the changelog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from duckdb_anon.docs_pages import function_pages


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages to the pages of the site."""
    for name, text in function_pages():
        files.append(File.generated(config, f"functions/{name}.md", content=text))
    changes = Path(__file__).with_name("CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "changelog.md", content=changes))
    return files
