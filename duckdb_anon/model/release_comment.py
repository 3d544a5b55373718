"""The description of a release: the text of its comments, written and read in this one place.

The table's comment names the original, the call, the day and the version of the package; each column's comment its
role, whether its numbers are names, and its hierarchy. A STRUCT column of a sliced release holds attributes, so its
comment says so for each of them:

    anon: release of people by muco(delta := 0.2) on 2026-11-22 with duckdb-anon 0.2.0 rows 8:93 digest 3f...
    anon: release of people by muco(delta := 0.2) independent of earlier releases on 2026-11-22 ...
    anon: release together (tables := ['patients', 'visits'], k := 5) on 2026-11-22 ...
    anon: quasi hierarchy=edu_tree
    anon: attributes (age: quasi; disease: sensitive hierarchy=icd)

Whatever must stay hidden does not travel: no seed, no row number, no text of a query, no folder of a file. Other text
may stand around a description. Users write such comments by hand too, so reading forgives what is missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from duckdb_anon.model.quoting import literal, quoted, unquoted

HIDDEN = ("seed", "row_id")
KEY = "anon"
"""Key of the table's comment in a Parquet file's metadata; a column's is `anon.column.NAME`."""
COLUMN_KEY = f"{KEY}.column."

_QUOTED = r'"(?:[^"]|"")+"'
_BARE = r"[^\s\"'();,.]+"
_ARGUMENTS = r"(?>'(?:[^']|'')*+'|[^'()])*+"
_NAME = rf"(?:{_QUOTED}|{_BARE})(?:\.(?:{_QUOTED}|{_BARE}))*"
_RELEASE = re.compile(r"\banon:\s*release\b", re.IGNORECASE)
_DESCRIPTION = re.compile(
    rf"""{_RELEASE.pattern}
    (?:\s+of\s+(?P<original>a\ query|{_NAME}))?
    (?:\s+by\s+(?P<method>\w+)\s*\((?P<arguments>{_ARGUMENTS})\))?
    (?:\s+together\s+\((?P<together>{_ARGUMENTS})\))?
    (?P<persons>\s+counting\s+persons\b)?
    (?P<independent>\s+independent\s+of\s+earlier\s+releases\b)?
    (?:\s+on\s+(?P<date>\d{{4}}-\d{{2}}-\d{{2}}))?
    (?:\s+with\s+duckdb-anon\s+(?P<version>[\w.+!-]+))?
    (?:\s+rows\s+(?P<checksum>\d+:\d+)\s+digest\s+(?P<digest>[0-9a-f]{{64}})\b)?
    (?:\s+seal\s+(?P<seal>[0-9a-f]{{64}})\b)?
    (?:\s+signed\s+(?P<signature>[0-9a-f]{{64}}:[0-9a-f]{{128}})\b)?""",
    re.IGNORECASE | re.VERBOSE,
)
_ATTRIBUTES = re.compile(r"\banon:\s*attributes\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(rf"\s*({_QUOTED}|[^:;\"]+?)\s*:((?:{_QUOTED}|[^;\"])*)(?:;|$)", re.DOTALL)
_PYTHON = re.compile(
    r"(?:\b(?:date|timestamp)\s+)?'(?P<text>(?:[^']|'')*)'|(?P<name>\w+)\s*:=|\b(?P<word>true|false|null)\b",
    re.IGNORECASE,
)
QUERY = "a query"


@dataclass(frozen=True)
class Label:
    """The comment of one attribute: its role, whether its numbers are names, its hierarchy table."""

    role: str
    categorical: bool = False
    hierarchy: str | None = None

    def text(self) -> str:
        """The words after 'anon:'.

        >>> Label("quasi", hierarchy="my tree").text()
        'quasi hierarchy="my tree"'
        """
        tree = "" if self.hierarchy is None else f" hierarchy={quoted(self.hierarchy)}"
        return self.role + (" categorical" if self.categorical else "") + tree

    def comment(self) -> str:
        """The comment of a column that is this attribute."""
        return f"anon: {self.text()}"


@dataclass(frozen=True)
class Description:
    """The comment of a release."""

    original: str = ""  # the original as SQL names it, 'a query', or '' where nothing is said
    method: str = ""  # SQL name of the method, '' where nothing is said
    # arguments of the call by name, as numbers, texts, lists and mappings; never a seed
    parameters: Mapping[str, Any] = field(default_factory=dict)
    date: str = ""  # the day it was made, ISO 8601; '' where nothing is said
    version: str = ""  # of the package that made it; '' where nothing is said
    persons: bool = False  # whether the method counted persons, whose column was not released
    independent: bool = False  # whether it was made without regard to earlier releases of its original
    checksum: str = ""  # number of rows and the sum of DuckDB's hashes of them; '' where nothing is said
    digest: str = ""  # SHA-256 of the released rows (`engine.release_digest`); '' where nothing is said
    # SHA-256 of all of this and of the columns' roles (`engine.release_seal`); '' where nothing is said
    seal: str = ""
    # public key and Ed25519 signature of the seal, in hexadecimal digits; '' where it is not signed
    signature: str = ""
    # of a released database: its tables, and the k and l of their joined record; empty for a single table
    together: Mapping[str, Any] = field(default_factory=dict)

    @property
    def call(self) -> str:
        """The call without its table and roles: `muco(delta := 0.2)`; '' where no method is named."""
        if not self.method:
            return ""
        shown = {name: value for name, value in self.parameters.items() if name not in HIDDEN}
        return f"{self.method}({_written(shown)})"

    def comment(self) -> str:
        """The comment of the table.

        >>> Description("people", "muco", {"delta": 0.2}, "2026-11-22", "0.2.0").comment()
        'anon: release of people by muco(delta := 0.2) on 2026-11-22 with duckdb-anon 0.2.0'
        """
        facts = (
            ("of", self.original),
            ("by", self.call),
            ("together", f"({_written(self.together)})" if self.together else ""),
            ("counting", "persons" if self.persons else ""),
            ("independent", "of earlier releases" if self.independent else ""),
            ("on", self.date),
            ("with duckdb-anon", self.version),
            ("rows", self.checksum if self.digest else ""),
            ("digest", self.digest),
            ("seal", self.seal),
            ("signed", self.signature),
        )
        return "anon: release" + "".join(f" {word} {text}" for word, text in facts if text)


def is_release(comment: str | None) -> bool:
    """Tell whether a table's comment declares it a release.

    >>> is_release('2026 extract, anon: release'), is_release(None)
    (True, False)
    """
    return bool(comment and _RELEASE.search(comment))


def read_description(comment: str | None) -> Description | None:
    """Read the comment of a table; None when it is not declared a release.

    >>> read_description("anon: release of people by muco(delta := 0.2) on 2026-11-22").parameters
    {'delta': 0.2}
    >>> read_description("a table of ours") is None
    True
    """
    found = _DESCRIPTION.search(comment or "")
    if found is None:
        return None
    parts = {name: text or "" for name, text in found.groupdict().items()}
    parameters, method = read_arguments(parts.pop("arguments")), parts.pop("method").lower()
    persons, independent = bool(parts.pop("persons")), bool(parts.pop("independent"))
    together = read_arguments(parts.pop("together")) or {}
    if parameters is None:
        parameters, method = {}, ""
    return Description(
        method=method, parameters=parameters, together=together, persons=persons, independent=independent, **parts
    )


def attributes_comment(labels: Mapping[str, Label]) -> str:
    """The comment of a STRUCT column, from the labels of its fields.

    >>> attributes_comment({"age": Label("quasi"), "zip code": Label("quasi", hierarchy="zips")})
    'anon: attributes (age: quasi; "zip code": quasi hierarchy=zips)'
    """
    inside = "; ".join(f"{quoted(name)}: {label.text()}" for name, label in labels.items())
    return f"anon: attributes ({inside})"


def field_comments(comment: str | None) -> dict[str, str]:
    """Comments of the attributes a STRUCT column holds, by name; empty where its comment names none.

    >>> field_comments('anon: attributes (age: quasi; "zip code": quasi hierarchy=zips)')
    {'age': 'anon: quasi', 'zip code': 'anon: quasi hierarchy=zips'}
    """
    found = _ATTRIBUTES.search(comment or "")
    if found is None:
        return {}
    return {unquoted(f.group(1)): f"anon: {f.group(2).strip()}" for f in _FIELD.finditer(found.group(1))}


def table_name(given: str) -> str:
    """How a description names the table a method was called on: a name, that of a file or folder, or 'a query'.

    >>> table_name('people'), table_name('/data/people.parquet'), table_name('(SELECT * FROM people)')
    ('people', '"people.parquet"', 'a query')
    >>> table_name('/data/people/*.parquet')
    '"people/"'
    """
    text = given.strip()
    if text.startswith("("):
        return QUERY
    if re.fullmatch(_NAME, text) and "/" not in text and "\\" not in text:
        return text
    *folders, file = re.split(r"[/\\]", text.strip("'"))
    named = [folder for folder in folders if folder and "*" not in folder]
    return quoted(f"{named[-1]}/" if "*" in file and named else file)


def _written(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} := {literal(value)}" for name, value in arguments.items())


def read_arguments(text: str) -> dict[str, Any] | None:
    """Arguments `name := value, ...` by name; None where they cannot be read.

    >>> read_arguments("k := 5, cuts := {'age': [0, -1.5]}, l := null")
    {'k': 5, 'cuts': {'age': [0, -1.5]}, 'l': None}
    """
    try:
        arguments = ast.literal_eval("{" + _PYTHON.sub(_as_python, text) + "}")
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _as_python(found: re.Match[str]) -> str:
    if found["text"] is not None:
        return repr(found["text"].replace("''", "'"))
    if found["name"] is not None:
        return f"{found['name']!r}: "
    return "None" if found["word"].lower() == "null" else found["word"].capitalize()
