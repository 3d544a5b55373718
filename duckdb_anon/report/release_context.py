"""What the data holder states of a release, from a TOML file: the `[statements]` of a plan, or a file of its own.

The keys are those of checklist.toml, with its questions; all are optional, and what is missing is an open point of the
page. Beside them: `title`; `population`, a table for k_map; `queries`, the analyst's own, on the original's name;
`impossible`, SQL conditions that no individual can meet ("age < 15 and marital = 'married'"); `accept.TABLE.COLUMN`,
why a label may be weaker than the one that anon_profile proposes; `checklist`, a file in place of checklist.toml.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.toml_files import read_toml, require_known
from duckdb_anon.report.checklist import Checklist, own_checklist, read_checklist

_NUMBERS = ("threshold", "sampling_fraction", "attempt", "growth")
_LISTS = ("queries", "impossible")
_OTHERS = ("title", "population", *_LISTS, "accept", "checklist")


@dataclass(frozen=True)
class HoldersContext:
    """The statements by their keys, and what else the file says."""

    statements: Mapping[str, Any] = field(default_factory=dict)  # text, number or day by the key of checklist.toml
    title: str = ""
    population: str = ""  # table of the population, for k_map
    queries: tuple[str, ...] = ()  # queries of the analyst
    impossible: tuple[str, ...] = ()  # conditions that no individual can meet
    accept: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # reasons for weak labels, by table and column
    checklist: Checklist = field(default_factory=own_checklist)

    @property
    def threshold(self) -> float:
        """Largest acceptable risk; 0.09 where none is stated, as in EMA's policy 0070."""
        return float(self.statements.get("threshold", 0.09))

    @property
    def attempt(self) -> float:
        """Probability that somebody tries to re-identify; 1 where none is stated."""
        return float(self.statements.get("attempt", 1.0))

    @property
    def sampling_fraction(self) -> float | None:
        """Share of the population that is in the original, in (0, 1]; None where it is not stated."""
        return self.statements.get("sampling_fraction")

    def expired(self) -> list[str]:
        """That the day of the next assessment has passed, where it has."""
        day = self.statements.get("expires")
        return [f"The release was to be assessed again on {day}."] if day and day < datetime.date.today() else []

    def accepted(self, table: str, column: str) -> str | None:
        """Why a weak label of a column is accepted; None where nothing is stated."""
        columns = next((named for name, named in self.accept.items() if fold(name) == fold(table)), {})
        return next((why for name, why in columns.items() if fold(name) == fold(column)), None)


def read_context(path: str | None, function: str = "report") -> HoldersContext:
    """Read a file of statements, or the statements of a plan; None gives an empty context."""
    given = {} if path is None else read_toml(function, Path(path))
    return context_of(given.get("statements", given), function, Path(path or ""))


def context_of(given: Mapping[str, Any], function: str, path: Path) -> HoldersContext:
    """Check statements; `path` is the file that they are from."""
    own = given.get("checklist")
    checklist = own_checklist() if own is None else read_checklist(path.parent / str(own), function)
    require_known(function, str(path), given, [*checklist.questions, *_OTHERS])
    statements, others = dict[str, Any](), dict[str, Any]()
    for name, value in given.items():
        if name in _LISTS:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise AnonError(f"{function}: {path}: {name} must be a list of texts")
            others[name] = tuple(value)
        elif name == "accept":
            if not isinstance(value, dict) or not all(isinstance(columns, dict) for columns in value.values()):
                raise AnonError(f"{function}: {path}: write accept.TABLE.COLUMN = 'why the label is right'")
            others[name] = value
        elif name in _NUMBERS:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
                raise AnonError(f"{function}: {path}: {name} = {value!r} is not a number in (0, 1]")
            statements[name] = float(value)
        elif name == "expires":
            if type(value) is not datetime.date:
                raise AnonError(f"{function}: {path}: expires = {value!r} is not a day. Write it as 2027-12-31")
            statements[name] = value
        elif name in _OTHERS:
            others[name] = str(value)
        elif str(value).strip():  # an empty text states nothing
            statements[name] = str(value)
    return HoldersContext(statements, **{**others, "checklist": checklist})
