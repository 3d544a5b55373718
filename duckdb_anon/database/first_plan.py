"""A first plan for a database, to be read and edited: keys declared or found, roles that anon_profile proposes.

A foreign key is found where the column of one table has no value that a unique column of another table lacks, and their
names agree (`patient_id` and `patient_id`, or `patient` and `id` of `patients`). The table of individuals is the one
that most tables lead to. All dates of events are proposed as known, so that they move together: a shifted
date beside a known one would identify individuals by its intervals (`database.dates`).
Tables that no key joins are released by themselves.
Tables of the OMOP common data model are recognized by their names and have the keys and labels of omop.toml.
Cost: anon_profile of every table, and a join of each pair of columns that names suggest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files

import duckdb

from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_integer, is_moment, is_text
from duckdb_anon.model.toml_files import read_toml
from duckdb_anon.report.checklist import statement_lines
from duckdb_anon.sql_functions import load

NAME = "plan"
_K, _DELTA = 5, 0.1
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SIGNS_OF_OMOP = {"person": "year_of_birth", "visit_occurrence": "visit_concept_id"}
_OF_OMOP = (
    "# The tables are those of the OMOP common data model. An attacker may know sex, birth year, race, and when and",
    "# how an individual visited; what was found, measured and given is taken for unknown. Other columns are dropped:",
    "# dates within a visit, which give its day away, and codes, texts, providers and places of the source.",
)
_HEAD = (
    "# A first plan, proposed from names, types, values and foreign keys. Read every line before you run it:",
    "#   duckdb-anon run THIS_FILE",
    "# quasi: an attacker may know it; it is permuted (delta), or generalized until k individuals share each record.",
    "# sensitive, insensitive: released unchanged, but rare sensitive numbers and dates become means of ten people.",
    "# Identifiers, and columns without a label, are dropped.",
)
_FAKES = {
    "name": "fake(kind := 'name')", "mail": "fake(kind := 'mail')", "phone": "fake(kind := 'phone')",
    "address": "fake(kind := 'address')",
}  # fmt: skip


@dataclass(frozen=True)
class ForeignKey:
    """A column whose values are those of a key of another table."""

    table: str
    column: str
    parent: str
    to: str
    how: str  # how it is known

    def line(self) -> str:
        """The key as a plan writes it."""
        return f"{_toml(f'{self.table}.{self.column}')} = {_toml(f'{self.parent}.{self.to}')}  # {self.how}"


def foreign_keys(con: duckdb.DuckDBPyConnection, tables: Mapping[str, Mapping[str, str]]) -> list[ForeignKey]:
    """Foreign keys between tables: those declared, and for other tables those that values and names suggest."""
    found = [
        ForeignKey(table, columns[0], parent, to[0], "declared")
        for table, columns, parent, to in con.execute(
            "select table_name, constraint_column_names, referenced_table, referenced_column_names "
            "from duckdb_constraints() where constraint_type = 'FOREIGN KEY' and len(constraint_column_names) = 1"
        ).fetchall()
        if table in tables and parent in tables
    ]
    for table, columns in tables.items():
        with_keys = {key.column for key in found if key.table == table}
        for column in columns:
            if column not in with_keys:
                found += _parents(con, tables, table, column)
    return found


def _parents(
    con: duckdb.DuckDBPyConnection, tables: Mapping[str, Mapping[str, str]], table: str, column: str
) -> list[ForeignKey]:
    """The key that a column refers to, if names suggest one and it has every value of the column."""
    for parent, columns in tables.items():
        for to, kind in columns.items():
            if parent == table or not _may_refer(table, column, parent, to) or kind != tables[table][column]:
                continue
            if not (is_integer(kind) or is_text(kind) or kind == "UUID") or not _is_key(con, parent, to):
                continue
            missing = con.execute(
                f"select count(*) from {ident(table)} as c anti join {ident(parent)} as p on c.{ident(column)} = "
                f"p.{ident(to)} where c.{ident(column)} is not null"
            ).fetchall()[0][0]
            if not missing and not (_is_key(con, table, column) and _is_key_name(table, column)):
                return [ForeignKey(table, column, parent, to, "found: every value is one of the key's")]
    return []


def _may_refer(table: str, column: str, parent: str, to: str) -> bool:
    """Whether names suggest that a column refers to the key of a table."""
    name, key, noun = fold(column), fold(to), fold(parent).rstrip("s")
    return (name == key and _is_key_name(parent, to)) or (name in (noun, f"{noun}_id", f"{noun}id", f"{noun}_{key}"))


def _is_key_name(table: str, column: str) -> bool:
    """Whether a column is called like the key of its own table."""
    noun, name = fold(table).rstrip("s"), fold(column)
    return name in ("id", "key", "nr", "no") or name.startswith(noun)


def _is_key(con: duckdb.DuckDBPyConnection, table: str, column: str) -> bool:
    rows, distinct = con.execute(f"select count(*), count(distinct {ident(column)}) from {ident(table)}").fetchall()[0]
    return bool(rows) and rows == distinct


def first_plan(con: duckdb.DuckDBPyConnection, file: str, k: int | None = None) -> str:
    """The text of a first plan for the tables of a database, or for the only table, which a CSV or Parquet file has."""
    load(con)
    names = [
        name for (name,) in con.execute(
            "select table_name from duckdb_tables() where not internal and not temporary and schema_name = "
            "current_schema() and database_name = current_database() order by table_name"
        ).fetchall()
    ]  # fmt: skip
    tables = {n: {c: kind for c, kind, *_ in con.execute(f"describe {ident(n)}").fetchall()} for n in names}
    model = _omop(tables)
    keys = foreign_keys(con, tables) if model is None else model.keys
    if not tables:
        raise AnonError(f"{NAME}: {file} has no tables")
    if not keys:
        return _separate(con, names, file, k or _K)
    individuals, key = _individuals(keys)
    linked, stem = _linked(individuals, keys), re.sub(r"[.]duckdb$", "", file)
    left = [name for name in tables if name != individuals and name not in {link.table for link in linked}]
    why_left = f"does not lead to {individuals}" if model is None else "has no labels in this model"
    lines = [
        *_HEAD,
        *([] if model is None else _OF_OMOP),
        "",
        "[tables]",
        *(f"{_name(name)} = {_toml(f'{file}:{name}')}" for name in (individuals, *(link.table for link in linked))),
        *(f"# {name} {why_left}, so it is left out" for name in left),
        "",
        "[database]",
        f"individuals = {_toml(individuals)}  # one row for each individual",
        f"key = {_toml(key)}",
        f"k = {k}"
        if k
        else f"delta = {_DELTA}  # largest probability of re-identification; k = {_K} in its place generalizes",
        "# l = 2  # no sensitive value has a share above 1/l among the individuals of a group",
        f"output = {_toml(f'{stem}_release.duckdb')}",
        f"# evidence = {_toml(f'{stem}_evidence.html')}  # a page for the data holder; needs the extra report",
        "",
        "[database.keys]  # released as pseudonyms, which still join",
        *(link.line() for link in linked),
        "",
        "[database.checks]",
        f"identity = {round((1 / k if k else _DELTA) + 0.05, 2)}  # at most: measured on the join",
    ]
    names = [individuals, *(link.table for link in linked)]
    for name in names if model is None else ():
        lines += _labels(con, name, name == individuals, {key} if name == individuals else set(), linked)
    if model is not None:
        lines += model.lines(names)
    lines += ["", *statement_lines()]
    if model is not None:
        lines += model.accepted(names)
    return "\n".join(lines) + "\n"


def _separate(con: duckdb.DuckDBPyConnection, names: Sequence[str], file: str, k: int) -> str:
    """A plan that releases tables that no key joins, each by itself."""
    is_database = file.endswith(".duckdb")
    lines = [*_HEAD, "", "[tables]"]
    lines += [f"{_name(name)} = {_toml(f'{file}:{name}' if is_database else file)}" for name in names]
    for name in names:
        lines += _labels(con, name, True, set(), [])
    for name in names:
        lines += [
            "",
            "[[releases]]",
            f"name = {_toml(f'{name}_release')}",
            f"original = {_toml(name)}",
            f"call = {_toml(f'mondrian({literal(name)}, k := {k})')}  # l := 2 bounds shares of sensitive values",
            f"output = {_toml(f'{name}_release.parquet')}",
            '# key = "COLUMN"  # identifies a record, where a later release continues this one',
            "",
            "[releases.checks]",
            f"k = {k}  # at least",
            f"identity = {round(1 / k + 0.05, 2)}  # at most: by the strongest attacker",
        ]
    return "\n".join([*lines, "", *statement_lines()]) + "\n"


@dataclass(frozen=True)
class _Model:
    """Keys, labels and treatments of a data model, for the tables of it that are there."""

    keys: list[ForeignKey]
    parts: Mapping[str, Mapping[str, Mapping[str, str]]]  # labels, treatments: text by table and column

    def lines(self, names: Sequence[str]) -> list[str]:
        """Labels, then treatments, as a plan writes them."""
        return [
            line for part, tables in self.parts.items() for name in names if name in tables
            for line in (f"\n[{part}.{name}]", *(f"{c} = {_toml(text)}" for c, text in tables[name].items()))
        ]  # fmt: skip

    def accepted(self, names: Sequence[str]) -> list[str]:
        """Reasons why labels may be weaker than the proposed ones, commented out: the holder has to state them."""
        why = {"quasi categorical": "a code of a vocabulary, not a key", "sensitive": "not known outside the visit"}
        lines = []
        for name in names:
            labels = self.parts["labels"].get(name, {})
            stated = [f"# {column} = {_toml(why[label])}" for column, label in labels.items() if label in why]
            lines += [f"# [statements.accept.{name}]", *stated]
        return lines


def _omop(tables: Mapping[str, Mapping[str, str]]) -> _Model | None:
    """The OMOP common data model, where the tables of persons and visits are there."""
    if not all(column in tables.get(table, {}) for table, column in _SIGNS_OF_OMOP.items()):
        return None
    with as_file(files("duckdb_anon.database") / "omop.toml") as path:
        found = read_toml(NAME, path)
    there = {
        part: {
            table: {column: text for column, text in columns.items() if column in tables[table]}
            for table, columns in parts.items() if table in tables
        } for part, parts in found.items()
    }  # fmt: skip
    keys = []
    for table, columns in there.pop("keys").items():
        for column, to in columns.items():
            parent, _, key = to.partition(".")
            keys.append(ForeignKey(table, column, parent, key, "of OMOP"))
    return _Model(keys, there)


def _individuals(keys: Sequence[ForeignKey]) -> tuple[str, str]:
    """The table that most tables lead to, and its key."""
    roots = {key.parent: key.to for key in keys if key.parent not in {other.table for other in keys}} or {
        key.parent: key.to for key in keys
    }
    most = max(roots, key=lambda name: len(_linked(name, keys)))
    return most, roots[most]


def _linked(individuals: str, keys: Sequence[ForeignKey]) -> list[ForeignKey]:
    """One key of each table that leads to the individuals, parents first; a direct one where there is one."""
    order, found = [individuals], list[ForeignKey]()
    while True:
        ready = [key for parent in order for key in keys if key.parent == parent and key.table not in order]
        if not ready:
            return found
        found.append(ready[0])
        order.append(ready[0].table)


def _labels(
    con: duckdb.DuckDBPyConnection, table: str, is_first: bool, keys_of_table: set[str], linked: Sequence[ForeignKey]
) -> list[str]:
    """Labels and treatments of a table."""
    keys = (
        keys_of_table
        | {link.column for link in linked if link.table == table}
        | {link.to for link in linked if link.parent == table}
    )
    rows = con.execute(
        f"select column_name, type, role, looks_like, reason from anon_profile({literal(ident(table))})"
    ).fetchall()
    labels, treatments = [f"\n[labels.{_name(table)}]"], [f"\n[treatments.{_name(table)}]"]
    for name, kind, role, content, reason in rows:
        why = f"  # {content or kind}: {reason}"
        if name in keys:
            continue
        if is_moment(kind) and not is_first:
            labels.append(f'{_name(name)} = "quasi"{why}')
        elif role == "person" and not linked:
            labels.append(f'{_name(name)} = "person"{why}')
        elif role in ("identifier", "person"):
            labels.append(f'{_name(name)} = "identifier"{why}')
            treatment = "redact" if content == "free text" else _FAKES.get(content or "", "mask")
            treatments.append(f"# {_name(name)} = {_toml(treatment)}  # instead of dropping it")
        else:
            labels.append(f"{_name(name)} = {_toml(role if role in ('quasi', 'sensitive') else 'insensitive')}{why}")
    return [*(labels if len(labels) > 1 else []), *(treatments if linked and len(treatments) > 1 else [])]


def _toml(text: str) -> str:
    """A text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False)


def _name(text: str) -> str:
    """A key as TOML writes it."""
    return text if _BARE.fullmatch(text) else _toml(text)
