"""README is short, names every example, and no page points at something that is not there."""

import html
import re
from pathlib import Path

import pytest

from duckdb_anon.registry import ENTRIES

PROJECT = Path(__file__).resolve().parents[2]
FOLDERS = (".github", "duckdb_anon", "examples")
TEMPLATES = ("ISSUE_TEMPLATE", "pull_request_template.md")
PAGES = [
    page
    for page in [
        PROJECT / "README.md",
        *sorted(page for folder in FOLDERS for page in (PROJECT / folder).rglob("*.md")),
    ]
    if not set(TEMPLATES) & set(page.parts)
]
GENERATED = {PROJECT / "duckdb_anon/docs/functions" / f"{name}.md" for name in ("index", *(e.name for e in ENTRIES))}
"""Pages that exist in the built site alone."""
README = (PROJECT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_of_a_page_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            place = (page.parent / target).resolve()
            assert place.exists() or place in GENERATED, target


def test_readme_names_every_example():
    for example in sorted((PROJECT / "examples").iterdir()):
        if example.suffix in {".sql", ".toml", ".md"} or (example.is_dir() and example.name != "__pycache__"):
            assert f"](examples/{example.name}" in README, example.name


def test_every_page_can_be_reached_from_readme():
    seen, todo = set(), [PROJECT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page in GENERATED or page.suffix != ".md":
            continue
        seen.add(page)
        text = page.read_text(encoding="utf-8")
        todo += [(page.parent / to).resolve() for to in re.findall(r"\]\(([^)#\s:]+)\)", text)]
    assert set(PAGES) <= seen


def test_readme_stays_short_and_has_its_pictures():
    assert len(README.splitlines()) <= 120
    assert re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README) == [
        "examples/terminal.svg", "examples/workbench.png", "examples/studies/risk.png",
    ]  # fmt: skip


def test_the_picture_has_the_figures_of_the_text():
    """Both are written by `python -m duckdb_anon.docs_pages`, whose --check CI runs."""
    picture = (PROJECT / "examples/terminal.svg").read_text(encoding="utf-8")
    shown = html.unescape(" ".join(re.findall(r">([^<>]+)</text>", picture)))
    outputs = re.findall(r"```\n\n((?:\|[^\n]*\n)+)", README)
    assert len(outputs) >= 2
    for cell in (cell.strip() for output in outputs for row in output.splitlines()[2:] for cell in row.split("|")):
        assert cell in shown
