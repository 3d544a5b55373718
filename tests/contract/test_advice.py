"""Errors name what is wrong, and advise what can be done: a parameter named in one is of the function that raised it."""

import re
from collections.abc import Iterator

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.model.function_specs import Entry
from duckdb_anon.registry import ENTRIES
from tests.reference.entry_calls import arguments, is_scalar, tables_of

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

TAKES = {entry.name: {p.name for p in parameters_of(entry)} for entry in ENTRIES}
TABLES = ("plain", "labelled", "empty", "missing", "unseen", "person_rows", "odd", "(from labelled)", "/no/such.csv")
WRONG = {
    "number": ("-1", "'x'", "0", "'nan'::double"), "fraction": ("-1", "'x'", "10::decimal(38,0)"),
    "integer": ("-1", "2.5", "1000000000000000000000000000000::hugeint"), "text": ("'nonsense'", "''"),
    "boolean": ("'x'", "true"), "names": ("['nowhere']", "[]", "['age', 'age']", "['name']"),
    "mapping": ("{'nowhere': 1}", "{'age': 'nowhere'}"), "any": ("-1", "'nowhere'", "['nowhere']"),
}  # fmt: skip
ROLES = {"qi": "['age', 'sex']", "sensitive": "['disease']", "person": "'pid'"}


@pytest.fixture(scope="module")
def con():
    con = duckdb_anon.connect()
    columns = "i as pid, i % 7 as age, (['f', 'm'])[1 + i % 2] as sex, 'd' || i % 3 as disease, 'n' || i as name"
    for table, rows in (("plain", 40), ("labelled", 40), ("empty", 0), ("person_rows", 40)):
        con.execute(f"create table {table} as select {columns} from range({rows}) t(i)")
    con.execute("update person_rows set pid = pid // 4")
    con.execute("""create table odd as select null::integer as age, [1] as sex, {a: 1} as disease, 'x' as name
        from range(9)""")
    con.execute(f"create temp table unseen as select {columns} from range(40) t(i)")
    for table in ("labelled", "empty", "person_rows"):
        for column, role in (("age", "quasi"), ("sex", "quasi"), ("disease", "sensitive"), ("name", "identifier")):
            con.execute(f"comment on column {table}.{column} is 'anon: {role}'")
    con.execute("comment on column person_rows.pid is 'anon: person'")
    yield con
    con.close()


def calls(entry: Entry) -> Iterator[tuple[str, set[str]]]:
    """The smallest call, then calls in which one thing after the other is wrong, with the words that name it."""
    own = {p.name: p for p in parameters_of(entry)}
    tables = [name for name in own if name in tables_of(entry)]
    least = {name: "'labelled'" for name in tables}
    names = {"original": "labelled", "release": "labelled", "number": "age", "text": "sex", "sensitive": "disease"}
    least |= arguments(entry.smallest.format(**names))

    def call(given: dict[str, str]) -> str:
        named = ", ".join(f"{name} := {value}" for name, value in given.items())
        return f"{'select' if is_scalar(entry) else 'from'} {entry.name}({named})"

    roles = {name: value for name, value in ROLES.items() if name in own and name != "person"}
    yield call({**least, **roles}), set()
    # tables that are held against one another have the types of one another
    for table in TABLES if len(tables) < 2 else [name for name in TABLES if name != "odd"]:
        for place in tables:
            given = {**least, place: f"'{table}'"}
            yield call({**given, **roles} if roles else given), set()
    for name, parameter in own.items():
        if name not in tables and name != "path":
            for wrong in WRONG[parameter.kind]:
                # where a role or a list is lost, what lacks it is named
                words = set() if name in ROLES or wrong == "[]" else {name, *re.findall(r"\w+", wrong)}
                yield call({**least, **roles, name: wrong}), words
    for dropped in own:
        if dropped in least:
            yield call({name: value for name, value in least.items() if name != dropped}), {dropped}


def refusal(con: duckdb.DuckDBPyConnection, statement: str) -> str:
    """What is said of a statement; nothing where it is answered, and where a name may be of a temporary table."""
    try:
        con.execute(statement).fetchmany(1)
    except duckdb.Error as error:
        told = str(error).split("\n\nLINE ")[0]
        unseen = isinstance(error, duckdb.CatalogException) and re.search(
            r"with name (missing|nowhere|nonsense) does not", told
        )
        return "" if unseen else told
    return ""


@pytest.mark.parametrize(
    "entry", [e for e in ENTRIES if e.name not in ("recommend", "anon_report")], ids=lambda e: e.name
)
def test_errors_name_what_is_wrong_and_advise_only_what_the_function_takes(con, entry):
    (plain, _), *others = calls(entry)
    anyway, refused = refusal(con, plain), 0
    for statement, words in others[len(entry.name) % 2 :: 2]:
        told = refusal(con, statement)
        if not told:
            continue
        refused += 1
        named = re.match(r"Invalid Input Error: (\w+): ", told)
        assert named is not None and "internal error" not in told, f"{statement}\n{told}"
        assert not words or told == anyway or words & set(re.findall(r"\w+", told)), f"{statement}\n{told}"
        if "make it again with row_id := true" in told.lower():
            continue  # advice on the call that made the release
        told = re.sub(r"'\w+\([^']*\)'", "", told)  # a call of another function
        foreign = set(re.findall(r"(?<![\w'\"])([a-z_]+) := ", told)) - TAKES.get(named[1], set())
        assert not foreign, f"{statement}\n{named[1]} takes no {sorted(foreign)}: {told}"
    assert refused > 1 or len(TAKES[entry.name]) < 3
