"""How much a release of noisy cells would write, empty ones and all, bounded before any of it is made. Cost: none."""

from __future__ import annotations

from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import Parameter

MAX_CELLS = Parameter(
    "max_cells", "maximum number of cells and list entries that are written", "integer", 1_000_000, low=1
)


def check_written(function: str, cells: int, entries: int, most: int, remedy: str) -> None:
    """Refuse to write more than `most`.

    Args:
        cells: rows that would be released.
        entries: values in the lists of these rows; 0 where there are none.
        most: the call's `max_cells`.
        remedy: what to change in the call so that fewer are made, apart from `max_cells`.

    Raises:
        RequirementError: cells and entries together are more.
    """
    if cells + entries > most:
        lists = f" with lists of {entries} values in all" if entries else ""
        raise RequirementError(
            f"{function}: {cells} cells{lists} would be released, all of them with noise, and max_cells := {most}; "
            f"{remedy} or raise max_cells"
        )
