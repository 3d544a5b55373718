"""Registry entries to SQL functions: one TEMP macro an entry, over one planner and one runner.

The planner is a scalar function that DuckDB folds while it binds; it returns SQL text, or '!' and a message.
The runner is called by that SQL when it executes. Both are registered once a database; macros belong to a
connection and leave nothing in the file.
"""

from __future__ import annotations

import functools
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from duckdb_anon.engine import interrupts, runner
from duckdb_anon.engine.arrow import Answers, listed_rows, owning
from duckdb_anon.engine.catalog import sensitive_coarsening as edges
from duckdb_anon.engine.catalog.catalog import Catalog, use_schema
from duckdb_anon.engine.catalog.identifier_lineage import identifiers_read
from duckdb_anon.engine.draws import estimator_udfs, imputation
from duckdb_anon.engine.planned_tables import ROWS, require_committed
from duckdb_anon.engine.planner import parameters_of, plan
from duckdb_anon.engine.planning_context import Context
from duckdb_anon.engine.records.call_text import will_run
from duckdb_anon.engine.records.private_files import private_root, spill_folder
from duckdb_anon.engine.sql_quoting import literal, macro_statements, planned
from duckdb_anon.engine.transport import input_scan, result_encoding
from duckdb_anon.model.errors import AnonError, cause_of, code_of, of_newer_file, reported
from duckdb_anon.model.function_specs import Entry, Method, PureSql, Query, Report, Task
from duckdb_anon.model.progress import stop_flag
from duckdb_anon.model.release_comment import is_release
from duckdb_anon.registry import ENTRIES
from duckdb_anon.report.profile.key_columns import warn_of_keys

# DuckDB ends the process when a registered function is collected while the database lives, and nothing tells how long
# it does: the one function that each has of its own stays, the others are one set for all.
_KEEP: list[Any] = []
_CONNECTIONS: dict[int, dict[int, weakref.ref[duckdb.DuckDBPyConnection]]] = {}
_CREATED: list[tuple[Any, ...]] = []  # what `_present` says where all macros are as this version creates them
_REGISTERING = threading.Lock()  # a web server opens its connections at the same time
_BY_NAME = {entry.name: entry for entry in ENTRIES}


def load(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Make every function of the package available on `con`; calling it again is harmless.

    Nothing is written to the database: functions are registered in memory and macros are temporary, so it
    works on read-only files too. A cursor is another connection: `con.cursor()` needs a `load` of its own.

    Args:
        con: an open DuckDB connection.

    Returns:
        The same connection.

    Example:
        >>> import duckdb, duckdb_anon
        >>> con = duckdb_anon.load(duckdb.connect())
        >>> con.execute("select count(*) > 0 from anon_functions()").fetchone()
        (True,)
    """
    interrupts.install()
    with _REGISTERING:
        number = _instance_number(con)
        row = con.execute("select current_connection_id()").fetchone()
        here = weakref.ref(con)
        known, caller = _CONNECTIONS.setdefault(number, {}), int(row[0]) if row else -1
        is_known = caller in known
        if known.get(caller) is not here:
            known[caller] = here
            weakref.finalize(con, _forget, number, caller, here).atexit = False  # the process ends: nothing to free
    if is_known and _present(con) in _CREATED:
        return con
    _create(con)
    if not _CREATED:
        _CREATED.append(_present(con))
    return con


def macros(*, temporary: bool = True) -> Iterator[tuple[str, str]]:
    """Name and CREATE statement of every macro, helpers first.

    Args:
        temporary: whether they belong to one connection; otherwise to the default database, for servers whose
            clients get connections of their own.
    """
    wrapped = {entry.name for entry in ENTRIES}
    statements = [
        *((f"_anon_{name}" if name in wrapped else name, sql) for name, sql in macro_statements(wrapped)),
        *((entry.name, _macro(entry)) for entry in ENTRIES),
    ]
    for name, sql in statements:
        yield name, sql if temporary else sql.replace(" temp macro ", " macro ", 1)


def _present(con: duckdb.DuckDBPyConnection) -> tuple[Any, ...]:
    """Which of the package's macros a connection has, and their text: one question to the catalog."""
    names = [name for name, _ in macros()]
    return con.execute(
        "select count(*), bit_xor(hash(function_name, parameters, macro_definition)) from duckdb_functions() "
        "where database_name = 'temp' and list_contains($1, function_name)",
        [names],
    ).fetchall()[0]


def connect(database: str = ":memory:", *, read_only: bool = False, **config: Any) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB database with the package's functions loaded.

    What DuckDB spills to disk lies in a folder that its owner alone reads, unless `temp_directory` names another one.

    Args:
        database: path of a database file, or ':memory:'.
        read_only: open the file read-only.
        config: further settings, passed to DuckDB.

    Example:
        >>> import duckdb_anon
        >>> duckdb_anon.connect().execute("select 1").fetchone()
        (1,)
    """
    try:
        con = duckdb.connect(database, read_only=read_only, config=config)
    except duckdb.IOException as error:
        newer = of_newer_file(error, database)
        if not newer:
            raise
        raise AnonError(newer, code=code_of(newer)) from cause_of(error)
    # a setting and no part of config: all connections of a process to one file must have the same config
    if "temp_directory" not in config and not _spills_privately(con):
        # a database that has spilled already, or whose settings are locked, keeps its folder
        with suppress(duckdb.Error):
            con.execute(f"set temp_directory = {literal(spill_folder())}")
    return load(con)


def _spills_privately(con: duckdb.DuckDBPyConnection) -> bool:
    ((folder,),) = con.execute("select current_setting('temp_directory')").fetchall()
    return str(folder).startswith(str(private_root()))


def _create(con: duckdb.DuckDBPyConnection) -> None:
    """Create all macros."""
    statements = list(macros())
    try:
        con.execute("\n;\n".join(statement for _, statement in statements))  # a statement may end in a comment
    except duckdb.Error:  # to say which
        for name, statement in statements:
            _run(con, statement, name)


def _run(con: duckdb.DuckDBPyConnection, statement: str, name: str) -> None:
    try:
        con.execute(statement)
    except duckdb.Error as error:
        raise AnonError(f"load: the macro {name} could not be created: {error}\n{statement}") from error


def _forget(number: int, caller: int, gone: weakref.ref[duckdb.DuckDBPyConnection]) -> None:
    """Let go of a connection, and of the list of its database with the last one."""
    known = _CONNECTIONS.get(number, {})
    if known.get(caller) is gone:
        known.pop(caller, None)
    if not known:
        _CONNECTIONS.pop(number, None)
        imputation.forget_draws(number)


def _instance_number(con: duckdb.DuckDBPyConnection) -> int:
    """Number of the database instance behind `con`, registering the functions on first sight."""
    try:
        found = con.execute("select _anon_instance()").fetchone()
    except duckdb.CatalogException:
        found = None
    if found is not None:
        return int(found[0])
    number = secrets.randbits(62)  # a call says of which database it is: nobody guesses the number of another one

    def instance() -> int:
        return number

    _KEEP.append(instance)
    con.create_function("_anon_instance", instance, [], "BIGINT")
    for name, function, kind, side_effects in _shared():
        con.create_function(
            name,
            function,
            None,
            kind,
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
            side_effects=side_effects,
        )
    return number


@functools.cache
def _shared() -> tuple[tuple[str, Answers, str, bool], ...]:
    """Functions of every database: name, function, type of its result, whether it has side effects.

    One set for all: a call says of which database it is, so a web server's databases cost it no functions of their own.
    """
    run, impute = functools.partial(_run_each, _ran), functools.partial(_run_each, imputation.run)
    functions: tuple[tuple[str, Answers, str, bool], ...] = (
        ("_anon_plan", _planner, "VARCHAR", False),
        (edges.FUNCTION, edges.published, "BIGINT[]", False),
        *estimator_udfs.FUNCTIONS,
        ("_anon_open", _opener, "BIGINT", True),
        ("_anon_put", input_scan.put_rows, "BIGINT", True),
        ("_anon_run", run, result_encoding.RETURN_TYPE, True),
        (imputation.KEPT, imputation.are_stored, "BOOLEAN", True),
        (imputation.FUNCTION, impute, result_encoding.RETURN_TYPE, True),
    )
    taking = (  # from Arrow's own memory already
        ("_anon_take", result_encoding.take, result_encoding.ROWS_TYPE, True),
        *((name, imputation.take, kind, True) for name, kind in imputation.LISTS.items()),
    )
    return (*((name, owning(function), kind, acts) for name, function, kind, acts in functions), *taking)


def _planner(call: pa.Array) -> pa.Array:
    return pa.array([_planned(c["instance"], c) for c in call.to_pylist()], pa.string())


def _run_each(work: Callable[[pa.StructArray], pa.Array], call: pa.Array) -> pa.Array:
    """What `work` returns for each row of calls."""
    return pa.concat_arrays([interrupts.run(functools.partial(work, call.slice(k, 1))) for k in range(len(call))])


def _opener(call: pa.Array) -> pa.Array:
    statements = [(c["instance"], c["caller"], c["statement"]) for c in call.to_pylist()]
    return pa.array([input_scan.open_buffer(statement) for statement in statements], pa.int64())


def _worked(entry: Task, facts: Mapping[str, Any], call: pa.StructArray) -> pa.Array:
    """Do the work of a task on a connection of its own; errors travel as text."""
    names = ("call", "caller", "instance", "statement", "checked")
    _, caller, number, statement = (call.field(name)[0].as_py() for name in names[:4])
    lists = {field.name: listed_rows(call.field(field.name)) for field in call.type if field.name not in names}
    con = _cursor(number, caller)[0] if entry.database == "callers" else duckdb.connect()
    try:
        if con is None:
            raise AnonError(f"{entry.name}: there is no open connection to work on")
        if entry.database == "callers":
            require_committed(entry.name, con, facts["base"], lists[ROWS].to_pylist())
            use_schema(con, facts["database"], facts["schema"])
        con.execute("set enable_progress_bar = false")  # the caller's connection shows the progress
        with interrupts.passing_on(load(con), stop_flag()):
            rows = entry.work(con, facts["info"], lists)
        columns = {name: [row[name] for row in rows] for name in entry.returns}
        encoded = result_encoding.encode_rows(entry.returns, columns)
        return encoded.to_arrow(entry.name, len(rows), (number, caller, statement))
    except Exception as error:
        return result_encoding.error_result(reported(entry.name, error))
    finally:
        if con is not None:
            con.close()


def _planned(number: int, call: dict[str, Any]) -> str:
    """Plan one call; errors come back as '!' and their text."""
    interrupts.install()
    while True:
        cursor, is_callers = _cursor(number, call.get("caller", -1))
        if cursor is None:
            error = AnonError("no connection that has the functions is open. Call duckdb_anon.load on an open one")
            return f"!{reported(call['function'], error)}"
        try:
            planned_text = _planned_on(cursor, call)
            # a connection takes its cursors with it, and this one may be another than the caller's: the threads of a
            # server close theirs at any time, and what was found or went wrong then says nothing of the call
            if is_callers or not _is_closed(cursor):
                return planned_text
        finally:
            cursor.close()


def _is_closed(cursor: duckdb.DuckDBPyConnection) -> bool:
    try:
        cursor.execute("select 1")
    except duckdb.ConnectionException:
        return True
    return False


def _planned_on(cursor: duckdb.DuckDBPyConnection, call: dict[str, Any]) -> str:
    entry = _BY_NAME[call["function"]]
    snapshot = cursor.cursor()
    try:
        for one in (cursor, snapshot):
            use_schema(one, call["database"], call["schema"])
        snapshot.execute("begin")
        takes = [p.name for p in parameters_of(entry)]
        catalog = Catalog(cursor, call["database"], call["schema"], takes, snapshot)
        context = Context(entry.name, catalog, call["arguments"], _BY_NAME, connect)
        text = plan(entry, context)
        if isinstance(entry, (Method, PureSql)) and will_run():
            _warn(entry, context)
        return text
    except Exception as error:
        return f"!{reported(entry.name, error)}"
    finally:
        snapshot.close()


def _warn(entry: Method | PureSql, context: Context) -> None:
    """Warn of what a planned call takes for individuals."""
    relation = context.relation("tbl")
    named = context.arguments.get("person") or context.arguments.get("original") or context.arguments.get("force")
    if relation.visible and not named and not is_release(relation.comment):
        # the plan of a method has refused these
        beneath = {} if isinstance(entry, Method) else identifiers_read(context.catalog, relation)
        warn_of_keys(context.catalog, context.function, relation, beneath)


def _cursor(number: int, caller: int) -> tuple[duckdb.DuckDBPyConnection | None, bool]:
    """A fresh cursor, and whether it is of the caller's own connection: who closes another one may find it busy."""
    known = _CONNECTIONS.get(number, {})
    own = known.get(caller)
    others = [reference for number_there, reference in list(known.items()) if number_there != caller]
    for reference in [*([own] if own else []), *others]:
        con = reference()
        if con is not None:
            with suppress(duckdb.Error):
                return con.cursor(), reference is own
    return None, False


def _ran(call: pa.StructArray) -> pa.Array:
    text = call.field("call")[0].as_py()
    function, _, _, extra = runner.from_json(text)
    entry = _BY_NAME[function]
    if isinstance(entry, Task):
        return _worked(entry, extra, call)
    if not isinstance(entry, (Method, Report)):
        raise TypeError(f"{function} does not run a kernel")
    instance, caller, query = (call.field(name)[0].as_py() for name in ("instance", "caller", "statement"))
    names = [field.name for field in call.type if field.name.startswith("t")]

    def tables() -> list[input_scan.InputTable]:
        return [_table(call.field(name)) for name in names]

    trees = {name: listed_rows(call.field(f"h{k}")) for k, name in enumerate(extra["trees"])}
    return runner.run_call(entry, text, tables, trees, (instance, caller, query))


def _table(buffered: pa.StructArray) -> input_scan.InputTable:
    """Rows of a table that was buffered."""
    return input_scan.take_buffer(buffered.field("buffer")[0].as_py(), buffered.type.field("row").type.value_type)


def _macro(entry: Entry) -> str:
    """Statement that creates an entry's macro. All parameters default to NULL: the planner says what is missing.

    One without parameters gets one nevertheless: DuckDB would plan its call while it creates the macro.
    """
    parameters = [p.name for p in parameters_of(entry)] or ["nothing"]
    signature = ", ".join(f"{p} := NULL" for p in parameters)
    checked = planned(entry.name, {p: p for p in parameters})
    if isinstance(entry, Query) and entry.scalar:
        return f"create or replace temp macro {entry.name}({signature}) as {checked}"
    return f"create or replace temp macro {entry.name}({signature}) as table from query({checked})"
