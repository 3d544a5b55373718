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
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from pathlib import Path

import duckdb

from duckdb_anon.answering.original_names import SHAPE
from duckdb_anon.engine.catalog import names_of, write_comments
from duckdb_anon.engine.column_roles import label_of
from duckdb_anon.engine.private_files import draft_of
from duckdb_anon.engine.register import SCHEMA as REGISTER
from duckdb_anon.engine.register import registered
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.gate.checks import refuse
from duckdb_anon.gate.published_trees import PublishedTrees
from duckdb_anon.gate.source_tables import SourceTable, all_tables, all_views, clean_comment, naming_tables, read_table
from duckdb_anon.model.errors import AnonError, RewriteError, cause_of, listed, nearest, with_code
from duckdb_anon.model.hierarchy import HIDDEN_LABELS
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import QUERY, Description, is_release, read_description
from duckdb_anon.model.release_formats import SOURCE
from duckdb_anon.model.release_formats.duckdb_types import struct_fields, without_enums
from duckdb_anon.sequence.joint_risk import joint_risk
from duckdb_anon.sql_functions import connect

_TREE = "anon: hierarchy"
_SOURCE, _TARGET = "_anon_source", "_anon_target"
NOT_MEASURED = "reveal more than each one; how much is measured for releases with a key and 200,000 rows at most"
STORAGE = "v1.5.0"


@dataclass(frozen=True)
class Published:
    """What a call of `publish` wrote.

    Attributes:
        releases: table name to number of rows.
        originals: names of the views that stand for originals.
        budgets: originals with differentially private releases, and the sum of epsilon of all that the register lists.
        trees: names of the hierarchies that were copied, with the number of labels that are hidden.
        risks: originals with releases that do not continue one another, and what these reveal together.
    """

    releases: dict[str, int] = field(default_factory=dict)
    originals: tuple[str, ...] = ()
    trees: dict[str, int] = field(default_factory=dict)
    budgets: dict[str, float] = field(default_factory=dict)
    risks: dict[str, str] = field(default_factory=dict)


def is_shape(comment: str | None) -> bool:
    """Tell whether a view stands for an original without its rows."""
    return comment == SHAPE


def is_tree(comment: str | None) -> bool:
    """Tell whether a table is a hierarchy that was published beside a release."""
    return comment in (_TREE, f"{_TREE}, {HIDDEN_LABELS}")


def publish(
    database: str,
    target: str,
    originals: Sequence[str] = (),
    replace: bool = False,
    *,
    allow: Sequence[str] = (),
    public: Sequence[str] = (),
    independent: bool = False,
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
        releases = _releases(con)
        known = _Originals(con, releases, originals)
        allowed = {fold(name) for name in allow}
        there = {fold(f"{table.name}.{column}") for table in releases for column in table.columns}
        if unknown := allowed - there - {fold(table.name) for table in releases}:
            raise AnonError(f"publish: --allow {listed(unknown)}: there is no such table or column declared a release")
        risks = _joint_risks(con, releases, independent)
        named = naming_tables(con, [_SOURCE])
        trees = _CopiedTrees(con, {fold(table.name) for table in releases}, named, public)
        for table in releases:
            original = known.of(table)
            others = [other for other in named if original is None or other.sql != original.sql]
            keys = [fold(column) for column in table.columns if fold(f"{table.name}.{column}") in allowed]
            refuse(con, "publish", table, original, others, fold(table.name) in allowed, keys=keys)
            trees.published.add(table, original)
        rows = {table.name: _copy(con, table, trees) for table in releases}
        shapes = known.shapes()
        for original, shown in shapes:
            _write_shape(con, original, shown, trees)
        budgets: defaultdict[str, float] = defaultdict(float)  # of releases that are published here or not
        for entry in registered(con, _SOURCE):
            if entry.epsilon is not None:
                budgets[entry.original] += entry.epsilon
        con.execute(f"detach {_SOURCE}")
        con.execute(f"checkpoint {_TARGET}")
        con.execute(f"detach {_TARGET}")
    return Published(rows, tuple(original.name for original, _ in shapes), trees.rare, budgets, risks)


class _Originals:
    """The originals of the releases that are in the file."""

    def __init__(self, con: duckdb.DuckDBPyConnection, releases: Sequence[SourceTable], named: Sequence[str]) -> None:
        self._con, self._releases = con, releases
        self._tables = {fold(name): (schema, name, comment) for schema, name, comment in all_tables(con, _SOURCE)}
        self._named = [self._given(name) for name in named]

    def of(self, release: SourceTable) -> SourceTable | None:
        """The original a release was made from: as its comment says, else the one named for those that do not say."""
        description = read_description(release.comment)
        if description is not None and description.original not in ("", QUERY):
            last = names_of(description.original)[-1]
            found = self._tables.get(fold(last))
            return read_table(self._con, _SOURCE, *found) if found and not is_release(found[2]) else None
        return self._named[0] if len(self._named) == 1 else None

    def shapes(self) -> list[tuple[SourceTable, list[str]]]:
        """Each original, and its columns that some release shows."""
        every = {o.name: o for o in [*(self.of(r) for r in self._releases), *self._named] if o is not None}
        shown = {fold(field) for release in self._releases for field in _shown(release)}
        found = []
        for original in every.values():
            columns = [column for column in original.columns if fold(column) in shown]
            if not columns:
                raise AnonError(f"publish: no release shows a column of {original.name}; is it their original?")
            found.append((original, columns))
        return found

    def _given(self, name: str) -> SourceTable:
        found = self._tables.get(fold(name))
        if found is None:
            raise AnonError(f"publish: --original {name} is not a table{nearest(name, self._tables)}")
        if is_release(found[2]):
            raise AnonError(f"publish: --original {name} is a release itself")
        return read_table(self._con, _SOURCE, *found)


class _CopiedTrees:
    """Hierarchies that releases name, written once each; `taken` are names of tables."""

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        taken: set[str],
        named: Sequence[SourceTable],
        public: Sequence[str],
    ) -> None:
        self.con, self.taken, self._named = con, taken, named
        self.published = PublishedTrees(con, frozenset(map(fold, public)))
        self.written: dict[str, str] = {}
        self.rare: dict[str, int] = {}

    def copied(self, name: str) -> str:
        """Name of the copy of a hierarchy."""
        places = [*all_tables(self.con, _SOURCE), *all_views(self.con, _SOURCE)]
        known = {fold(place[1]): place for place in places}
        place = known.get(fold(name))
        if place is None:
            raise AnonError(
                f"publish: the hierarchy {name} is not a table of the file, so the release could not be read without "
                f"it; make it one{nearest(name, known)}"
            )
        if place[1] not in self.written:
            target = place[1]
            while fold(target) in self.taken:
                target += "_tree"
            self.taken.add(fold(target))
            rows, rare = self.published.rows(read_table(self.con, _SOURCE, *place), self._named)
            copy = f"{_TARGET}.main.{ident(target)}"
            self.con.register("_anon_tree", rows)
            self.con.execute(f"create table {copy} as from _anon_tree")
            self.con.unregister("_anon_tree")
            description = f"{_TREE}, {HIDDEN_LABELS}" if rare else _TREE
            write_comments(self.con, copy, description, {})
            self.rare[target] = rare
            self.written[place[1]] = target
        return self.written[place[1]]


def _releases(con: duckdb.DuckDBPyConnection) -> list[SourceTable]:
    views = [name for _, name, comment in all_views(con, _SOURCE) if is_release(comment)]
    if views:
        raise AnonError(
            f"publish: {listed(views)} is a view commented 'anon: release'. A view draws its noise again at "
            "each read, and readers could average it away. Write a table with duckdb-anon release or .release"
        )
    found = [read_table(con, _SOURCE, *row) for row in all_tables(con, _SOURCE) if is_release(row[2])]
    if not found:
        raise AnonError("publish: no table is declared a release. Write one with duckdb-anon release or .release")
    names = [fold(table.name) for table in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise AnonError(f"publish: two releases are called {listed(twice)}. All are copied into one schema: rename one")
    for table in found:
        if table.sql.startswith(f"{ident(_SOURCE)}.{ident(REGISTER)}."):
            raise AnonError(f"publish: {table.name} belongs to the register of releases, which is never published")
        internal = [column for column in table.columns if SOURCE.stands_for(column)]
        if internal:
            raise AnonError(
                f"publish: {table.name} has the column {listed(internal)}, which links its rows to the original. "
                "It is for your own checks. Make the release without row_id"
            )
    return found


def _joint_risks(con: duckdb.DuckDBPyConnection, releases: Sequence[SourceTable], independent: bool) -> dict[str, str]:
    """What releases of one original that do not continue one another reveal together; refused unless allowed."""
    entries = {entry.digest: entry for entry in registered(con, _SOURCE) if entry.digest}
    found: dict[str, dict[str, int | str]] = {}
    for table in releases:
        description = read_description(table.comment) or Description()
        entry = entries.get(description.digest)
        original = entry.original if entry is not None else description.original
        if original not in ("", QUERY):
            found.setdefault(fold(original), {})[table.name] = entry.sequence if entry is not None else table.name
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
    con: duckdb.DuckDBPyConnection, original: SourceTable, shown: Sequence[str], trees: _CopiedTrees
) -> None:
    """Create the view that has the original's name and columns and answers with an error."""
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


def _shown(release: SourceTable) -> list[str]:
    """Columns of a release, and the fields of its STRUCT columns (slices hold attributes)."""
    kinds = (kind for kind, _ in release.columns.values())
    return [*release.columns, *(name for kind in kinds for name, _ in struct_fields(kind))]


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
    add("--replace", action="store_true", help="replace the file if it exists")


def main(given: Namespace) -> int:
    """`duckdb-anon publish`."""
    done = publish(
        given.database, given.target, given.original, given.replace,
        allow=given.allow, public=given.public_hierarchy, independent=given.independent,
        storage_version=given.storage_version,
    )  # fmt: skip
    lines = {name: f"{rows} rows" for name, rows in done.releases.items()}
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
