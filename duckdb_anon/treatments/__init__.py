"""Column treatments: what happens to columns that are released neither as quasi-identifiers nor unchanged.

Modules of this folder declare `Treatment`s; nothing else lists them. A treatment writes the SQL of a column. By
itself it promises nothing about individuals: a pseudonym is still the same individual, a rounded wage may be unique.
What is keyed uses HMAC-SHA256 (RFC 2104) with a key of 32 bytes that is drawn for the call and thrown away, or is read
from a file. The same key, domain and value give the same result, in every table and on every day.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import AnonError, ColumnError, ParameterError, listed, nearest
from duckdb_anon.model.parameters import Parameter, Params
from duckdb_anon.model.release_comment import read_arguments

_CALL = re.compile(r"\s*(\w+)\s*(?:\((.*)\)\s*)?", re.DOTALL)
_NAMED = re.compile(r"\s*\w+\s*:=")
_LEAST_KEY = 16


@dataclass(frozen=True)
class Key:
    """The key of a release."""

    value: bytes

    @staticmethod
    def of_file(function: str, path: str | None) -> Key:
        """The key that a file holds; a fresh one without a file.

        Args:
            function: for messages.
            path: the file; its bytes, without line ends, are the key.
        """
        if path is None:
            return Key(secrets.token_bytes(32))
        try:
            value = Path(path).read_bytes().strip()
        except OSError as error:
            raise ParameterError(f"{function}: the key file {path} cannot be read: {error.strerror}") from error
        if len(value) < _LEAST_KEY:
            raise ParameterError(
                f"{function}: the key file {path} has {len(value)} bytes. A key has {_LEAST_KEY} or "
                "more. Make one with python -c 'import secrets; print(secrets.token_hex(32))'"
            )
        return Key(value)

    def hmac(self, text: str) -> str:
        """SQL of the HMAC-SHA256 of a text, 64 hexadecimal digits.

        Args:
            text: SQL of the text.
        """
        key = self.value if len(self.value) <= 64 else hashlib.sha256(self.value).digest()
        inner, outer = (bytes(byte ^ pad for byte in key.ljust(64, b"\0")).hex() for pad in (0x36, 0x5C))
        return f"sha256(unhex('{outer}') || unhex(sha256(unhex('{inner}') || encode({text}))))"

    def number(self, text: str) -> str:
        """SQL of a number from 0 to 2^60 - 1 that the key and a text determine."""
        return f"('0x' || {self.hmac(text)}[:15])::bigint"

    def of(self, purpose: str) -> Key:
        """A key for one purpose, so that nothing made for another purpose is equal to what it makes.

        Args:
            purpose: a text without ':', which no hashed text of a pseudonym lacks.
        """
        return Key(hmac.digest(self.value, purpose.replace(":", "%3A").encode(), "sha256"))

    def shift_of(self, individual: str) -> str:
        """SQL of the number that the shift of all dates of an individual comes from."""
        return self.of("shift").number(f"{individual}::varchar")


@dataclass(frozen=True)
class Column:
    """A column to be treated.

    Attributes:
        name: of the column.
        type: its DuckDB type.
        table: what messages call its table.
        domain: what its values identify; equal values of one domain have equal pseudonyms.
        individual: SQL of the individual of a row; '' where no column says.
        shift: SQL of `shift_of` of the individual where it is computed before; '' where not.
        row: SQL of the number of a row.
    """

    name: str
    type: str
    table: str
    domain: str = ""
    individual: str = ""
    shift: str = ""
    row: str = "row_number() over ()"

    @property
    def sql(self) -> str:
        """The column as SQL writes it."""
        return ident(self.name)

    def text(self, domain: str | None = None) -> str:
        """SQL of the text of a value with its domain, which is what is hashed."""
        return text_in(self.domain if domain is None else domain, self.sql)


def text_in(domain: str, value: str) -> str:
    """SQL of the text of a value in a domain; texts of two domains are never equal.

    Args:
        domain: what the value identifies.
        value: SQL of the value.
    """
    return f"{literal(domain.replace('%', '%25').replace(':', '%3A'))} || ':' || {value}::varchar"


@dataclass(frozen=True)
class Treatment:
    """One treatment.

    Attributes:
        name: what plans and calls write.
        summary: one line for help.
        promise: what it protects, in one sentence.
        parameters: its arguments.
        expression: (column, parameters, key) -> SQL of the treated value; None where the column is dropped.
        types: whether it can be applied to a DuckDB type.
        takes: the types it takes, for messages.
    """

    name: str
    summary: str
    promise: str
    parameters: tuple[Parameter, ...]
    expression: Callable[[Column, Params, Key], str | None]
    types: Callable[[str], bool] = lambda kind: True
    takes: str = "any type"


@cache
def treatments() -> Mapping[str, Treatment]:
    """All treatments by name, in the order of their names."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Treatment)]
    return {treatment.name: treatment for treatment in sorted(found, key=lambda one: one.name)}


def parsed(function: str, column: str, text: object) -> tuple[Treatment, Params]:
    """Treatment and parameters that a text names: 'shift(days := 90)'.

    Args:
        function: for messages.
        column: what messages call the column.
        text: the text.
    """
    found = _CALL.fullmatch(text) if isinstance(text, str) else None
    known = treatments()
    if found is None or found[1] not in known:
        near = nearest(found[1], known) if found else ""
        raise ParameterError(
            f"{function}: {column} has no treatment that is known{near}. Treatments are {listed(known, len(known))}; "
            "write one as 'round(to := 10)'"
        )
    treatment = known[found[1]]
    given = _arguments(function, column, treatment, found[2])
    unknown = [name for name in given if name not in {p.name for p in treatment.parameters}]
    if unknown:
        names = [p.name for p in treatment.parameters]
        raise ParameterError(
            f"{function}: {treatment.name} of {column} has no parameter '{unknown[0]}'{nearest(unknown[0], names)}; it "
            f"takes {listed(names) if names else 'none'}"
        )
    return treatment, {
        p.name: p.check(f"{function}: {treatment.name} of {column}", given.get(p.name)) for p in treatment.parameters
    }


def _arguments(function: str, column: str, treatment: Treatment, inside: str | None) -> Mapping[str, object]:
    """Arguments by name; one without a name is the first parameter."""
    if inside is None or not inside.strip():
        return {}
    first = treatment.parameters[0].name if treatment.parameters else ""
    named = inside if _NAMED.match(inside) else f"{first} := {inside}"
    read = read_arguments(named)
    if read is None:
        example = f"{treatment.name}({first} := ...)" if first else treatment.name
        raise ParameterError(
            f"{function}: the arguments of {treatment.name} of {column} cannot be read. Write {example}"
        )
    return read


def treated(function: str, column: Column, text: object, key: Key) -> str | None:
    """SQL of a treated column; None where it is dropped.

    Args:
        function: for messages.
        column: the column.
        text: the treatment, 'shift(days := 90)'.
        key: of the release.
    """
    treatment, params = parsed(function, f"{column.table}.{column.name}", text)
    if not treatment.types(column.type):
        raise ColumnError(
            f"{function}: {treatment.name} takes {treatment.takes}, and {column.table}.{column.name} is {column.type}. "
            "Use mask, or leave the column out"
        )
    try:
        return treatment.expression(column, params, key)
    except AnonError as error:
        raise type(error)(f"{function}: {column.table}.{column.name}: {error}") from error
