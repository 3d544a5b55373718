"""What the rules have found out about a release so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from duckdb_anon.rewrite.parts import ROW, Part, quoted
from duckdb_anon.rewrite.schema import TableInfo


@dataclass
class Reading:
    """A release half read.

    Attributes:
        release, original: the tables.
        exact: original column to SQL over a release row `_r`.
        parts: independent inexact parts.
        weights: factors of how many original rows a released row stands for.
        bounded: whether every released row is one original row, so that hard bounds exist.
        complete: whether every original row is behind some released row, so that extremes are covered.
        missing: SQL of how many original rows were left out, where that is all that the weights say.
        rate: SQL of the chance that an original row was released, where that is all that the weights say.
    """

    release: TableInfo
    original: TableInfo
    exact: dict[str, str] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    bounded: bool = True
    complete: bool = True
    rate: str = ""
    missing: str = ""
    unclaimed: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Start with all columns unclaimed."""
        self.unclaimed = {name: kind for name, kind in self.release.columns}

    def take(self, name: str) -> str | None:
        """Claim a column that is no column of the original, by name; give its type, or None."""
        if name.lower() in self.original.types:
            return None
        spelled = next((c for c in self.unclaimed if c.lower() == name.lower()), None)
        return self.unclaimed.pop(spelled) if spelled else None

    def has(self, name: str) -> bool:
        """Whether there is an unclaimed column that is no column of the original."""
        return name.lower() not in self.original.types and any(c.lower() == name.lower() for c in self.unclaimed)

    def original_type(self, column: str) -> str:
        """The column's type in the original, '' if it has none."""
        return self.original.types.get(column.lower(), "")


def field_of_row(*path: str) -> str:
    """SQL of a column of `_r`, or a field inside it."""
    return ".".join([ROW, *(quoted(step) for step in path)])
