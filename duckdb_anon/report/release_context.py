"""The context of a release, from a TOML file: recipients, purpose, decision.

The fields are those that ISO/IEC 27559, HIPAA's expert determination and EMA's policy 0070 ask for. All are optional;
what is missing is marked as not given. `queries` are the analyst's own, on the original's name; `impossible` are SQL
conditions that no individual can meet ("age < 15 and marital = 'married'").
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.toml_files import read_toml, require_known


@dataclass(frozen=True)
class HoldersContext:
    """The fields of the file."""

    title: str = ""  # title, purpose, recipients, release_model, safeguards, expert, decision, validity, contact: texts
    purpose: str = ""
    recipients: str = ""
    release_model: str = ""
    safeguards: str = ""
    expert: str = ""
    decision: str = ""
    validity: str = ""
    contact: str = ""
    threshold: float = 0.09  # largest acceptable re-identification risk, in (0, 1]; 0.09 in EMA's policy 0070
    sampling_fraction: float | None = None  # share of the population that is in the original, in (0, 1]
    population: str = ""  # table of the population, for k_map
    queries: tuple[str, ...] = field(default=())  # queries of the analyst
    impossible: tuple[str, ...] = field(default=())  # conditions that no individual can meet

    @property
    def texts(self) -> dict[str, str]:
        """The texts by name."""
        return {name: str(getattr(self, name)) for name in _TEXTS}


_TEXTS = ("purpose", "recipients", "release_model", "safeguards", "expert", "decision", "validity", "contact")


def read_context(path: str | None, function: str = "report") -> HoldersContext:
    """Read a context file; None gives an empty context."""
    given = {} if path is None else read_toml(function, Path(path))
    require_known(function, str(path), given, [f.name for f in fields(HoldersContext)])
    checked: dict[str, Any] = {}
    for name, value in given.items():
        checked[name] = str(value)
        if name in ("queries", "impossible"):
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise AnonError(f"{function}: {path}: {name} must be a list of texts")
            checked[name] = tuple(value)
        elif name in ("threshold", "sampling_fraction"):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
                raise AnonError(f"{function}: {path}: {name} = {value!r} is not a number in (0, 1]")
            checked[name] = float(value)
    return HoldersContext(**checked)
