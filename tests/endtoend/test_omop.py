"""The OMOP example of examples/ is made, planned and released."""

import re
import tomllib
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import duckdb
import pytest

from duckdb_anon.cli import main

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "omop"
EVENTS = ("condition_occurrence", "measurement", "drug_exposure")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("omop")
    spec = spec_from_file_location("omop", EXAMPLE / "omop.py")
    assert spec is not None and spec.loader is not None
    omop = module_from_spec(spec)
    spec.loader.exec_module(omop)
    omop.make(made / "omop.duckdb", 400)
    return made


def test_plan_recognizes_the_model_and_writes_the_plan_of_the_example(folder):
    assert main(["plan", str(folder / "omop.duckdb"), "-o", str(folder / "first.toml")]) == 0
    text = (folder / "first.toml").read_text(encoding="utf-8")
    reasons = re.sub(r"(?m)^# (?=\[statements\.accept|\w+ = \"(a code|not known))", "", text)
    first, example = (tomllib.loads(plan) for plan in (reasons, (EXAMPLE / "plan.toml").read_text(encoding="utf-8")))
    for part in ("tables", "labels", "treatments"):
        assert first[part] == example[part]
    keys = {f"{table}.{column}": to for table, columns in example["database"]["keys"].items()
            for column, to in (columns.items() if isinstance(columns, dict) else ())}  # fmt: skip
    assert first["database"]["keys"] == (keys or example["database"]["keys"])
    assert first["statements"]["accept"] == example["statements"]["accept"]
    assert "# note has no labels in this model, so it is left out" in text


@pytest.mark.campaign
def test_the_example_s_plan_releases_tables_that_join_and_no_date_or_text_of_the_source(folder, capsys):
    plan = (EXAMPLE / "plan.toml").read_text(encoding="utf-8")
    if not all(map(find_spec, ("altair", "vl_convert", "jinja2"))):  # without the extra report there is no page
        plan = "".join(line for line in plan.splitlines(keepends=True) if not line.startswith("evidence"))
    (folder / "plan.toml").write_text(plan, encoding="utf-8")
    assert main(["run", str(folder / "plan.toml")]) == 0, capsys.readouterr().err
    assert "warning" not in capsys.readouterr().err
    with duckdb.connect(str(folder / "omop_release.duckdb"), read_only=True) as con:
        names = {table for (table,) in con.execute("show tables").fetchall()}
        assert names == {"person", "visit_occurrence", *EVENTS}
        columns = [c for (c,) in con.execute("select column_name from duckdb_columns() where not internal").fetchall()]
        kept = {"visit_start_date"}
        assert not [c for c in columns if re.search(r"date|source|_at$", c) and c not in kept]
        for table in EVENTS:
            joined = con.execute(f"""select count(*), (select count(*) from {table}) from {table} e
                join visit_occurrence v using (visit_occurrence_id) join person p on p.person_id = e.person_id
                and p.person_id = v.person_id""").fetchone()
            assert joined is not None and joined[0] == joined[1] > 50
        least = con.execute("""select min(n) from (select count(*) as n from person group by gender_concept_id,
            year_of_birth, race_concept_id, ethnicity_concept_id)""").fetchone()
        assert least is not None and least[0] >= 5
