"""The checklist of a page: each point of the guidelines of checklist.toml is computed, stated or open.

A point is computed where figures of the page alone answer it, stated where it also needs words of the data holder, and
open where a figure could not be measured, a statement is missing, or the day of the next assessment has passed.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

from duckdb_anon.model.toml_files import read_toml, require_known

OPEN, STATED, COMPUTED = "open", "stated", "computed"
FIGURES = (
    "labels", "distinguishability", "columns", "method", "risk", "made", "maximum", "population", "guarantees",
    "attacks", "growth", "identifiers", "utility", "pseudonyms", "key_length",
)  # fmt: skip
"""What a page computes for the points of the checklist."""
HOLDER = "the data holder"


class Figure(NamedTuple):
    """One computed answer."""

    text: str  # a sentence; '' where an edition leaves it out
    source: str  # the function or the words that it is from
    internal: bool = False  # whether it quotes counts of the original or names of columns that are not released


@dataclass(frozen=True)
class Checklist:
    """The file's contents."""

    questions: Mapping[str, str]  # what the holder is asked, by the key of the statement
    guidelines: list[dict[str, Any]]  # name, points


@cache
def own_checklist() -> Checklist:
    """The package's own."""
    with as_file(files("duckdb_anon.report") / "checklist.toml") as path:
        return read_checklist(path)


def read_checklist(path: Path, function: str = "report") -> Checklist:
    """Read and check a file of guidelines."""
    found = read_toml(function, path)
    require_known(function, str(path), found, ("statements", "guidelines"))
    for point in (point for guideline in found["guidelines"] for point in guideline["points"]):
        require_known(function, f"{path}: a point", point, ("section", "ask", "computed", "stated", "needs"))
        require_known(function, f"{path}: {point['ask']}", point.get("computed", []), FIGURES)
        require_known(function, f"{path}: {point['ask']}", point.get("stated", []), found["statements"])
    return Checklist(found["statements"], found["guidelines"])


def answers(
    checklist: Checklist, figures: Mapping[str, Figure], missing: Mapping[str, str], statements: Mapping[str, Any]
) -> list[dict[str, str]]:
    """One row a point, open ones first: guideline, section, point, state, answer, missing, source.

    `missing` says why a figure could not be computed.
    """
    rows = []
    for guideline in checklist.guidelines:
        for point in guideline["points"]:
            state, answer, todo, source = _answer(point, checklist, figures, missing, statements)
            about = {"guideline": guideline["name"], "section": point["section"], "point": point["ask"]}
            rows.append({**about, "state": state, "answer": answer, "missing": todo, "source": source})
    return sorted(rows, key=lambda row: row["state"] != OPEN)


def _answer(
    point: Mapping[str, Any],
    checklist: Checklist,
    figures: Mapping[str, Figure],
    missing: Mapping[str, str],
    statements: Mapping[str, Any],
) -> tuple[str, str, str, str]:
    """State and answer of a point, what is missing of it, and the source of the answer."""
    if point.get("needs", FIGURES[0]) not in {*figures, *missing, FIGURES[0]}:
        return COMPUTED, f"Does not apply: the release has no {point['needs']}.", "", "labels and treatments"
    computed, stated = point.get("computed", []), point.get("stated", [])
    todo = [f"{name} is not computed: {missing.get(name, 'no figure')}." for name in computed if name not in figures]
    todo += [f"{name}: {checklist.questions[name]}" for name in stated if name not in statements]
    expires = statements.get("expires") if "expires" in stated else None
    if expires is not None and expires < datetime.date.today():
        todo.append(f"The release was to be assessed again on {expires}.")
    known = [figures[name] for name in computed if name in figures]
    texts = [figure.text or "The figure is in the internal edition." for figure in known]
    texts += [f"{name}: {statements[name]}" for name in stated if name in statements]
    sources = [figure.source for figure in known] + [HOLDER] * any(name in statements for name in stated)
    state = OPEN if todo else STATED if stated else COMPUTED
    return state, " ".join(dict.fromkeys(texts)), " ".join(todo), ", ".join(dict.fromkeys(sources))


def statement_lines() -> list[str]:
    """The table [statements] of a plan, each key commented out and followed by its question."""
    lines = [
        f"# {name} = {_EXAMPLES.get(name, json.dumps(''))}  # {ask}" for name, ask in own_checklist().questions.items()
    ]
    return ["[statements]  # what only you can say; the page of evidence lists as open what is missing", *lines]


_EXAMPLES = {
    "attempt": "1.0",
    "threshold": "0.09",
    "sampling_fraction": "0.1",
    "growth": "0.2",
    "expires": "2027-12-31",
}
