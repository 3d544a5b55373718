"""A label weaker than the proposed one: the report does not say that the risk is within the limit."""

import pytest

from duckdb_anon.release_api import release
from duckdb_anon.report.findings import Plan
from duckdb_anon.report.measure import measure
from duckdb_anon.report.release_context import HoldersContext

pytest.importorskip("stdnum", reason="the profile extra is not installed")


@pytest.mark.parametrize(("label", "reason", "verdict"), [
    ("insensitive", "", None), ("insensitive", "rounded by the payroll", True), ("sensitive", "", True),
])  # fmt: skip
def test_the_verdict_is_open_where_a_label_is_weaker_unless_a_reason_is_stated(con, label, reason, verdict):
    con.execute("create table people as select i % 40 as age, 20000 + i * 7 as income from range(300) t(i)")
    con.execute(
        f"""comment on column people.age is 'anon: quasi'; comment on column people.income is 'anon: {label}'"""
    )
    release(con, "boxes", "mondrian('people', k := 30)")
    context = HoldersContext({"threshold": 0.5}, accept={"people": {"income": reason}} if reason else {})
    found = measure(con, Plan("people", ("boxes",), 50, 10), context, lambda text: None)
    (row,) = found.releases[0].facts["risk"]
    assert row["meets_threshold"] is verdict
    assert ("income" in found.releases[0].missing.get("within the limit", "")) == (verdict is None)
    assert ("within the limit" in found.figures["risk"].text) == (verdict is True)
