"""Arguments of SQL functions: what each may be, and the error for anything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from duckdb_anon.model.errors import ParameterError, listed, nearest
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import literal

REQUIRED = object()
_MOST = {"integer": 2**31 - 1, "number": 1e9}  # beyond any number of rows, and safe to multiply by one
MOST_SEED = 2**63 - 1  # a BIGINT
ParameterKind = Literal["number", "fraction", "integer", "text", "boolean", "names", "values", "mapping", "any"]
Params = Mapping[str, Any]


@dataclass(frozen=True)
class Parameter:
    """One argument of a SQL function."""

    name: str  # its SQL name
    doc: str  # one line: meaning, unit, range
    # 'number' float, 'fraction' exact (0.2 and 1/6 alike), 'integer', 'text', 'boolean', 'names' (a list of names; one
    # name is a list of one), 'values' (a list of texts, NULL among them), 'mapping' (MAP or STRUCT), 'any' (unchecked)
    kind: ParameterKind = "any"
    default: Any = None  # value when not given; REQUIRED has none
    choices: tuple[str, ...] = ()  # allowed texts, for the kinds 'text' and 'names'
    # inclusive range for numbers; without `high` an integer is below 2^31 and a number at most 1e9; `above` excludes
    # its own value
    low: float | None = None
    high: float | None = None
    above: float | None = None
    of: Literal["", "qi", "labelled"] = ""  # columns that its names are of, checked when a call is planned; '' for any
    repeated: bool = False  # whether a list may have a name twice; of columns that would count one of them twice

    def check(self, function: str, given: Any) -> Any:
        """Return `given` as this parameter's type, or raise a ParameterError with what is allowed."""
        if given is None:
            if self.default is REQUIRED:
                raise ParameterError(
                    f"{function}: missing required argument {self.name} ({self.doc})", code="missing-argument"
                )
            return self.default
        try:
            value = _CONVERT[self.kind](given)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise ParameterError(
                f"{function}: {self.name} := {literal(given)} is not {_ARTICLE[self.kind]} ({self.doc})"
            ) from error
        named = value if self.kind == "names" else [value]
        wrong = [each for each in named if each not in self.choices]
        if self.choices and (wrong or not named):
            raise ParameterError(
                f"{function}: {self.name} := {literal(given)} is not one of {listed(self.choices)}"
                f"{nearest(str(wrong[0]), self.choices) if wrong else ''}"
            )
        if self.kind == "names" and not self.repeated and (repeated := _repeated(value)):
            raise ParameterError(f"{function}: {self.name} := [...] names {listed(repeated)} twice. Name each once")
        self._check_range(function, given, value)
        return value

    def _check_range(self, function: str, given: Any, value: Any) -> None:
        if self.kind not in ("number", "fraction", "integer"):
            return
        finite = np.isfinite(float(value))
        most = self.high if self.high is not None else _MOST.get(self.kind)
        low = self.low is None or value >= self.low
        high = most is None or value <= most
        above = self.above is None or value > self.above
        if not (finite and low and high and above):
            # the general end is worth a word only to whom it stopped
            ends = (("above", self.above), ("at least", self.low), ("at most", self.high if high else most))
            allowed = " and ".join(f"{word} {_plainly(end)}" for word, end in ends if end is not None) or "finite"
            raise ParameterError(
                f"{function}: {self.name} := {literal(given)} is out of range. It must be {allowed} ({self.doc})"
            )


def _repeated(names: Sequence[str]) -> list[str]:
    """The names that are there twice, as DuckDB compares names."""
    folded = [fold(name) for name in names]
    return [name for position, name in enumerate(names) if folded[position] in folded[:position]]


def _plainly(end: float) -> str:
    return str(end) if isinstance(end, int) else f"{end:g}"


def _as_floats(given: Any) -> Any:
    """A value without DECIMALs, which DuckDB makes of every literal with a point: inside lists and MAPs too."""
    if isinstance(given, Decimal):
        return float(given)
    if isinstance(given, Mapping):
        return {name: _as_floats(value) for name, value in given.items()}
    if isinstance(given, (list, tuple)):
        return type(given)(_as_floats(value) for value in given)
    return given


def _names(given: Any) -> list[str]:
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Sequence) or not all(isinstance(g, str) for g in given):
        raise TypeError
    return list(given)


def _values(given: Any) -> list[str | None]:
    if given is None or isinstance(given, str):
        return [given]
    if not isinstance(given, Sequence) or not all(g is None or isinstance(g, str) for g in given):
        raise TypeError
    return list(given)


def _mapping(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(_as_floats(given))
    if isinstance(given, Sequence) and not isinstance(given, str):
        return dict(_as_floats(given))  # a DuckDB MAP arrives as a list of pairs
    raise TypeError


def _integer(given: Any) -> int:
    number = int(given)
    # a HUGEINT arrives as a Decimal, which as a float would be another number
    if isinstance(given, bool) or (Decimal(given) if isinstance(given, str) else given) != number:
        raise TypeError
    return number


def _fraction(given: Any) -> Fraction:
    if isinstance(given, bool):
        raise TypeError
    if isinstance(given, float):
        near = Fraction(given).limit_denominator(10_000)
        return near if abs(float(near) - given) < 1e-15 else Fraction(given)
    return Fraction(given)


def _number(given: Any) -> float:
    if isinstance(given, (bool, str)):
        raise TypeError
    return float(given)


def _boolean(given: Any) -> bool:
    if not isinstance(given, bool):
        raise TypeError
    return given


def _text(given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise TypeError
    return given


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "number": _number,
    "fraction": _fraction,
    "integer": _integer,
    "text": _text,
    "boolean": _boolean,
    "names": _names,
    "values": _values,
    "mapping": _mapping,
    "any": _as_floats,
}
_ARTICLE = {
    "number": "a number",
    "fraction": "a number",
    "integer": "a whole number",
    "text": "a text",
    "boolean": "true or false",
    "names": "a list of names",
    "values": "a list of texts",
    "mapping": "a MAP or STRUCT",
    "any": "allowed",
}
