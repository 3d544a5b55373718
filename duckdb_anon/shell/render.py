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


def render(result: duckdb.DuckDBPyRelation, mode: str, max_rows: int, out: TextIO) -> None:
    """Write every row of `result` to `out`; mode box shows at most `max_rows`.

    Args:
        result: what a query gave.
        mode: how it is shown.
        max_rows: most rows that are.
        out: where to.
    """
    if mode == "box":
        width = shutil.get_terminal_size((120, 24)).columns
        with redirect_stdout(out):
            result.show(max_rows=max_rows, max_width=max(width, 60))
        return
    if mode == "json":
        _json(result, out)
        return
    _WRITERS[mode](list(result.columns), _text_rows(result), out)


def show_plan(result: duckdb.DuckDBPyRelation, out: TextIO) -> None:
    """Write a query plan as DuckDB drew it."""
    for row in result.fetchall():
        out.write(f"{row[-1]}\n")


def _text_rows(result: duckdb.DuckDBPyRelation) -> Iterator[Row]:
    """Rows with every value as DuckDB writes it, read batch by batch."""
    for batch in result.project("columns(*)::varchar").to_arrow_reader(_BATCH):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _csv(names: list[str], rows: Iterator[Row], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
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


_WRITERS = {
    "csv": _csv,
    "line": _line,
    "list": _separated("|"),
    "markdown": _markdown,
    "tabs": _separated("\t"),
}
