"""[cleaning] of a plan: columns are cleaned before anything else, and what is lost is said."""

from pathlib import Path

import pytest

from duckdb_anon.cli import main

PLAN = """
[tables]
people = "people.csv"
[cleaning.people]
born = {born}
[labels.people]
born = "quasi"
sex = "sensitive"
[[releases]]
name = "boxes"
original = "people"
call = "mondrian('people', k := 10)"
output = "boxes.parquet"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{'1982' if i % 10 == 0 else f'19{50 + i % 40}-01-02'},{'fm'[i % 2]}" for i in range(200)]
    (tmp_path / "people.csv").write_text("\n".join(["born,sex", *rows]) + "\n")
    return tmp_path


def run(folder: Path, expression: str) -> int:
    (folder / "plan.toml").write_text(PLAN.format(born=expression))
    return main(["run", str(folder / "plan.toml")])


def test_columns_are_cleaned_and_lost_values_are_counted(folder, con, capsys):
    assert run(folder, "'''try_strptime(born, '%Y-%m-%d')::date -- years are lost'''") == 0
    assert "the cleaning of born makes 20 values NULL" in capsys.readouterr().err
    kind = con.sql(f"select born from '{folder / 'boxes.parquet'}'").types[0]
    assert "DATE" in str(kind)


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("\"strptime(born, '%Y-%m-%d')\"", "born"),
        ('"nowhere + 1"', "nowhere"),
        ('"unnest([born, born])"', "born"),
        ('"count(*)"', "born"),
    ],
)
def test_an_expression_that_does_not_clean_each_row_writes_nothing_and_quotes_no_value(
    folder, capsys, expression, named
):
    assert run(folder, expression) == 1
    said = capsys.readouterr().err
    assert named in said and "1982" not in said
    assert not (folder / "boxes.parquet").exists()


def test_cleaning_of_a_column_that_the_table_lacks_is_refused(folder, capsys):
    (folder / "plan.toml").write_text(PLAN.format(born='"born"') + '[cleaning.people2]\nx = "x"\n')
    assert main(["run", str(folder / "plan.toml")]) == 1
    assert "people2" in capsys.readouterr().err
