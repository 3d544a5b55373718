"""A value that cannot be cast stands in DuckDB's own message, and in no error, note or output of this package."""

import traceback
from collections.abc import Callable

import duckdb
import pytest

import duckdb_anon
from duckdb_anon import AnonError
from duckdb_anon.cli import main
from duckdb_anon.model.errors import code_of, may_quote_values, of_function, without_code, without_values
from duckdb_anon.model.function_specs import Method
from duckdb_anon.registry import ENTRIES
from duckdb_anon.serve.server import public_text
from tests.reference.entry_calls import smallest_call

SECRET = "Zwiebelfisch"
METHODS = [entry for entry in ENTRIES if isinstance(entry, Method)]
PERSON = dict.fromkeys(("one_to_m_generalize", "rmr"), ", person := 'age', hierarchies := {'disease': 'tree'}")
QUERY = "'SELECT count(*) FROM people WHERE age < 30', 'people', 'r'"
CALLS = [
    "from k_anonymity('people')", "from reidentification_risk('people')", "from anon_profile('people')",
    "from anon_dirt('people')", "from anon_hierarchy('people', 'age')", "from label_statements('people')",
    "from recommend('people', 0.5, seconds := 1)", "from compare('people', ['r'])",
    "from information_loss('people', 'r')", "from linkage_risk('people', 'r')", "from workload_error('people', 'r', 3)",
    f"from relative_error({QUERY})", "from verify_release('broken')",
    "from anon_release('s', 'mondrian(''people'', 2)', independent := true)",
    *(f"from {method.name}({smallest_call(method, 'people')}{PERSON.get(method.name, '')})" for method in METHODS),
]  # fmt: skip
VIEW = f"select * replace (if(age = 7, '{SECRET}', age::varchar)::integer as age) from base"


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A file with the view `people`, one value of which cannot be cast, and a release of its table."""
    path = tmp_path_factory.mktemp("cast") / "clinic.duckdb"
    with duckdb_anon.connect(str(path)) as con:
        con.execute("""create table base as select i % 20 as age, i % 2 as sex, 'd' || i % 7 as disease
            from range(80) t(i)""")
        con.execute("create table people as from base")
        con.execute("create table tree as select distinct disease as leaf, '*' as top from base")
        labels = {"age": "quasi", "sex": "quasi", "disease": "sensitive"}
        for column, role in labels.items():
            con.execute(f"comment on column people.{column} is 'anon: {role}'")
        duckdb_anon.release(con, "r", "mondrian('people', 2)", independent=True)
        con.execute(f"drop table people; create view people as {VIEW}")
        for column, role in labels.items():
            con.execute(f"comment on column people.{column} is 'anon: {role}'")
        con.execute(f"create view broken as select * replace ('{SECRET}'::integer::varchar as disease) from r")
    return path


@pytest.mark.parametrize("statement", CALLS, ids=lambda call: call.partition("(")[0])
def test_shell_shows_no_value(statement, database, capsys):
    main([str(database), "--readonly", "-c", statement])
    out, err = capsys.readouterr()
    assert SECRET not in out + err and "internal error" not in out + err
    assert "unreadable" in err or "left out" in out + err or not err


@pytest.mark.parametrize(
    "words",
    [
        ("-c", "select age from people"), ("-c", "from anon_release('s', 'mondrian(''people'', 2)')"), ("-c", "from label_statements('people')"),
        ("-c", "select 'a" + SECRET + "'::date"), ("release", "{db}", "s", "mondrian('people', 2)"),
        ("release", "{db}", "s", "mondrian('people', 2)", "--part-rows", "1000"),
        ("release", "{db}", "s", "mondrian('people', 2)", "--key", "age"),
        ("release", "{db}", "{db}.parquet", "mondrian('people', 2)"),
        ("report", "{db}", "--original", "people", "--release", "r", "-o", "{db}.html"),
        ("publish", "{db}", "{db}.out", "--allow", "broken"),
    ],
    ids=lambda words: " ".join(words[:2]),
)  # fmt: skip
def test_command_line_shows_no_value(words, database, tmp_path, capsys):
    copy = tmp_path / "clinic.duckdb"
    copy.write_bytes(database.read_bytes())
    given = [word.format(db=copy) for word in words]
    main(given if words[0] in ("release", "report", "publish") else [str(copy), *given])
    out, err = capsys.readouterr()
    written = "".join(file.read_text() for file in tmp_path.glob("*.html"))
    assert SECRET not in out + err + written
    assert err or written


def test_exceptions_and_their_tracebacks_show_no_value(database, tmp_path):
    def with_parts() -> object:
        return duckdb_anon.release(con, "s", "mondrian('people', 2)", part_rows=1000)

    calls: list[Callable[[], object]] = [
        lambda: duckdb_anon.release(con, "s", "mondrian('people', 2)"),
        with_parts,
        lambda: duckdb_anon.release(con, str(tmp_path / "s.parquet"), "mondrian('people', 2)"),
        lambda: duckdb_anon.write_parquet(con, "broken", str(tmp_path / "b.parquet"), allow=True),
    ]
    copy = tmp_path / "clinic.duckdb"
    copy.write_bytes(database.read_bytes())
    with duckdb_anon.connect(str(copy)) as con:
        for call in calls:
            with pytest.raises(AnonError) as caught:
                call()
            assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "statement",
    [
        f"select '{SECRET}'::integer", f"select strptime('{SECRET}', '%Y')", f"""select '{{"{SECRET}'::json""",
        f"create table u (x varchar primary key); insert into u values ('{SECRET}'), ('{SECRET}')",
        f"select cast('{SECRET} [x]\n' as date)", f"select strptime('x [bad]\n\n{SECRET} [bad]', '%Y')",
        f"create table u (x enum('a', '{SECRET}''(s)'));select sum(x) from u",
    ],
)  # fmt: skip
def test_messages_of_duckdb_that_quote_values_are_left_out(statement, con):
    with pytest.raises(duckdb.Error) as caught:
        con.execute(statement).fetchall()
    error = caught.value
    assert SECRET in str(error)
    for text in (without_values(error), without_code(error), of_function("release", error), public_text(error)):
        assert SECRET not in text and text


@pytest.mark.parametrize(
    "call", ["k_anonymity('base')", "l_diversity('base', ['nothing'], 'disease')", "muco('base', 7, qi := 'age')"]
)
def test_messages_of_this_package_end_with_a_code_and_are_kept(call, con):
    con.execute("create table base as select 1 as age, 'a' as disease")
    with pytest.raises(duckdb.Error) as caught:
        con.execute(f"from {call}").fetchall()
    assert code_of(str(caught.value)) and not may_quote_values(caught.value)
