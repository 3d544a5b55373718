"""Results as text: DuckDB's boxes for people, csv, json and the like for other programs."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from typing import TextIO

import duckdb

Row = Sequence[str | None]
Writer = Callable[[list[str], Iterator[Row], TextIO], None]
MODES = ("box", "csv", "json", "line", "list", "markdown", "tabs")
_BATCH = 10_000
_COPIED = ("call", "statement", "query", "clean")
_FITS = 20


def render(result: duckdb.DuckDBPyRelation, mode: str, max_rows: int, out: TextIO, *, header: bool = True) -> None:
    """Write every row of `result` to `out`; mode box shows at most `max_rows`.

    What is to be copied, SQL in the columns of `_COPIED`, is printed below the box once more, each on its own line:
    a box breaks or cuts it.
    """
    if mode == "box":
        _box(result, max_rows, out)
    elif mode == "json":
        _json(result, out)
    else:
        _WRITERS[mode](list(result.columns) if header or mode not in HEADED else [], _text_rows(result), out)


def _width() -> int:
    return max(shutil.get_terminal_size((120, 24)).columns, 60)


def _box(result: duckdb.DuckDBPyRelation, max_rows: int, out: TextIO) -> None:
    copied = next((position for position, name in enumerate(result.columns) if name in _COPIED), None)
    if copied is not None and hasattr(result, "materialize"):  # DuckDB 2.0
        # one run for box and list: it may have taken half a minute, and another one would draw anew
        result = result.materialize()
    else:
        copied = None
    with redirect_stdout(out):
        result.show(max_rows=max_rows, max_width=_width())
    if copied is None:
        return
    texts = [row[copied] for row in result.limit(max_rows).fetchall() if len(row[copied] or "") > _FITS]
    if texts:
        out.write("".join(f"{text}\n" for text in texts) + "\n")


def _text_rows(result: duckdb.DuckDBPyRelation) -> Iterator[Row]:
    """Rows with every value as DuckDB writes it, read batch by batch."""
    for batch in result.project("columns(*)::varchar").to_arrow_reader(_BATCH):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _csv(names: list[str], rows: Iterator[Row], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    if names:
        writer.writerow(names)
    writer.writerows(rows)


def _json(result: duckdb.DuckDBPyRelation, out: TextIO) -> None:
    """Write one object a row; a repeated column name is told apart as DuckDB does in a subquery."""
    objects = result.project("columns(*)").set_alias("_row").project("to_json(_row)")
    mark = "["
    for (text,) in _text_rows(objects):
        out.write(f"{mark}{text}")
        mark = ",\n"
    out.write("]\n" if mark != "[" else "[]\n")


def _line(names: list[str], rows: Iterator[Row], out: TextIO) -> None:
    width = max(map(len, names))
    for number, row in enumerate(rows):
        out.write("\n" if number else "")
        for name, value in zip(names, row, strict=True):
            out.write(f"{name:>{width}} = {'NULL' if value is None else value}\n")


def _separated(mark: str) -> Writer:
    def write(names: list[str], rows: Iterator[Row], out: TextIO) -> None:
        if names:
            out.write(mark.join(names) + "\n")
        for row in rows:
            out.write(mark.join("NULL" if v is None else v for v in row) + "\n")

    return write


def _markdown(names: list[str], rows: Iterator[Row], out: TextIO) -> None:
    out.write(_markdown_row(names) + "\n|" + "---|" * len(names) + "\n")
    for row in rows:
        out.write(_markdown_row(row) + "\n")


def _markdown_row(row: Row) -> str:
    cells = ("NULL" if v is None else v.replace("|", "\\|").replace("\n", "<br>") for v in row)
    return "| " + " | ".join(cells) + " |"


HEADED = ("csv", "list", "tabs")
"""Modes whose first line may be left out."""
_WRITERS = {"csv": _csv, "list": _separated("|"), "tabs": _separated("\t"), "line": _line, "markdown": _markdown}
