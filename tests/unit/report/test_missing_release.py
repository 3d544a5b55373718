"""A report of a release that does not exist ends before anything is measured."""

from pathlib import Path

import pytest

import duckdb_anon
from duckdb_anon.model.errors import AnonError
from duckdb_anon.report import anon_report
from duckdb_anon.report.findings import Plan

pytest.importorskip("altair", reason="the report extra is not installed")


def test_a_missing_release_is_named_before_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anon_report, "measure", lambda *given: pytest.fail("something was measured"))
    with duckdb_anon.connect() as con:
        con.execute("create table people as select 1 as age; create table boxes as select 1 as age")
        with pytest.raises(AnonError) as raised:
            anon_report.write_page(con, Plan('"people"', ('"boxes"', '"boxs"'), 10, 10, 1), str(tmp_path / "r.html"))
    assert raised.value.code == "bad-argument"
    assert "boxs" in str(raised.value) and "'boxes'" in str(raised.value)
