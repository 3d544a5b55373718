"""The report: one page that stands alone, drawn by a real browser without a network."""

import re
import subprocess
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.cli import main
from tests.reference.browser import BROWSER

pytestmark = pytest.mark.campaign

pytest.importorskip("altair", reason="the report extra is not installed")
pytest.importorskip("vl_convert", reason="the report extra is not installed")

TABLES = """
create table census as from anon_sample('census', 1500, seed := 7);
comment on column census.age is 'anon: quasi';
comment on column census.gender is 'anon: quasi';
comment on column census.education is 'anon: quasi';
comment on column census.salary is 'anon: sensitive';
create table covered as from muco('census', 0.2, row_id := true);
create table "the boxes" as from mondrian('census', 10, row_id := true);
create table plain as from muco('census', 0.2);
comment on table plain is 'anon: release </script><b>';
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report over three releases."""
    folder = tmp_path_factory.mktemp("report")
    con = duckdb_anon.connect(str(folder / "c.duckdb"))
    con.execute(TABLES)
    con.close()
    releases = ["--release", "covered", "--release", '"the boxes"', "--release", "plain"]
    small = ["--targets", "200", "--queries", "40"]
    target = folder / "report.html"
    assert main(["report", str(folder / "c.duckdb"), "--original", "census", *releases, *small, "-o", str(target)]) == 0
    return target


def body(page: Path) -> str:
    """The page without its scripts."""
    return re.sub(r"<script>.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_page_loads_nothing_from_elsewhere(page):
    assert not re.search(r"(src|href)\s*=|@import|url\(", body(page))


def test_every_release_has_its_row_and_its_section(page):
    text = body(page)
    for name in ("covered", "the boxes", "plain"):
        assert text.count(name) >= 2
    assert "3 rows" not in text and "1,500 rows" in text


def test_what_could_not_be_measured_has_a_reason(page):
    section = body(page).split("<h2>plain</h2>")[1]
    assert "Not measured" in section and "row_id" in section
    covered = body(page).split("<h2>covered</h2>")[1].split("<h2>")[0].partition("<h3>Not measured</h3>")[2]
    assert re.findall(r'data-label="what">([^<]*)<', covered) == ["within the limit"]  # nobody said its call


def test_a_release_without_its_call_has_no_identity_but_what_is_inferred(page):
    text = body(page)
    unchanged, _, after = text.partition("<h2>Conclusion</h2>")
    exchanged = next(
        row for row in re.findall(r"<tr>.*?</tr>", unchanged) if re.search(r">plain</td>.*>gender</td>", row)
    )
    assert "not measured" in exchanged  # its values are those of the original, in other records
    plain = next(row for row in re.findall(r"<tr>.*?</tr>", after) if re.search(r">plain</td>", row))
    assert re.search('<td data-label="identity"[^>]*>\N{EN DASH}</td>', plain)
    with duckdb_anon.connect(str(page.parent / "c.duckdb")) as con:
        question = "select attribute from linkage_risk('census', 'plain', targets := 200, seed := 1)"
        ((attribute,),) = con.execute(f"{question} where attacker = 'strongest'").fetchall()
    shown = re.search('<td data-label="attribute"[^>]*>([^<]*)</td>', plain)
    assert shown is not None and float(shown[1]) == pytest.approx(attribute, rel=1e-2)
    conclusion = " ".join(text.partition("<h2>Conclusion</h2>")[2].partition("</ul>")[0].split())
    assert "plain: how often a record is re-identified was not measured" in conclusion
    assert f"at least {float(f'{100 * attribute:.3g}'):g}%" in conclusion


def test_release_with_row_id_carries_a_warning(page):
    assert "not for publication" in body(page).split("<h2>covered</h2>")[1].split("<h2>")[0]


DRAW = (files("duckdb_anon.report.html") / "templates" / "draw.js").read_text(encoding="utf-8").rstrip()
HOSTILE = "<!--<script>alert(1)"


def test_page_of_hostile_values_is_what_it_would_be_of_harmless_ones(tmp_path):
    html5lib = pytest.importorskip("html5lib", reason="reads a page as browsers do")
    found = []
    for value in (HOSTILE, "harmless"):
        con = duckdb_anon.connect(str(tmp_path / f"{len(found)}.duckdb"))
        name = '"' + value + '"'
        con.execute(f"create table {name} as select '{value}' || i % 3 as {name}, i % 5 as s from range(60) t(i)")
        con.execute(f"""comment on column {name}.{name} is 'anon: quasi'; comment on column {name}.s is
            'anon: sensitive'""")
        con.execute(f"""create table "made {value}" as from mondrian('{name}', 5, row_id := true)""")
        con.execute(f"""comment on table "made {value}" is 'anon: release {value}'""")
        target = tmp_path / f"{len(found)}.html"
        call = f"""anon_report('{name}', ['"made {value}"'], '{target}', targets := 20, queries := 10)"""
        con.execute(f"from {call}").fetchall()
        con.close()
        tree = html5lib.parse(target.read_text(encoding="utf-8"), namespaceHTMLElements=False)
        *_, charts = scripts = tree.findall(".//script")
        text = charts.text or ""
        assert text.startswith("const CHARTS = {") and text.rstrip().endswith(DRAW)
        assert value in "".join(tree.find("body").itertext())
        assert not tree.findall(".//alert") and [child.tag for child in tree] == ["head", "body"]
        found.append((len(scripts), [element.tag for element in tree.iter() if isinstance(element.tag, str)]))
    assert found[0] == found[1]
    assert found[0][0] == 2


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_browser_without_a_network_draws_every_chart(page):
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=10000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    places = set(re.findall(r'<div id="(chart\d+)"', page.read_text(encoding="utf-8")))
    assert len(places) >= 5 + 3 * 4
    assert len(re.findall(r"<(?:svg|canvas)[^>]*\bclass=\"marks\"", done.stdout)) == len(places)
    assert "Error" not in re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL)


def test_command_and_sql_function_write_the_same_page(page, tmp_path, capsys):
    by_command, target = tmp_path / "command.html", tmp_path / "from_sql.html"
    given = [
        "report", str(page.parent / "c.duckdb"), "--original", "census", "--release", "plain", "-o", str(by_command),
    ]  # fmt: skip
    assert main([*given, "--targets", "20", "--queries", "5"]) == 0
    output = capsys.readouterr()
    assert re.fullmatch(rf"{re.escape(str(by_command))}: \d+ KB\n", output.out)
    assert output.err == "plain: measuring\n"
    with duckdb_anon.connect(str(page.parent / "c.duckdb"), read_only=True) as con:
        call = f"from anon_report('census', ['plain'], '{target}', targets := 20, queries := 5)"
        con.execute(f"explain {call}").fetchall()
        assert not target.exists()
        assert con.execute(call).fetchall() == [(str(target),)]
        with pytest.raises(duckdb.Error, match="nowhere"):
            con.execute(f"from anon_report('census', ['nowhere'], '{target}')").fetchall()
        with pytest.raises(duckdb.Error, match="No such file"):
            con.execute("from anon_report('census', ['plain'], '/no/such/folder/r.html', queries := 5)").fetchall()
    assert body(target) == body(by_command)


def test_an_original_without_labels_and_a_missing_release_are_errors_and_nothing_is_written(page, tmp_path, capsys):
    database, target = str(page.parent / "c.duckdb"), tmp_path / "r.html"
    for original, release, message in (("census", "nowhere", "nowhere"), ("plain", "covered", "anon: quasi")):
        assert main(["report", database, "--original", original, "--release", release, "-o", str(target)]) == 1
        assert message in capsys.readouterr().err
        assert not target.exists()
