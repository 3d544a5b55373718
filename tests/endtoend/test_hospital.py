"""The hospital of examples/ is made, released by its plan and attacked; the page of the example follows from it."""

from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

from duckdb_anon.cli import main

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hospital"


def test_a_hospital_with_hashed_keys_is_found_and_its_release_keeps_the_promise(tmp_path, capsys):
    spec = spec_from_file_location("hospital", EXAMPLE / "hospital.py")
    assert spec is not None and spec.loader is not None
    hospital = module_from_spec(spec)
    spec.loader.exec_module(hospital)
    plan = (EXAMPLE / "plan.toml").read_text(encoding="utf-8")
    if not all(map(find_spec, ("altair", "vl_convert", "jinja2"))):  # without the extra report there is no page
        plan = "".join(line for line in plan.splitlines(keepends=True) if not line.startswith("evidence"))
    (tmp_path / "plan.toml").write_text(plan, encoding="utf-8")
    hospital.make(tmp_path / "hospital.duckdb", 1500)
    assert main(["run", str(tmp_path / "plan.toml")]) == 0, capsys.readouterr().err
    rows = [line.split("|")[1:-1] for line in hospital.page(tmp_path).splitlines() if "%" in line]
    found = {known.strip(): (before.strip(), float(after.strip(" %"))) for known, before, after in rows}
    promised = {known for known in found if known != "strongest" and "one value of" not in known}  # labelled quasi
    assert all(found[known][1] <= 20.01 for known in promised)
    assert found["strongest"][1] <= 25
    assert found["and one event"][0] == "100.0%"
