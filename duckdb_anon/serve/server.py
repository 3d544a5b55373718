"""What is served over Quack, in a worker's process behind the front that clients reach.

The curator's endpoint is the database itself: whoever holds its token may do what this program may. The analyst's
endpoint holds a published file alone, opened read-only, with external access off and its configuration locked,
and every statement passes the guard. Where releases answer for originals, clients see the originals' columns and
nothing else. Analysts share limited memory.

Quack gives each client a fresh connection, which sees no temporary macro. The analyst's functions therefore live
in the in-memory database that its process starts from; the curator's are written into the served file while it is
served and removed when serving ends.
"""

from __future__ import annotations

import hmac
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import duckdb

from duckdb_anon.engine.catalog.catalog import write_comments
from duckdb_anon.engine.records.private_files import spill_folder
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.gate.checks import require_signed
from duckdb_anon.gate.source_tables import SourceTable, tables_of
from duckdb_anon.model.errors import AnonError, listed, without_values
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_comment import is_release
from duckdb_anon.rewrite.query.tables import Bounds
from duckdb_anon.serve.answers import CLOSED, LOCKED, Answer, Answers, Catalog
from duckdb_anon.serve.audit import fingerprint
from duckdb_anon.serve.guard import Guard, Refused, Statement
from duckdb_anon.serve.limits import ServingLimits
from duckdb_anon.serve.publish import is_published
from duckdb_anon.serve.statements import FLUSH, Statements
from duckdb_anon.serve.tokens import Client
from duckdb_anon.sql_functions import load, macros

ANALYST_FUNCTIONS = frozenset(
    "rewrite_query estimate impute describe_release anon_functions anon_parameters anatomy_qit anatomy_st".split()
)
_MARK = "anon: served"
_PAGE = 4  # chunks of 2,048 rows that a client gets at once: a slow one takes the memory of few
_PATH = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?(?:[/\\][^\s/\\'\"():]+){2,}")
# DuckDB ends the process when a registered function is collected while the database lives.
_KEEP: list[Callable[..., object]] = []
_SESSIONS = 20_000
_REASON = 500  # characters of why a statement is refused


EXTENSIONS = "DUCKDB_ANON_EXTENSIONS"
"""Variable of the environment: a folder with the extensions of this DuckDB, where INSTALL reaches no network."""
_NEEDED = ("httpfs", "quack")


def load_quack(con: duckdb.DuckDBPyConnection) -> None:
    """Load the Quack extension: from the folder that the environment names, from PyPI's packages, or as installed."""
    version = duckdb.__version__
    for name in _NEEDED:
        file = _file_of(name, version)
        try:
            con.execute(f"load {literal(str(file)) if file else name}")
        except duckdb.Error as error:
            raise AnonError(
                f"serve: DuckDB {version} cannot load its extension {name} ({_told(error)}). "
                f"With a network run INSTALL httpfs; INSTALL quack; without one, set {EXTENSIONS} to a folder with "
                f"{' and '.join(f'{each}.duckdb_extension' for each in _NEEDED)} of this version. pip install "
                "'duckdb-anon[serve,quack]' brings both, with the older DuckDB that they are built for",
                code="extension-missing",
            ) from error


def _told(error: duckdb.Error) -> str:
    """What DuckDB says first of a file of its own, which holds no values."""
    return str(error).partition("\n")[0].split(": ", 1)[-1].rstrip(".")


def _file_of(name: str, version: str) -> Path | None:
    """The file of an extension; None where DuckDB's own folder is the place to look."""
    given, file = os.environ.get(EXTENSIONS), f"{name}.duckdb_extension"
    if given:
        copied = Path(given).glob(f"v{version}/*/{file}")  # as DuckDB lays its own folder out
        return next(copied, Path(given) / file)
    spec = find_spec(f"duckdb_extension_{name}")
    places = [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
    files = (place / "extensions" / f"v{version}" / file for place in places)
    return next((found for found in files if found.exists()), None)


class Curator:
    """The database itself, with every function of the package."""

    def __init__(self, database: str) -> None:
        """Open `database` and write the functions into it for as long as it is served."""
        if not Path(database).exists():
            raise AnonError(f"serve: there is no database {database}")
        self.con = duckdb.connect(database, config={"temp_directory": spill_folder()})
        self.con.execute("set global python_enable_replacements = false")
        # the macros in the file; temporary ones of the same names are others
        self._main = f"{ident(str(self.con.execute('select current_database()').fetchall()[0][0]))}.main"
        self._remove()
        load(self.con)
        statements = dict(macros(temporary=False))
        clash = sorted(name for name, _, _ in self._found() if name in statements)
        if clash:
            self.con.close()
            raise AnonError(f"serve: the database has macros of its own called {listed(clash)}; rename or drop them")
        self.con.execute("begin")
        for statement in statements.values():
            self.con.execute(statement)
        for name, kind, _ in self._found():
            if name in statements:
                self.con.execute(f"comment on {kind} {self._main}.{ident(name)} is {literal(_MARK)}")
        self.con.execute("commit")

    def close(self) -> None:
        """Remove the functions from the file and close it."""
        self._remove()
        self.con.close()

    def _remove(self) -> None:
        """Drop what this or an interrupted earlier run has written."""
        for name, kind, comment in self._found():
            if comment == _MARK:
                self.con.execute(f"drop {kind} if exists {self._main}.{ident(name)}")

    def _found(self) -> list[tuple[str, str, str | None]]:
        """Name, kind and comment of the macros in the file."""
        return self.con.execute(
            "select distinct function_name, if(function_type = 'table_macro', 'macro table', 'macro'), comment "
            "from duckdb_functions() where function_type in ('macro', 'table_macro') and not internal "
            "and database_name = current_database() and schema_name = 'main' order by all"
        ).fetchall()


class Checked:
    """An in-memory database that reaches nothing else, of which every statement is checked before it runs."""

    def __init__(self, limits: ServingLimits) -> None:
        """Make it; `limits` are those of all clients together."""
        self.con = duckdb.connect(":memory:")
        self.con.execute("set global python_enable_replacements = false; set enable_progress_bar = false")
        self.statements = Statements(self.con, limits.seconds)
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, ...] | None, tuple[Guard, Catalog]] = {}

    def answer(self, statement: str, client: Client, session: str = "") -> Answer:
        """What Quack runs in place of a client's statement; what is wrong with it is an error of that SQL.

        It is run for a session that is named, and the SQL reads its rows. A MemoryError says nothing of the statement.
        """
        try:
            with self._lock:
                guard, catalog = self._visible(client.tables)
            found = guard.check(statement)
            if found.reads_catalog:
                return Answer(catalog.answer(statement), "catalog")
            return self._answered(statement, found, client, session)
        except (Refused, AnonError, duckdb.Error) as error:
            why = public_text(error)
        except MemoryError:
            raise
        except Exception:  # closed by default: a tree too deep to walk, a shape the parser never had before
            why = "this statement cannot be read here"
        return Answer(f"select error({literal(why)})", refused=why)

    def _visible(self, tables: tuple[str, ...] | None) -> tuple[Guard, Catalog]:
        """What checks statements of clients who may read some tables, and what they learn of tables."""
        if tables not in self._seen:
            guard, shapes = self._tables()
            if tables is not None:
                guard = guard.narrowed(tables)
            self._seen[tables] = (guard, Catalog(table for table in shapes if fold(table.name) in guard.published))
        return self._seen[tables]

    def _tables(self) -> tuple[Guard, list[SourceTable]]:
        """What checks statements of clients who may read every table, and the tables as clients see them."""
        raise NotImplementedError

    def _answered(self, statement: str, found: Statement, client: Client, session: str) -> Answer:
        """What answers a statement that the guard has checked."""
        raise NotImplementedError

    def _run(self, answer: Answer, session: str, client: Client) -> Answer:
        """Run an answer; what goes wrong is for the client alone, since it may hold values."""
        try:
            return replace(answer, sql=self.statements.run(session, client.name, answer.sql))
        except (Refused, duckdb.Error) as error:
            return replace(answer, sql=f"select error({literal(public_text(error))})")

    def bound(self, limits: ServingLimits) -> None:
        """Limit memory beyond what is taken now, and threads."""
        taken = self.con.execute("select coalesce(sum(memory_usage_bytes), 0) from duckdb_memory()").fetchall()[0][0]
        self.con.execute(f"set global memory_limit = '{limits.memory + int(taken)}B'")
        if limits.threads is not None:
            self.con.execute(f"set global threads = {limits.threads}")

    def lock(self) -> None:
        """Close every way out; called once the server listens, since afterwards nothing can be loaded."""
        for setting in (*CLOSED, "allow_community_extensions = false", *LOCKED):
            self.con.execute(f"set global {setting}")

    def close(self) -> None:
        """Close the database."""
        self.con.close()


class Analyst(Checked):
    """A published file, read-only, in a process that can reach nothing else."""

    def __init__(
        self,
        releases: str,
        limits: ServingLimits | None = None,
        answer: Mapping[str, str] | None = None,
        seed: int = 0,
        bounds: Bounds = "none",
    ) -> None:
        """Open `releases` and show its tables as views of the in-memory database clients start in.

        Where releases answer for originals, clients see these alone, with rows drawn from `seed`, and
        `bounds` as columns of their answers.
        """
        limits = limits or ServingLimits()
        if not Path(releases).exists():
            raise AnonError(f"serve: there is no file {releases}")
        super().__init__(limits)
        load(self.con)
        for name, statement in macros(temporary=False):
            if name in ANALYST_FUNCTIONS or name.startswith("_"):
                self.con.execute(statement)
        self.con.execute(f"attach {literal(releases)} as published (read_only)")
        self._published = Guard(self._views())
        self._answers = Answers(self.con, answer, seed, bounds) if answer else None
        self._visible(None)
        self.bound(limits)  # beyond what the plausible tables take

    def _tables(self) -> tuple[Guard, list[SourceTable]]:
        every = [table for table in tables_of(self.con, "memory") if table.schema == "main"]
        return self._answers.guard if self._answers else self._published, every

    def _answered(self, statement: str, found: Statement, client: Client, session: str) -> Answer:
        answer = self._answers.answer(statement, found) if self._answers else Answer(statement, "release")
        return self._run(answer, session, client) if session and not found.is_scan else answer

    def _views(self) -> list[str]:
        tables = tables_of(self.con, "published")
        strange = [table.name for table in tables if not is_published(table)]
        if strange or not tables:
            raise AnonError(
                f"serve: the file holds {listed(strange) or 'no table'}; analysts are served files made by "
                "duckdb-anon publish, which hold releases and nothing else"
            )
        for table in tables:
            if is_release(table.comment):
                require_signed(self.con, "serve", table)
            view = f"main.{ident(table.name)}"
            self.con.execute(f"create view {view} as from {table.sql}")
            self.con.execute(f"comment on view {view} is {literal(table.comment)}")
            write_comments(self.con, view, None, {name: text for name, (_, text) in table.columns.items() if text})
        return [table.name for table in tables]


def listen(served: Curator | Checked, address: str, token: str, report: Callable[[Mapping[str, object]], None]) -> None:
    """Serve at host:port who presents `token`; `report` takes what answered each statement, or why it was refused."""
    clients: OrderedDict[str, Client] = OrderedDict()

    def authenticate(session: str, given: str, _: str) -> bool:
        """Admit the front, which sends this worker's token and who the client is."""
        sent, _, client = given.partition(" ")
        if not hmac.compare_digest(sent.encode(), token.encode()):
            return False
        clients[session] = Client.from_json(client)
        while len(clients) > _SESSIONS:
            clients.popitem(last=False)
        return True

    def authorize(session: str, statement: str) -> str:
        """The SQL that runs in place of a statement."""
        client = clients.get(session)
        if statement == FLUSH:
            return statement
        if client is None:
            return "select error('the session has ended; connect again')"
        answer = (
            Answer(statement, "database") if isinstance(served, Curator) else served.answer(statement, client, session)
        )
        refused = answer.refused[:_REASON]
        report({"key": fingerprint(session, statement), "refused": refused, "engine": answer.engine, **answer.facts})
        return answer.sql

    con = served.con
    load_quack(con)
    _KEEP.extend((authenticate, authorize))
    con.create_function("_anon_authenticate", authenticate, ["VARCHAR"] * 3, "BOOLEAN")
    con.create_function("_anon_authorize", authorize, ["VARCHAR"] * 2, "VARCHAR")
    con.execute("set global quack_authentication_function = '_anon_authenticate'")
    con.execute("set global quack_authorization_function = '_anon_authorize'")
    con.execute(f"call quack_serve({literal('quack:' + address)}, token := {literal(token)})")
    if isinstance(served, Checked):
        con.execute(f"set global quack_fetch_batch_chunks = {_PAGE}")
        served.lock()
        served.statements.watch(address)


def public_text(error: Exception) -> str:
    r"""What an analyst reads of an error: its first paragraph, and no path of this machine.

    >>> public_text(duckdb.IOException('IO Error: Cannot open "/srv/r.duckdb": gone\n\nAt:\n  /x/y.py(1)'))
    'IO Error: Cannot open "(a path)": gone'
    """
    paragraph = " ".join(without_values(error).partition("\n\n")[0].split())
    return _PATH.sub("(a path)", paragraph)
