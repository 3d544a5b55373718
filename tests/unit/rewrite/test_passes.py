"""Each pass over a query, alone: SQL before and after it, or what it says of a query that it refuses.

A case of `passes/NAME.sql` is two statements, or one and `-- refused: words of the message`. A file that begins with
`-- after: PASS` runs that pass first, for what it writes beside the tree. `people` is the original; tables that have
their names for binding are `$0` (people) and `$1` (regions).
"""

import re
from pathlib import Path

import pytest
import sqlglot

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.query.parse import parse
from duckdb_anon.rewrite.query.passes import OF_NAMES, OF_TEXT, PASSES, run
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.trees import SOURCE

FOLDER = Path(__file__).parent / "passes"
TABLES = (
    TableInfo(
        "people",
        (("age", "INTEGER"), ("sex", "VARCHAR"), ("Region", "VARCHAR"), ("cost", "DOUBLE"), ("born", "DATE")),
        collated=frozenset({"region"}),
    ),
    TableInfo("regions", (("name", "VARCHAR"), ("climate", "VARCHAR"))),
)
BY_NAME = {one.__name__: one for one in PASSES}


def _cases(name: str) -> list[tuple[str, str, str, str]]:
    text = (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    first = re.match(r"-- after: (\w+)\n", text)
    cases = text[first.end() if first else 0 :].strip().split("\n\n")
    return [(name, first[1] if first else "", *case.split("\n", 1)) for case in cases]


CASES = [case for path in sorted(FOLDER.glob("*.sql")) for case in _cases(path.stem)]


@pytest.mark.parametrize(("name", "earlier", "before", "after"), CASES)
def test_a_pass_writes_or_refuses_what_its_file_says(name, earlier, before, after):
    steps = (*OF_TEXT, *OF_NAMES) if name == "all" else tuple(BY_NAME[one] for one in (earlier, name) if one)
    tree = sqlglot.parse_one(before.rstrip(";").replace("$", SOURCE), dialect="duckdb")
    if after.startswith("-- refused: "):
        with pytest.raises(RewriteError, match=re.escape(after.removeprefix("-- refused: "))):
            run(tree, steps, TABLES)
        return
    assert run(tree, steps, TABLES).sql("duckdb").replace(SOURCE, "$") + ";" == after


def test_every_pass_has_a_file():
    assert {path.stem for path in FOLDER.glob("*.sql")} == {*BY_NAME, "all"}


def test_what_is_parsed_is_kept_and_never_changed():
    text = "SELECT mean(age) FROM people"
    before = parse(text).sql()
    run(parse(text).copy(), OF_NAMES, TABLES)
    assert parse(text) is parse(text) and parse(text).sql() == before
