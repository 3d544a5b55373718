"""Copy releases into a file of their own: isolation comes before filtering.

Published are the tables that `release()` wrote, row by row into a new file, so that no page of the original's file is
copied. Views are refused: a view over a randomizing function draws again at each read, and readers could average the
noise away; `publish_checks` refuses more.

Each release is accompanied by its comments, the hierarchies they name (tables commented `anon: hierarchy`), and the
original's shape: a view with the original's name and the released columns, which answers any query with an error that
says what to query instead. So queries over the original can be rewritten, and none returns an empty answer silently.
The file is written in a format that DuckDB 1.5 shells read.
"""

from __future__ import annotations

import secrets
import sys
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from dataclasses import replace as with_fields
from itertools import combinations
from pathlib import Path

import duckdb

from duckdb_anon.answering.original_names import SHAPE
from duckdb_anon.engine.catalog.catalog import names_of, write_comments
from duckdb_anon.engine.catalog.column_roles import PSEUDONYM, label_of, role_of
from duckdb_anon.engine.records.private_files import draft_of
from duckdb_anon.engine.records.register import SCHEMA as REGISTER
from duckdb_anon.engine.records.register import Register, registered, registers
from duckdb_anon.engine.records.register_samples import Records, Sample
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.gate.checks import refuse, require_signature
from duckdb_anon.gate.published_trees import PublishedTrees
from duckdb_anon.gate.source_tables import SourceTable, clean_comment, original_of, tables_of
from duckdb_anon.model.errors import AnonError, RewriteError, cause_of, listed, nearest, one_line, with_code
from duckdb_anon.model.hierarchy import HIDDEN_LABELS
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import QUERY, Description, is_release, read_description
from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.model.release_formats.duckdb_types import struct_fields, without_enums
from duckdb_anon.sequence.registration import joint_risk
from duckdb_anon.sql_functions import connect

_TREE = "anon: hierarchy"
_DRAWS = "anon: draws of "
_SOURCE, _TARGET = "_anon_source", "_anon_target"
NOT_MEASURED = "reveal more than each one; how much is measured for releases with a key and 200,000 rows at most"
STORAGE = "v1.5.0"


@dataclass(frozen=True)
class Published:
    """What a call of `publish` wrote."""

    releases: dict[str, int]  # number of rows by table
    originals: tuple[str, ...]  # names of the views that stand for originals
    trees: dict[str, int]  # hierarchies that were copied, with the number of labels that are hidden
    budgets: dict[str, float]  # sum of epsilon of all releases that the register lists, by original
    risks: dict[str, str]  # what releases that do not continue one another reveal together, by original
    draws: dict[str, int]  # tables of draws with the number of their rows


def is_published(table: SourceTable) -> bool:
    """Tell whether a table is one that `publish` writes: a release, its draws or hierarchy, an original's shape."""
    if table.is_view:
        return table.comment == SHAPE
    if table.comment.startswith(_DRAWS):
        return True
    return is_release(table.comment) or table.comment in (_TREE, f"{_TREE}, {HIDDEN_LABELS}")


def publish(
    database: str,
    target: str,
    originals: Sequence[str] = (),
    replace: bool = False,
    *,
    allow: Sequence[str] = (),
    public: Sequence[str] = (),
    independent: bool = False,
    draws: int = 0,
    storage_version: str = STORAGE,
) -> Published:
    """Copy every release of `database` into the new file `target`.

    Args:
        database: DuckDB file with the releases; it is opened read-only.
        target: file to write; it appears only once it is complete.
        originals: originals of releases whose comments do not name theirs.
        replace: whether an existing file may be replaced.
        allow: tables declared a release that `release()` did not write, for which the caller is responsible, and
            their columns that are written like keys (TABLE.COLUMN).
        public: hierarchies that everybody knows, such as a published classification: no label of them is hidden.
        independent: publish several releases of one original that are no sequence; who compares them learns more than
            each one reveals.
        draws: number of plausible tables to write with each release, as one table RELEASE_draws with the columns and
            types of the original and the number `_draw` from 0, for tools that do multiple imputation.
        storage_version: the oldest DuckDB that shall read the file, 'v1.0.0', or 'latest'.

    Raises:
        AnonError: when nothing is declared a release, when a declared one must not be published, or when the
            target exists.
    """
    goal = Path(target)
    if goal.exists() and not replace:
        raise AnonError(f"publish: {target} exists; give another file, or --replace")
    if not Path(database).exists():
        raise AnonError(f"publish: there is no database {database}")
    if not goal.absolute().parent.is_dir():
        raise AnonError(f"publish: there is no folder {goal.absolute().parent} to write to")
    if goal.exists() and goal.samefile(database):
        raise AnonError(f"publish: {target} is the database itself. Give a file of its own")
    with draft_of(goal) as draft, closing(connect()) as con:
        con.execute("set python_enable_replacements = false")
        con.execute(f"attach {literal(database)} as {_SOURCE} (read_only)")
        try:
            con.execute(f"attach {literal(str(draft))} as {_TARGET} (storage_version {literal(storage_version)})")
        except duckdb.Error as error:
            raise AnonError(
                f"publish: --storage-version {storage_version} is none that DuckDB {duckdb.__version__} writes. "
                "Allowed are 'v1.5.0', 'latest' and others"
            ) from cause_of(error)
        tables = tables_of(con, _SOURCE)
        releases = _releases(tables)
        given = [_given_original(name, tables) for name in originals]
        made_of = {table.name: _original_of(table, tables, given) for table in releases}
        allowed = {fold(name) for name in allow}
        there = {fold(f"{table.name}.{column}") for table in releases for column in table.columns}
        if unknown := allowed - there - {fold(table.name) for table in releases}:
            raise AnonError(f"publish: --allow {listed(unknown)}: there is no such table or column declared a release")
        risks = _joint_risks(con, releases, made_of, independent)
        trees = _CopiedTrees(con, tables, {fold(table.name) for table in releases}, public)
        for table in releases:
            original = made_of[table.name]
            keys = [fold(column) for column in table.columns if fold(f"{table.name}.{column}") in allowed]
            require_signature("publish", table)
            refuse(con, "publish", table, original, fold(table.name) in allowed, tables=tables, keys=keys)
            trees.published.add(table, original)
        rows = {table.name: _copy(con, table, trees) for table in releases}
        shapes = {table.name: table for table in [*made_of.values(), *given] if table is not None}
        for original in shapes.values():
            _write_shape(con, original, releases, trees)
        drawn = _write_draws(con, made_of, draws, trees.taken) if draws else {}
        budgets: defaultdict[str, float] = defaultdict(float)  # of releases that are published here or not
        for entry in registered(con, _SOURCE):
            if entry.epsilon is not None:
                budgets[entry.original] += entry.epsilon
        con.execute(f"detach {_SOURCE}")
        con.execute(f"checkpoint {_TARGET}")
        con.execute(f"detach {_TARGET}")
    return Published(rows, tuple(shapes), trees.rare, budgets, risks, drawn)


def _given_original(name: str, tables: Sequence[SourceTable]) -> SourceTable:
    """The table of an option --original."""
    known = {fold(table.name): table for table in tables if not table.is_view}
    if fold(name) not in known:
        raise AnonError(f"publish: --original {name} is not a table{nearest(name, known)}")
    if is_release(known[fold(name)].comment):
        raise AnonError(f"publish: --original {name} is a release itself")
    return known[fold(name)]


def _original_of(
    release: SourceTable, tables: Sequence[SourceTable], given: Sequence[SourceTable]
) -> SourceTable | None:
    """What a release was made from: as its comment says, else the one original given for those that do not say."""
    description = read_description(release.comment)
    if description is not None and description.original not in ("", QUERY):
        return original_of(release, tables)
    return given[0] if len(given) == 1 else None


class _CopiedTrees:
    """Hierarchies that releases name, written once each; `taken` are names of tables."""

    def __init__(
        self, con: duckdb.DuckDBPyConnection, tables: Sequence[SourceTable], taken: set[str], public: Sequence[str]
    ) -> None:
        self.con, self.taken = con, taken
        self.named = [table for table in tables if table.naming() and not table.is_view]
        self.published = PublishedTrees(con, frozenset(map(fold, public)))
        self.written: dict[str, str] = {}
        self.rare: dict[str, int] = {}
        self._tables = {fold(table.name): table for table in tables}

    def copied(self, name: str) -> str:
        """Name of the copy of a hierarchy."""
        tree = self._tables.get(fold(name))
        if tree is None:
            raise AnonError(
                f"publish: the hierarchy {name} is not a table of the file, so the release could not be read without "
                f"it; make it one{nearest(name, self._tables)}"
            )
        if tree.name not in self.written:
            target = tree.name
            while fold(target) in self.taken:
                target += "_tree"
            self.taken.add(fold(target))
            rows, rare = self.published.rows(tree, self.named)
            copy = f"{_TARGET}.main.{ident(target)}"
            self.con.register("_anon_tree", rows)
            self.con.execute(f"create table {copy} as from _anon_tree")
            self.con.unregister("_anon_tree")
            write_comments(self.con, copy, f"{_TREE}, {HIDDEN_LABELS}" if rare else _TREE, {})
            self.rare[target] = rare
            self.written[tree.name] = target
        return self.written[tree.name]


def _releases(tables: Sequence[SourceTable]) -> list[SourceTable]:
    declared = [table for table in tables if is_release(table.comment)]
    views = [table.name for table in declared if table.is_view]
    if views:
        raise AnonError(
            f"publish: {listed(views)} is a view commented 'anon: release'. A view draws its noise again at "
            "each read, and readers could average it away. Write a table with duckdb-anon release or anon_release"
        )
    if not declared:
        raise AnonError("publish: no table is declared a release. Write one with duckdb-anon release or anon_release")
    names = [fold(table.name) for table in declared]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise AnonError(f"publish: two releases are called {listed(twice)}. All are copied into one schema: rename one")
    for table in declared:
        together = (read_description(table.comment) or Description()).together.get("tables", [])
        if missing := [name for name in together if fold(name) not in names]:
            raise AnonError(
                f"publish: {table.name} was released together with {listed(missing)}, which is missing. A released "
                "database is published whole. Release the tables that you want to publish"
            )
        if table.schema == REGISTER:
            raise AnonError(f"publish: {table.name} belongs to the register of releases, which is never published")
        internal = [column for column in table.columns if SOURCE.stands_for(column)]
        if internal:
            raise AnonError(
                f"publish: {table.name} has the column {listed(internal)}, which links its rows to the original. "
                "It is for your own checks. Make the release without row_id"
            )
    return declared


def _joint_risks(
    con: duckdb.DuckDBPyConnection,
    releases: Sequence[SourceTable],
    made_of: Mapping[str, SourceTable | None],
    independent: bool,
) -> dict[str, str]:
    """What releases of one original that do not continue one another reveal together; refused unless allowed.

    Originals are the same by the name that the register, or else the description, gives them, or by their records.
    """
    register = Register.read(con, _SOURCE) if _SOURCE in registers(con) else None
    secret, sampled = (register.secret, register.samples()) if register is not None else (secrets.token_hex(16), {})
    entries = {entry.digest: entry for entry in registered(con, _SOURCE) if entry.digest}
    found: dict[str, dict[str, int | str]] = {}
    samples: dict[str, list[Sample]] = {}
    for table in releases:
        description = read_description(table.comment) or Description()
        entry, source = entries.get(description.digest), made_of[table.name]
        original = fold(entry.original if entry is not None else description.original)
        if original not in ("", QUERY):
            found.setdefault(original, {})[table.name] = entry.sequence if entry is not None else table.name
            drawn = sampled.get(entry.number, []) if entry is not None else _samples(con, table, source, secret)
            samples[original] = [*samples.get(original, []), *drawn]
    for one, other in combinations(list(samples), 2):
        if one in found and any(s.kind == t.kind and s.share(t) for s in samples[one] for t in samples[other]):
            found[other] |= found.pop(one)
            samples[other] += samples[one]
    risks: dict[str, str] = {}
    for original, sequences in found.items():
        if len(set(sequences.values())) == 1:
            continue
        if not independent:
            raise AnonError(
                f"publish: {listed(sequences)} are releases of {original} that do not continue one another. Who "
                "compares them learns more than each one reveals. Publish one of them, make them with "
                "previous := '...', or say --independent"
            )
        names = set(map(fold, sequences))
        of_it = [entry for entry in entries.values() if fold(entry.original) == original]
        shown = [entry for entry in of_it if fold(names_of(entry.name)[-1]) in names]
        risks[original] = joint_risk(con, f"{_SOURCE}.{original}", shown, {}) or NOT_MEASURED
    return risks


def _samples(
    con: duckdb.DuckDBPyConnection, release: SourceTable, original: SourceTable | None, secret: str
) -> list[Sample]:
    """Samples of the records of an original in the file, by the roles of a release; none where it is elsewhere."""
    if original is None:
        return []
    role = {fold(value.name): value.role for value in release.values()}
    quasi, sensitive = (
        [c for c in original.columns if role.get(fold(c)) == wanted] for wanted in ("quasi", "sensitive")
    )
    return Records(con, original.sql, quasi, sensitive, "").samples(secret)


def _copy(con: duckdb.DuckDBPyConnection, table: SourceTable, trees: _CopiedTrees) -> int:
    target = f"{_TARGET}.main.{ident(table.name)}"
    # the type of an enum tells values that nobody has any more
    columns = ", ".join(
        f"{ident(name)}::{without_enums(kind)} as {ident(name)}" if "ENUM(" in kind else ident(name)
        for name, (kind, _) in table.columns.items()
    )
    # rows in the order they were made in could be laid beside the original's; nobody knows the key of this order
    order = f"sha256('{secrets.token_hex(16)}' || rowid::varchar)"
    (made,) = con.execute(f"create table {target} as select {columns} from {table.sql} order by {order}").fetchall()
    description = read_description(table.comment) or Description()
    # what comments say of roles goes along; other text, such as paths, stays behind
    comments = {column: clean_comment(text, trees.copied) for column, (_, text) in table.columns.items()}
    write_comments(con, target, description.comment(), {column: text for column, text in comments.items() if text})
    return int(made[0])


def _write_shape(
    con: duckdb.DuckDBPyConnection, original: SourceTable, releases: Sequence[SourceTable], trees: _CopiedTrees
) -> None:
    """Create the view that has the original's name and columns that releases show, and answers with an error."""
    released = set()
    for kind, name in [(kind, name) for release in releases for name, (kind, _) in release.columns.items()]:
        released |= {fold(name), *(fold(field) for field, _ in struct_fields(kind))}  # slices hold attributes
    shown = [column for column in original.columns if fold(column) in released]
    if not shown:
        raise AnonError(f"publish: no release shows a column of {original.name}; is it their original?")
    if fold(original.name) in trees.taken:
        raise AnonError(
            f"publish: {original.name} is the name of an original and of another published table; rename it"
        )
    trees.taken.add(fold(original.name))
    name = ident(original.name)
    hint = with_code(
        f"estimate: {original.name} is not in this file, only releases of it: FROM estimate('SELECT ... FROM "
        f"{original.name}', 'RELEASE') answers from one, and rewrite_query('...', '{original.name}', 'RELEASE') has "
        "the SQL",
        RewriteError.code,
    )
    # an error in every column: a filter on a NULL would be settled, and answered, without asking for the row
    types = {column: without_enums(original.columns[column][0]) for column in shown}
    columns = ", ".join(f"error({literal(hint)})::{kind} as {ident(column)}" for column, kind in types.items())
    con.execute(f"create view {_TARGET}.main.{name} as select {columns} where error({literal(hint)})::boolean")
    con.execute(f"comment on view {_TARGET}.main.{name} is {literal(SHAPE)}")
    labels = {column: label for column in shown if (label := label_of(original.columns[column][1])) is not None}
    comments = {column: with_fields(label, hierarchy=None).comment() for column, label in labels.items()}
    write_comments(con, f"{_TARGET}.main.{name}", None, comments)


def _write_draws(
    con: duckdb.DuckDBPyConnection, releases: Mapping[str, SourceTable | None], draws: int, taken: set[str]
) -> dict[str, int]:
    """Write the plausible tables of each published release, of which nothing but the published file is read.

    Those of a released database are drawn together, so that they join inside each draw.
    """
    tables = {table.name: table for table in tables_of(con, _TARGET)}
    keyed = {name for name in releases if any(role_of(text) == PSEUDONYM for _, text in tables[name].columns.values())}
    together = {original.name if (original := releases[name]) else name: name for name in sorted(keyed)}
    found: dict[str, int] = {}
    con.execute(f"use {_TARGET}.main")
    try:
        for release, original in releases.items():
            target = f"{release}_draws"
            if fold(target) in taken:
                raise AnonError(f"publish: --draws writes a table {target}, which there is already. Rename that one")
            given = f", original := {literal(original.name)}" if original is not None else ""
            given += f", together := {literal(together)}" if release in keyed and len(together) > 1 else ""
            call = f"impute({literal(release)}, {draws}, seed := 1{given})"
            number = "0 as _draw, *" if draws == 1 else "(draw - 1)::integer as _draw, * exclude (draw)"
            (made,) = con.execute(f"create table {ident(target)} as select {number} from {call}").fetchall()
            comment = f"{_DRAWS}{release}; no row is the record of an individual"
            con.execute(f"comment on table {ident(target)} is {literal(comment)}")
            found[target] = int(made[0])
    except duckdb.Error as error:
        raise AnonError(f"publish: --draws: {one_line(error)}") from cause_of(error)
    finally:
        con.execute("use memory.main")
    return found


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `duckdb-anon publish`."""
    add = parser.add_argument
    add("database", help="DuckDB file with the releases (opened read-only)")
    add("target", help="file to write")
    for option, what, meaning in (
        ("--original", "TABLE", "original of releases whose comments do not name it; its columns go along, no rows"),
        ("--allow", "NAME", "publish TABLE, commented 'anon: release', that release() did not write and whose rows are "
         "not checked; a column of it that is written like a key needs TABLE.COLUMN, too"),
        ("--public-hierarchy", "TABLE", "hierarchy that everybody knows, such as a classification: labels that few "
         "records carry are not hidden"),
    ):  # fmt: skip
        add(option, action="append", default=[], metavar=what, help=f"{meaning} (may be repeated)")
    add(
        "--independent", action="store_true",
        help="publish several releases of one original that are no sequence; together they reveal more than each one",
    )  # fmt: skip
    add(
        "--storage-version", default=STORAGE, metavar="VERSION",
        help=f"oldest DuckDB that shall read the file, or 'latest' (default: {STORAGE})",
    )  # fmt: skip
    add(
        "--draws", type=int, default=0, metavar="N",
        help="write N plausible tables with each release, as one table RELEASE_draws with the original's columns and "
        "their number _draw, for tools that do multiple imputation",
    )  # fmt: skip
    add("--replace", action="store_true", help="replace the file if it exists")


def main(given: Namespace) -> int:
    """`duckdb-anon publish`."""
    done = publish(
        given.database, given.target, given.original, given.replace,
        allow=given.allow, public=given.public_hierarchy, independent=given.independent,
        draws=given.draws, storage_version=given.storage_version,
    )  # fmt: skip
    lines = {name: f"{rows} rows" for name, rows in done.releases.items()}
    lines |= {name: f"{rows} plausible rows" for name, rows in done.draws.items()}
    lines |= dict.fromkeys(done.originals, "column names and types, no rows")
    lines |= {
        name: f"hierarchy, {rare} labels that few records carry are hidden" if rare else "hierarchy"
        for name, rare in done.trees.items()
    }
    sys.stdout.writelines(f"{name}: {what}\n" for name, what in lines.items())
    for original, risk in done.risks.items():
        sys.stdout.write(f"{original}: its independent releases together {risk}\n")
    for original, epsilon in done.budgets.items():
        sys.stdout.write(f"{original}: epsilon {epsilon:g} in all releases of the register\n")
    return 0
