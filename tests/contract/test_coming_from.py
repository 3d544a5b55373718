"""What the page coming_from_other_tools.md promises: every function it names exists, and its SQL runs."""

import re
from pathlib import Path

import pytest

from duckdb_anon.cli import tree
from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.registry import ENTRIES
from duckdb_anon.treatments import treatments

PAGE = Path(__file__).resolve().parents[2] / "duckdb_anon" / "docs" / "coming_from_other_tools.md"
BY_NAME = {entry.name: entry for entry in ENTRIES}


def promised() -> list[str]:
    """Every piece of code in the columns that say what stands here."""
    rows = [line.split(" | ", 1)[1] for line in PAGE.read_text(encoding="utf-8").splitlines() if " | " in line]
    return list(dict.fromkeys(code for row in rows for code in re.findall(r"`([^`]+)`", row)))


@pytest.fixture
def con(con, tmp_path, monkeypatch):
    """The page's t and r, a DataFrame called data, and a hierarchy in a file."""
    monkeypatch.chdir(tmp_path)
    Path("zip.csv").write_text("".join(f"{zip},{zip // 10},*\n" for zip in range(100)))
    con.execute("""create table t as select range // 2 as pid, 20 + hash(range) % 40 as age, (hash(range) // 100) % 2 as sex,
        'd' || hash(range, 1) % 6 as disease, hash(range, 3) % 100 as c, 1 + range % 5 as w from range(400)""")
    for column, role in (("age", "quasi"), ("sex", "quasi"), ("disease", "sensitive")):
        con.execute(f"comment on column t.{column} is 'anon: {role}'")
    con.execute("create table r as from mondrian('t', 5, row_id := true)")
    con.execute("create table population as select age, sex from t, range(10)")
    for column in ("age", "sex"):
        con.execute(f"comment on column population.{column} is 'anon: quasi'")
    con.register("data", con.execute("select age, sex, disease from t").df())
    return con


def runnable(code: str) -> str | None:
    """The statement that tries a piece of code, None for what is no statement by itself."""
    name = code.split("(")[0]
    if code.startswith(("COMMENT", "CREATE", "COPY")):
        return code.replace("CREATE TABLE", "CREATE OR REPLACE TABLE")
    if name not in BY_NAME or "(" not in code or "..." in code:
        return None
    arguments = code[len(name) :].replace("(data,", "('data',")
    arguments = re.sub(r"\bqi\b(?! :=)", "['age', 'sex']", arguments)
    if name == "fragment_risk":
        arguments = arguments.replace("'t', 'r'", "'visits', 'persons'")
    return f"FROM {name}{arguments}"


@pytest.mark.parametrize("code", [code for code in promised() if runnable(code)])
def test_statement_runs(con, code):
    statement = runnable(code)
    if "classification_accuracy" in statement:
        pytest.importorskip("sklearn", reason="the ml extra is not installed")
    if "delta_presence" in statement:  # it reads classes that do not overlap
        con.execute("create or replace table r as from incognito('t', 5)")
    if "'visits'" in statement:
        con.execute("create table visits as select pid, min(age) over (partition by pid) as age, disease from t")
        con.execute("create table diseases as select distinct disease as leaf, 'any' as root from t")
        roles = "person := 'pid', qi := ['age'], sensitive := 'disease', hierarchies := {'disease': 'diseases'}"
        con.execute(f"create table persons as from one_to_m_generalize('visits', 2, 1, {roles}, row_id := true)")
        statement = statement.removesuffix(")") + f", {roles})"
    con.execute(statement).fetchall()


@pytest.mark.parametrize("code", [code for code in promised() if not runnable(code)])
def test_what_is_no_statement_is_known_all_the_same(code):
    name = code.split("(")[0]
    words = code.split()
    columns = {"household_risk", "household_expected"}
    options = {choice for entry in ENTRIES for p in parameters_of(entry) for choice in (*p.choices, p.name)}
    measures = {"frequency"}
    assert (
        name in BY_NAME
        or name in treatments()
        or (words[0] == "duckdb-anon" and words[1] in tree()[0])
        or code.strip("'") in options | measures | columns
        or re.fullmatch(r"'?anon: (quasi( hierarchy=h)?|sensitive|insensitive|person|household)'?", code)
        or code.split(" := ")[0] in options
        or code in ("SELECT", "qi")
    )
