"""What the pages of a workbench work on: one table, and the plan beside it, which is all the state there is.

The plan is the file that `duckdb-anon run` reads. Every change is written at once, under a lock and to the part that it
is about, so that pages of several tabs, a reload and a server that is killed lose nothing; comments stay. The rows are
in memory: all of them, or a random sample of a larger table, for choosing; the release takes all rows (`run`).
DuckDB may read and write the plan's folder alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import tomlkit
from tomlkit.exceptions import TOMLKitError

from duckdb_anon.database.first_plan import first_plan
from duckdb_anon.engine.catalog.catalog import write_comments
from duckdb_anon.engine.records.call_text import Recorded, recording
from duckdb_anon.engine.records.private_files import draft_of
from duckdb_anon.engine.records.release_seal import KEY
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.errors import AnonError, listed, without_code
from duckdb_anon.model.release_comment import Label
from duckdb_anon.model.release_formats.duckdb_types import is_number
from duckdb_anon.report.promises import promises
from duckdb_anon.report.weak_labels import weak_label
from duckdb_anon.shell.run_command import read_plan
from duckdb_anon.shell.run_input import cleaned_sql, is_file_of_rows, losses, make_hierarchies, read_table
from duckdb_anon.sql_functions import connect
from duckdb_anon.workbench.jobs import Jobs

NAME = "workbench"
MOST_ROWS = 100_000
"""Rows that choosing works on: a larger table is sampled."""
ROLES = {
    "identifier": "identifier: removed",
    "person": "person: key of an individual",
    "quasi": "quasi: others may know it",
    "sensitive": "sensitive: must not be linked",
    "insensitive": "insensitive: leaves unchanged",
    "": "not released",
}
SAMPLE_FOLDER = "duckdb-anon-sample"
_RAW = "_anon_raw"
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Promise:
    """What a release is to hold: the largest risk, of each record (prosecutor, journalist) or on average (marketer)."""

    limit: float
    attacker: str = "prosecutor"

    @property
    def per_record(self) -> bool:
        """Whether the limit holds for each record."""
        return self.attacker != "marketer"

    @property
    def aim(self) -> float:
        """Risk that is looked for: the checks compare the upper end of its 95% interval, of 1,000 targets or more."""
        return max(self.limit - 1.96 * math.sqrt(self.limit * (1 - self.limit) / 1000), self.limit / 4)


class Workbench:
    """One table, its plan, and a connection that pages share."""

    def __init__(self, plan: Path, table: str) -> None:
        """Read the table that a plan names."""
        self.plan, self.table = plan, table
        self.lock = threading.RLock()
        self.jobs = Jobs(plan, table)
        self.con = connect()
        self.con.execute("set python_enable_replacements = false; set enable_progress_bar = false")
        stated = read_plan(plan)
        if table not in stated["tables"]:
            raise AnonError(f"{NAME}: {plan} has no table {table}. Move the plan, or add the table to it")
        self.source: str = stated["tables"][table]
        read_table(self.con, table, plan.parent, self.source, {})
        self.rows: int = self.con.execute(f"select count(*) from {ident(table)}").fetchall()[0][0]
        self.con.execute(f"alter table {ident(table)} rename to {_RAW}")
        if self.rows > MOST_ROWS:
            drawn = f"select * from {_RAW} using sample reservoir({MOST_ROWS} rows) repeatable (1)"
            self.con.execute(f"create or replace table {_RAW} as {drawn}")
        folder = literal([f"{plan.parent.absolute()}/"])
        self.con.execute(f"set allowed_directories = {folder}; set enable_external_access = false")
        self._kept: dict[object, Any] = {}
        self.refresh()

    @property
    def sampled(self) -> str:
        """What is said of a table that is too large to choose on; '' where all rows are here."""
        if self.rows <= MOST_ROWS:
            return ""
        return (
            f"You choose on a random sample of {MOST_ROWS:,} of the {self.rows:,} rows, so that the page stays fast: "
            "counts and risks of steps 1 to 4 are those of the sample. The release takes all rows, and its checks "
            "are measured on them."
        )

    def stated(self) -> dict[str, Any]:
        """The plan as it stands in its file."""
        with self.lock:
            return read_plan(self.plan)

    @contextmanager
    def changing(self) -> Iterator[Any]:
        """The plan's document, which is checked and written at the end of the block."""
        with self.lock:
            try:
                document = tomlkit.parse(self.plan.read_text(encoding="utf-8"))
            except (OSError, TOMLKitError) as error:
                raise AnonError(f"{NAME}: {self.plan} cannot be read: {error}") from error
            yield document
            with draft_of(self.plan, mode=0o600) as draft:
                draft.write_text(tomlkit.dumps(document), encoding="utf-8")
                try:  # what run would refuse is refused here
                    read_plan(draft)
                except AnonError as error:
                    raise AnonError(str(error).replace(str(draft), str(self.plan)), code=error.code) from error
            self.refresh()

    def refresh(self) -> None:
        """Clean and label the table as the plan says."""
        plan, table = self.stated(), ident(self.table)
        cleaning, labels = plan["cleaning"].get(self.table, {}), plan["labels"].get(self.table, {})
        if self._kept.get("cleaning") != cleaning:
            losses(self.con, _RAW, cleaning)
            self.con.execute(f"create or replace table {table} as from {cleaned_sql(_RAW, cleaning)}")
            self._kept = {"cleaning": dict(cleaning), "dirt": self._kept.get("dirt")}
        if self._kept.get("hierarchies") != plan["hierarchies"]:
            make_hierarchies(self.con, plan["hierarchies"])
            self._kept["hierarchies"] = dict(plan["hierarchies"])
        texts = dict.fromkeys(self.columns, "") | {column: f"anon: {role}" for column, role in labels.items()}
        write_comments(self.con, table, None, {column: texts[column] for column in self.columns})

    def rows_of(self, sql: str) -> Rows:
        """Rows of a query, one mapping each."""
        with self.lock:
            return rows_of(self.con, sql)

    def _once(self, key: object, sql: str) -> Rows:
        """Rows of a query, asked once for a cleaning."""
        with self.lock:
            if self._kept.get(key) is None:
                self._kept[key] = self.rows_of(sql)
            found: Rows = self._kept[key]
            return found

    @property
    def columns(self) -> dict[str, str]:
        """Types of the cleaned columns."""
        return {row["column_name"]: row["column_type"] for row in self.rows_of(f"describe {ident(self.table)}")}

    def ten(self) -> Rows:
        """Ten rows of the cleaned table."""
        return self.rows_of(f"from {ident(self.table)} using sample reservoir(10 rows) repeatable (1)")

    def dirt(self) -> dict[str, Rows]:
        """Problems of the table as it was read, by column; the last one's expression cleans the column."""
        found: dict[str, Rows] = {}
        for row in self._once("dirt", f"from anon_dirt({literal(_RAW)}) where column_name is not null"):
            found.setdefault(row["column_name"], []).append(row)
        return found

    def cleaning(self) -> dict[str, str]:
        """Expression of each column that the plan cleans."""
        return dict(self.stated()["cleaning"].get(self.table, {}))

    def nulls_by(self, column: str, expression: str) -> int:
        """How many values of a column an expression makes NULL."""
        with self.lock:
            return losses(self.con, _RAW, {column: expression})[column]

    def clean(self, column: str, expression: str | None) -> None:
        """Clean a column by an expression, or leave it as it was read."""
        if expression is not None:
            self.nulls_by(column, expression)
        with self.changing() as document:
            _set(document, ("cleaning", self.table, column), expression)

    def profile(self) -> dict[str, dict[str, Any]]:
        """What anon_profile says of each column; nothing where the profile extra is missing."""
        if not (find_spec("stdnum") and find_spec("phonenumbers")):
            return {}
        return {row["column_name"]: row for row in self._once("profile", f"from anon_profile({self._name})")}

    @cached_property
    def name(self) -> str:
        """The table as SQL names it."""
        return self.table if re.fullmatch(r"[A-Za-z_]\w*", self.table) else ident(self.table)

    @property
    def _name(self) -> str:
        return literal(self.name)

    def roles(self) -> dict[str, str]:
        """Role of each column, '' where it is not released."""
        labels = self.stated()["labels"].get(self.table, {})
        return {column: labels.get(column, "").partition(" ")[0] for column in self.columns}

    def set_role(self, column: str, role: str) -> None:
        """Give a column a role; '' takes it out of the release."""
        with self.changing() as document:
            self._label(document, column, role)

    def uses_tree(self, column: str) -> bool:
        """Whether the plan has the hierarchy that anon_profile proposes for a column."""
        return f"{self.table}_{column}" in self.stated()["hierarchies"]

    def use_tree(self, column: str, use: bool) -> None:
        """Generalize a column by the proposed hierarchy while it is a quasi-identifier, or without one."""
        role = self.roles()[column]
        with self.changing() as document:
            call = self.profile()[column]["hierarchy"] if use else None
            _set(document, ("hierarchies", f"{self.table}_{column}"), call)
            self._label(document, column, role)

    def _label(self, document: Any, column: str, role: str) -> None:
        tree = f"{self.table}_{column}"
        by = tree if role == "quasi" and tree in document.get("hierarchies", {}) else None
        _set(document, ("labels", self.table, column), Label(role, hierarchy=by).text() if role else None)

    def warnings(self) -> list[tuple[str, str]]:
        """Columns that have a weaker role than the proposed one, unless the plan states why, with the warning."""
        plan, proposed = self.stated(), self.profile()
        labels = plan["labels"].get(self.table, {})
        found = []
        for column, row in proposed.items():
            label = labels.get(column, "").partition(" ")[0]
            text = weak_label(self.table, column, label, row["role"], plan["context"])
            found += [(column, text)] if text else []
        return found

    def accept(self, column: str, why: str) -> None:
        """State why a weak role is right."""
        with self.changing() as document:
            _set(document, ("statements", "accept", self.table, column), why.strip() or None)

    def uniques(self) -> dict[str, Any] | None:
        """Unique records by the chosen quasi-identifiers, and risks by classes; None without such columns."""
        if not any(role == "quasi" for role in self.roles().values()):
            return None
        (row,) = self.rows_of(f"from reidentification_risk({self._name})")
        return row

    def tree(self, column: str) -> tuple[Rows, str]:
        """Some rows of the hierarchy that anon_profile proposes for a column, or why there are none."""
        call = self.profile().get(column, {}).get("hierarchy")
        if not call:
            return [], ""
        try:
            return self._once(("tree", column), f"from {call} order by all limit 200"), ""
        except duckdb.Error as error:
            return [], without_code(error)

    def release(self) -> dict[str, Any]:
        """The release of the table that the plan describes."""
        found = [entry for entry in self.stated()["releases"] if entry["original"] == self.table]
        if not found:
            raise AnonError(f"{NAME}: {self.plan} has no [[releases]] of {self.table}. Add one, or begin a new plan")
        entry: dict[str, Any] = found[0]
        return entry

    def set_release(self, **fields: object) -> None:
        """Change fields of the release; None takes one out."""
        if "output" in fields and not re.fullmatch(r"[^/\\.][^/\\]*\.(parquet|duckdb)", str(fields["output"])):
            raise AnonError(
                f"{NAME}: {fields['output']} is no file of this folder. Give a name that ends in .parquet or .duckdb"
            )
        with self.changing() as document:
            entry = next(entry for entry in document["releases"] if entry["original"] == self.table)
            for name, value in fields.items():
                _set(entry, (name,), value)

    def arguments(self) -> Recorded | None:
        """The call of the release as it is planned: parameters, defaults among them, and roles; None for no call."""
        with self.lock, recording(lambda _: None) as recorded:
            self.con.execute(f"describe from {self.release()['call']}")
            return recorded()

    def promises(self) -> tuple[list[str], list[str]]:
        """What the call of the release promises, and what it does not."""
        try:
            call = self.arguments()
        except duckdb.Error as error:
            return [], [f"The call cannot be carried out: {without_code(error)}"]
        if call is None:
            return [], ["This is not one call of a method."]
        return promises(call.entry, call.params, call.roles.by_name())

    def choose(self, call: str) -> None:
        """Release by a call that recommend wrote."""
        self.set_release(call=call.removeprefix("FROM "))

    @property
    def signature(self) -> str:
        """Whether releases of this process are signed."""
        if os.environ.get(KEY):
            return f"the release is signed with the key that {KEY} names."
        return f"the release is not signed. Make a key with duckdb-anon keygen, and start this page with {KEY}=FILE."

    def promise(self) -> Promise:
        """The promise that the checks of the release hold it to."""
        checks = self.release()["checks"]
        named = [name for name in ("journalist", "prosecutor") if name in checks]
        attacker = named[0] if named else "marketer" if "advantage" in checks else "prosecutor"
        return Promise(float(checks.get("identity", 0.09)), attacker)

    def set_promise(self, promise: Promise) -> None:
        """Let the checks hold the release to a promise, whatever its method; the page of evidence has its limit."""
        left_out = ("k", "prosecutor", "journalist")
        checks = {name: value for name, value in self.release()["checks"].items() if name not in left_out}
        checks |= {"identity": promise.limit, "advantage": promise.limit}
        checks |= {promise.attacker: promise.limit} if promise.per_record else {}
        self.set_release(checks=checks)
        with self.changing() as document:
            _set(document, ("statements", "threshold"), promise.limit)

    def queries(self) -> list[str]:
        """Questions of the holder's own, which the page of evidence has too; some to begin with."""
        stated: Sequence[str] = self.stated()["context"].queries
        if stated:
            return list(stated)
        roles, kinds = self.roles(), self.columns
        groups = [c for c, role in roles.items() if role == "quasi" and self._few(c)][:1]
        amounts = [c for c, role in roles.items() if role == "sensitive" and is_number(kinds[c])][:1]
        group = f"select {ident(groups[0])}, count(*) from {self.name} group by 1" if groups else ""
        mean = f"select avg({ident(amounts[0])}) from {self.name}" if amounts else ""
        return [text for text in (f"select count(*) from {self.name}", group, mean) if text]

    def _few(self, column: str) -> bool:
        """Whether a column has few values."""
        return 1 < int(self.profile().get(column, {}).get("distinct_values", 0)) <= 20

    def set_queries(self, queries: Sequence[str]) -> None:
        """State the questions."""
        with self.changing() as document:
            _set(document, ("statements", "queries"), [text.strip() for text in queries if text.strip()] or None)

    def made_from(self, kind: str) -> str:
        """Digest of what a piece of work depends on."""
        plan, file = self.stated(), self.plan.with_name(self.source.partition(":")[0]).stat()
        parts: list[object] = [plan["cleaning"], plan["hierarchies"], plan["labels"], file.st_size, file.st_mtime_ns]
        if kind != "trials":
            parts.append({name: value for name, value in self.release().items() if kind == "publish" or name == "call"})
        if kind == "look":
            parts.append(self.queries())
        return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()

    def start(self, kind: str) -> None:
        """Begin a piece of work in the background."""
        if kind == "publish":
            self.set_release(evidence=str(Path(self.release()["output"]).with_suffix(".html")))
        self.jobs.start(kind, self.made_from(kind))

    def result(self, kind: str) -> tuple[Any, bool]:
        """The last result of a kind of work, and whether it is of the plan as it stands."""
        return self.jobs.result(kind, self.made_from(kind))

    def sql(self) -> str:
        """Statements that do what the plan does."""
        plan, entry = self.stated(), self.release()
        rows = literal(self.source)
        database, _, table = self.source.partition(".duckdb:")
        if table:
            rows = f"{ident(Path(database).name)}.{table}"
        lines = [f"ATTACH {literal(f'{database}.duckdb')} (READ_ONLY);"] if table else []
        lines.append(f"CREATE TABLE {self.name} AS FROM {cleaned_sql(rows, plan['cleaning'].get(self.table, {}))};")
        lines += [f"CREATE TABLE {ident(name)} AS FROM {call};" for name, call in plan["hierarchies"].items()]
        for column, role in plan["labels"].get(self.table, {}).items():
            lines.append(f"COMMENT ON COLUMN {self.name}.{ident(column)} IS {literal(f'anon: {role}')};")
        target = entry["output"]
        if target.endswith(".duckdb"):
            lines.append(f"ATTACH {literal(target)} AS released;")
            target = f"released.{ident(entry['name'])}"
        call = f"{literal(target)}, {literal(entry['call'])}"
        key = f", key := {literal(entry['key'])}" if "key" in entry else ""
        return "\n".join([*lines, f"FROM anon_release({call}{key});"])


def rows_of(con: duckdb.DuckDBPyConnection, sql: str) -> Rows:
    """Rows of a query, one mapping each."""
    found = con.execute(sql)
    names = [name for name, *_ in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _set(document: Any, path: Sequence[str], value: object) -> None:
    """Put a value into a document, or take it out where it is None; parts that become empty stay."""
    *above, last = path
    for name in above:
        if name not in document:
            document[name] = tomlkit.table(is_super_table=name in ("cleaning", "labels", "accept"))
        document = document[name]
    if value is None:
        document.pop(last, None)
    else:
        document[last] = value


def opened(file: str | None, folder: Path) -> Workbench:
    """The workbench of a file of rows, or of a table of a database file ('people.duckdb' or 'people.duckdb:people').

    Without a file a sample is written to a folder of its own. A plan beside the file is continued, or begun.
    """
    if file is None:
        folder = folder / SAMPLE_FOLDER
        folder.mkdir(exist_ok=True)
        file = str(folder / "people.parquet")
        if not Path(file).exists():
            with connect() as con:
                con.execute(f"copy (from anon_sample('census', 5000, seed := 1)) to {literal(file)}")
    path, _, table = file.partition(".duckdb:")
    place = Path(f"{path}.duckdb" if table else path)
    if not place.is_file():
        raise AnonError(f"{NAME}: there is no file {place}")
    plan = place.with_name("plan.toml")
    is_rows = is_file_of_rows(place.name)
    table = table or (place.name.split(".")[0] if is_rows else _only_table(place))
    if not plan.exists():
        _begin(plan, place, table, is_rows)
    return Workbench(plan, table)


def _only_table(database: Path) -> str:
    with connect(str(database), read_only=True) as con:
        names = [
            name for (name,) in con.execute("select table_name from duckdb_tables() where not internal").fetchall()
        ]
    if len(names) != 1:
        raise AnonError(f"{NAME}: {database} has the tables {listed(names)}. Name one: {database}:TABLE")
    return str(names[0])


def _begin(plan: Path, place: Path, table: str, is_rows: bool) -> None:
    """Write a first plan for one table."""
    with connect() as con:
        source = place.name if is_rows else f"{place.name}:{ident(table)}"
        read_table(con, table, place.parent, source, {})
        if con.execute(f"select count(*) from {ident(table)}").fetchall()[0][0] == 0:
            raise AnonError(f"{NAME}: {place} has no rows")
        text = first_plan(con, source if is_rows else place.name)
    with draft_of(plan, mode=0o600) as draft:
        draft.write_text(text, encoding="utf-8")


_open: list[Workbench] = []


def serve(bench: Workbench) -> None:
    """Make a workbench the one of this process, which its pages share."""
    _open[:] = [bench]


def current() -> Workbench:
    """The workbench of this process."""
    return _open[0]
