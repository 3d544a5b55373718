"""Values and names of columns may hold any character: queries on a release count them as queries on the original do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckdb_anon
from duckdb_anon.engine.sql_quoting import ident, literal

ODD = [
    *map(chr, range(1, 32)),
    "\x7f",
    "\x85",
    "\u2028",
    "\u2029",
    "\ufeff",
    "'",
    '"',
    "\\",
    "$$",
    "--",
    "/*",
    ";",
    "{x}",
    "%",
]
TEXT = st.lists(st.sampled_from([*ODD, "a", "b"]), min_size=1, max_size=4).map("".join)


@given(name=TEXT, values=st.lists(TEXT, min_size=2, max_size=4, unique=True))
@pytest.mark.campaign
@pytest.mark.weekly
def test_any_text_is_found_again(name, values):
    check(name, values)


def test_line_breaks_and_quotes_are_found_again():
    check("ci\n\tty", ["a\nb", "ab", "a\r\n\x00b".replace("\x00", "\x01"), "'\"\\"])


def check(name: str, values: list[str]) -> None:
    column = f"c{name}"
    with duckdb_anon.connect() as con:
        con.execute(f"create table t as select {literal(values)}[1 + range % {len(values)}] as {ident(column)}, "
                    "range % 7 as age, range % 5 as illness from range(120)")  # fmt: skip
        for label, role in ((column, "quasi"), ("age", "quasi"), ("illness", "sensitive")):
            con.execute(f"comment on column t.{ident(label)} is 'anon: {role}'")
        for call in ("anatomy('t', 2)", "mondrian('t', 10)", "muco('t', 0.2)"):
            con.execute(f"create or replace table r as from {call}")
            total = 0.0
            for value in values:
                query = f"select count(*) from t where {ident(column)} = {literal(value)}"
                found = con.execute(
                    f"select original, estimate from relative_error({literal(query)}, 't', 'r')"
                ).fetchall()
                assert found[0][1] > 0 and ("anatomy" not in call or found[0][0] == found[0][1])
                total += found[0][1]
            assert total == pytest.approx(120)
        errors = con.execute(
            "select count(*), count(estimate) from workload_error('t', 'r', n := 10, seed := 1)"
        ).fetchone()
        assert errors == (10, 10)
