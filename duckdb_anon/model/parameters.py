"""Arguments of SQL functions: what each may be, and the error that says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from duckdb_anon.model.errors import ParameterError, listed, nearest

REQUIRED = object()
ParameterKind = Literal["number", "fraction", "integer", "text", "boolean", "names", "mapping", "any"]
Params = Mapping[str, Any]


@dataclass(frozen=True)
class Parameter:
    """One argument of a SQL function.

    Attributes:
        name: its SQL name.
        doc: one line: meaning, unit, range.
        kind: 'number' float, 'fraction' exact (0.2 and 1/6 alike), 'integer', 'text', 'boolean', 'names'
            (a list of column names; one name is a list of one), 'mapping' (MAP or STRUCT), 'any' (unchecked).
        default: value when not given; REQUIRED has none.
        choices: allowed texts, for kind 'text'.
        low, high: inclusive range for numbers; `above` excludes its own value.
    """

    name: str
    doc: str
    kind: ParameterKind = "any"
    default: Any = None
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    above: float | None = None

    def check(self, function: str, given: Any) -> Any:
        """Return `given` as this parameter's type, or raise a ParameterError that says what is allowed."""
        if given is None:
            if self.default is REQUIRED:
                raise ParameterError(f"{function}: '{self.name}' is missing; {self.doc}")
            return self.default
        try:
            value = _CONVERT[self.kind](given)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise ParameterError(
                f"{function}: {self.name} := {given!r} is not {_ARTICLE[self.kind]}; {self.doc}"
            ) from error
        if self.choices and value not in self.choices:
            raise ParameterError(
                f"{function}: {self.name} := {given!r} is none of {listed(self.choices)}"
                f"{nearest(str(given), self.choices)}"
            )
        self._check_range(function, given, value)
        return value

    def _check_range(self, function: str, given: Any, value: Any) -> None:
        if self.kind not in ("number", "fraction", "integer"):
            return
        finite = np.isfinite(float(value))
        low = self.low is None or value >= self.low
        high = self.high is None or value <= self.high
        above = self.above is None or value > self.above
        if not (finite and low and high and above):
            ends = (("above", self.above), ("at least", self.low), ("at most", self.high))
            allowed = " and ".join(f"{word} {end:g}" for word, end in ends if end is not None) or "finite"
            raise ParameterError(
                f"{function}: {self.name} := {given} is out of range, it must be {allowed}; {self.doc}"
            )


def _names(given: Any) -> list[str]:
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Sequence) or not all(isinstance(g, str) for g in given):
        raise TypeError
    return list(given)


def _mapping(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return dict(given)  # a DuckDB MAP arrives as a list of pairs
    raise TypeError


def _integer(given: Any) -> int:
    # a Decimal is compared as it is: as a float, a number beyond 2^53 would differ from itself
    if isinstance(given, bool) or (given if isinstance(given, Decimal) else float(given)) != int(given):
        raise TypeError
    return int(given)


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
    if not isinstance(given, str):
        raise TypeError
    return given


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "number": _number,
    "fraction": _fraction,
    "integer": _integer,
    "text": _text,
    "boolean": _boolean,
    "names": _names,
    "mapping": _mapping,
    "any": lambda given: float(given) if isinstance(given, Decimal) else given,
}
_ARTICLE = {
    "number": "a number",
    "fraction": "a number",
    "integer": "a whole number",
    "text": "a text",
    "boolean": "true or false",
    "names": "a list of column names",
    "mapping": "a MAP or STRUCT",
    "any": "allowed",
}
