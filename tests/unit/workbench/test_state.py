"""The state of the workbench: the plan beside the table, changed in place."""

from pathlib import Path

import pytest

import duckdb_anon
from duckdb_anon.cli import main
from duckdb_anon.model.errors import AnonError

pytest.importorskip("tomlkit", reason="the workbench extra is not installed")
pytest.importorskip("stdnum", reason="the profile extra is not installed")
from duckdb_anon.workbench.state import Promise, Workbench, opened


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    rows = [
        f"{'1982' if i % 10 == 0 else f'19{50 + i % 40}-01-02'},{'N/A' if i % 9 == 0 else 20000 + i},{i % 3}"
        for i in range(300)
    ]
    (tmp_path / "people.csv").write_text("\n".join(['birth_date,income,"<script>"', *rows]) + "\n")
    return opened(str(tmp_path / "people.csv"), tmp_path)


def test_a_cleaning_is_kept_in_the_plan_and_another_process_continues_with_it(bench):
    proposed = {column: rows[-1] for column, rows in bench.dirt().items()}
    assert proposed["birth_date"]["lost"] == 30 == bench.nulls_by("birth_date", proposed["birth_date"]["clean"])
    for column, row in proposed.items():
        bench.clean(column, row["clean"])
    assert bench.columns == {"birth_date": "DATE", "income": "BIGINT", "<script>": "BIGINT"}
    again = opened(str(bench.plan.with_name("people.csv")), Path())
    assert again.columns == bench.columns and again.cleaning() == bench.cleaning()
    again.clean("income", None)
    assert again.columns["income"] == "VARCHAR"


def test_an_expression_that_cannot_be_applied_leaves_the_plan_and_the_table(bench):
    before = bench.plan.read_text()
    with pytest.raises(AnonError) as refused:
        bench.clean("birth_date", "strptime(birth_date, '%Y-%m-%d')")
    assert refused.value.code == "bad-argument" and "1982" not in str(refused.value)
    assert bench.plan.read_text() == before and bench.columns["birth_date"] == "VARCHAR"


def test_changes_of_two_pages_and_comments_of_the_plan_stay(bench):
    comment = next(line for line in bench.plan.read_text().splitlines() if line.startswith("birth_date"))
    other = opened(str(bench.plan.with_name("people.csv")), Path())
    other.set_role("<script>", "insensitive")
    bench.set_role("income", "quasi")
    assert bench.roles() == {"birth_date": "quasi", "income": "quasi", "<script>": "insensitive"}
    assert comment in bench.plan.read_text()


def test_a_role_weaker_than_the_proposal_is_a_warning_until_the_reason_is_stated(bench):
    assert bench.warnings() == []
    bench.set_role("income", "insensitive")
    ((column, text),) = bench.warnings()
    assert column == "income" and "weaker" in text
    bench.accept("income", "rounded to thousands by the payroll")
    assert bench.warnings() == []


def test_unique_records_follow_the_roles(bench):
    assert bench.uniques()["sample_uniques"] == 0
    bench.set_role("income", "quasi")
    assert bench.uniques()["sample_uniques"] > 200
    for column in bench.columns:
        bench.set_role(column, "")
    assert bench.uniques() is None


def test_no_query_reads_a_file_outside_of_the_folder(bench, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.csv"
    outside.write_text("a\n1\n")
    with pytest.raises(Exception, match=r"disabled|not allowed"):
        bench.rows_of(f"from '{outside}'")
    with pytest.raises(AnonError):
        bench.clean("income", f"(select a from '{outside}')")


def test_a_large_table_is_sampled_for_choosing_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("duckdb_anon.workbench.state.MOST_ROWS", 50)
    (tmp_path / "t.csv").write_text("age,sex\n" + "".join(f"{20 + i % 50},{'fm'[i % 2]}\n" for i in range(200)))
    bench = opened(str(tmp_path / "t.csv"), tmp_path)
    assert bench.uniques()["rows"] == 50 and bench.rows == 200
    assert "sample of 50 of the 200 rows" in bench.sampled


def test_a_database_of_several_tables_names_them(tmp_path, con):
    con.execute(
        f"attach '{tmp_path / 'p.duckdb'}' as p; create table p.a as select 1 x; create table p.b as select 2 y"
    )
    con.execute("detach p")
    with pytest.raises(AnonError, match=r"tables a, b.*:TABLE"):
        opened(str(tmp_path / "p.duckdb"), tmp_path)
    bench = opened(f"{tmp_path / 'p.duckdb'}:b", tmp_path)
    assert bench.columns == {"y": "INTEGER"}


def test_a_promise_is_the_checks_of_the_plan_whatever_the_method(bench):
    assert bench.promise().per_record
    for attacker in ("prosecutor", "journalist"):
        bench.set_promise(Promise(0.09, attacker))
        assert bench.release()["checks"] == {"identity": 0.09, "advantage": 0.09, attacker: 0.09}
        assert bench.promise() == Promise(0.09, attacker)
    bench.set_promise(Promise(0.2, "marketer"))
    assert bench.release()["checks"] == {"identity": 0.2, "advantage": 0.2}
    assert bench.promise() == Promise(0.2, "marketer") and not bench.promise().per_record
    assert bench.stated()["context"].threshold == 0.2
    assert 0 < Promise(0.01).aim < 0.01


@pytest.mark.parametrize("name", ["../x.parquet", "/tmp/x.parquet", "x.csv", ".x.parquet", "a\\b.parquet"])
def test_no_release_is_written_outside_of_the_folder(bench, name):
    with pytest.raises(AnonError):
        bench.set_release(output=name)


@pytest.mark.parametrize("output", ["by_sql.parquet", "by_sql.duckdb"])
def test_the_sql_does_what_the_plan_does(bench, monkeypatch, output):
    monkeypatch.chdir(bench.plan.parent)
    for column, rows in bench.dirt().items():
        bench.clean(column, rows[-1]["clean"])
    bench.set_release(call="mondrian('people', k := 7)", output=output)
    with duckdb_anon.connect() as con:
        for statement in bench.sql().split(";\n"):
            con.execute(statement)
        made = output if output.endswith(".parquet") else "released.people_release"
        assert con.execute(f"select k from k_anonymity('{made}')").fetchone()[0] >= 7


def test_a_result_is_kept_for_another_process_and_goes_out_of_date_with_the_roles(bench):
    job = bench.jobs.start("trials", bench.made_from("trials"))
    job.process.kill()
    assert job.ended.wait(20) and job.error and bench.result("trials") == (None, False)
    bench.jobs._keep(job, {"rows": []})
    again = opened(str(bench.plan.with_name("people.csv")), Path())
    assert again.result("trials") == ({"rows": []}, True)
    again.set_role("income", "quasi")
    assert again.result("trials") == ({"rows": []}, False)


def test_a_promise_is_read_from_the_planned_call(bench):
    def sentences(call: str) -> list[str]:
        bench.set_release(call=call)
        return bench.promises()[0]

    assert sentences("mondrian('people', 7, 2.0)") == sentences("mondrian('people', l := 2, k := 7)") != []
    assert "1/7" in sentences("mondrian('people', 7)")[0]
    assert bench.arguments().params["k"] == 7
    bench.set_release(call="mondrian('people', k := 'many')")
    assert bench.promises()[0] == [] and "k := 'many'" in bench.promises()[1][0]


def test_a_proposed_hierarchy_is_named_by_the_plan_and_generalizes_the_release(bench):
    bench.clean("birth_date", bench.dirt()["birth_date"][-1]["clean"])
    bench.use_tree("birth_date", True)
    bench.set_role("birth_date", "insensitive")
    assert bench.stated()["labels"]["people"]["birth_date"] == "insensitive"
    bench.set_role("birth_date", "quasi")
    assert bench.roles()["birth_date"] == "quasi" and bench.uses_tree("birth_date")
    bench.set_release(call="mondrian('people', k := 20)", checks={"k": 20})
    assert main(["run", str(bench.plan)]) == 0
    file = bench.plan.with_name(bench.release()["output"])
    nodes = {row["birth_date"] for row in bench.rows_of(f"from '{file}'")}
    leaves = {str(row["level0"]) for row in bench.rows_of("from people_birth_date")}
    assert nodes and not nodes & leaves
    assert nodes <= {str(v) for row in bench.rows_of("from people_birth_date") for v in row.values()} | {"(null)"}
    again = opened(str(bench.plan.with_name("people.csv")), Path())
    again.use_tree("birth_date", False)
    assert again.stated()["labels"]["people"]["birth_date"] == "quasi" and not again.uses_tree("birth_date")
