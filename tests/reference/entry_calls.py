"""Calls of the package's functions, made of what their entries say; no function is named here."""

import importlib.util
import re
from dataclasses import dataclass, field

import duckdb
import pytest

from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.model.errors import code_of
from duckdb_anon.model.function_specs import Entry, Method, PureSql, Report

MODULES = {"ml": ("sklearn",), "report": ("altair", "vl_convert")}
"""Modules that the extras of the package bring."""


def require_extra(entry: Entry) -> None:
    """Skip the test where the extra that a function needs is not installed."""
    for module in MODULES.get(entry.extra, ()):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"the {entry.extra} extra is not installed")


def refusal(con: duckdb.DuckDBPyConnection, statement: str) -> tuple[str, str, str]:
    """The function that refuses a statement, the code of the error, and its message."""
    with pytest.raises(duckdb.Error) as caught:
        con.execute(statement).fetchall()
    message = str(caught.value).removeprefix("Invalid Input Error: ")
    return message.partition(": ")[0], code_of(message), message


def smallest_call(method: Method, table: str) -> str:
    """The name of a table and the arguments that a call of a method cannot do without, which may be none."""
    return f"'{table}', {method.smallest}" if method.smallest else f"'{table}'"


def arguments(text: str) -> dict[str, str]:
    """Named arguments of a text such as `k := 2, l := 1`, as SQL."""
    return dict(part.split(" := ", 1) for part in re.split(r", (?=\w+ := )", text)) if text else {}


def tables_of(entry: Entry) -> tuple[str, ...]:
    """Names of the parameters that are tables."""
    return ("tbl",) if isinstance(entry, (Method, PureSql)) else entry.tables


def is_scalar(entry: Entry) -> bool:
    """Whether a function stands in SELECT."""
    return getattr(entry, "scalar", False)


def reads_original(entry: Entry) -> bool:
    """Whether one table of a measure is the original: which one, its roles tell."""
    return not set(tables_of(entry)) <= set(_releases(entry))


def reads_release(entry: Entry) -> bool:
    """Whether a measure takes a release."""
    return bool(_releases(entry))


def _releases(entry: Entry) -> list[str]:
    """The table parameters that are releases."""
    alone = isinstance(entry, PureSql) or (
        isinstance(entry, Report) and entry.reads == "tables" and entry.tables == ("tbl",) and not entry.labelled
    )
    return [name for name in tables_of(entry) if name.startswith("release") or (alone and name == "tbl")]


@dataclass(frozen=True)
class Tables:
    """What calls of measures are about: a labelled original, a release without labels, and columns by role."""

    original: str
    release: str
    number: str  # an ordered quasi-identifier
    text: str  # a nominal one
    sensitive: str
    qi: tuple[str, ...]
    keep: tuple[str, ...] = ()
    roles: dict[str, str] = field(default_factory=dict)  # further arguments that every call has

    def given(self, entry: Entry, trial: str | None = None) -> dict[str, str]:
        """Named arguments of a measure: its tables and those of `trial`, by default of `entry.smallest`."""
        releases = _releases(entry)
        given = {name: f"'{self.release if name in releases else self.original}'" for name in tables_of(entry)}
        names = {"original": self.original, "release": self.release, "number": self.number, "text": self.text}
        chosen = entry.smallest if trial is None else trial
        return given | arguments(chosen.format(**names, sensitive=self.sensitive))

    def call(self, entry: Entry, trial: str | None = None, *, seed: int | None = None) -> str:
        """A call of a measure, with role arguments where nothing labels its first table."""
        releases = _releases(entry)
        given = self.given(entry, trial)
        taken = {parameter.name for parameter in parameters_of(entry)}
        if (getattr(entry, "labelled", "") or next(iter(given), "")) in releases and "qi" in taken:
            labels = {"qi": str(list(self.qi)), "sensitive": f"'{self.sensitive}'", "keep": str(list(self.keep))}
            given = {**labels, **given}
        given |= {name: sql for name, sql in self.roles.items() if name in taken}
        if seed is not None and "seed" in taken:
            given["seed"] = str(seed)
        told = ", ".join(f"{name} := {sql}" for name, sql in given.items())
        return f"{entry.name}({told})"

    def statement(self, entry: Entry, trial: str | None = None, *, seed: int | None = None) -> str:
        """The statement that makes a call."""
        return f"{'select' if is_scalar(entry) else 'from'} {self.call(entry, trial, seed=seed)}"
