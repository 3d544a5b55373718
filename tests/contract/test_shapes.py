"""A new format is one row of the table of formats; no other module knows the name of a carrier."""

import ast
from pathlib import Path

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.model.release_formats import carriers, formats
from duckdb_anon.model.release_formats.duckdb_types import is_integer
from duckdb_anon.model.release_formats.formats import Format
from duckdb_anon.model.release_formats.schema import Carrier, Claims, Weight

PACKAGE = Path(duckdb_anon.__file__).parent
PARAMETERS = {"row_id", "sensitive_edges", "suppressed"}
"""The parameter that asks for the column has its name, and a column of what `suppression` answers."""
COPIES = Carrier("copies", is_integer, "how many rows a row stands for")


def _claim(claims: Claims) -> bool:
    """A released row stands for `copies` equal rows of the original."""
    found = claims.take(COPIES)
    if found is not None:
        claims.contents.weights += (Weight(found, "rows"),)
    return found is not None


GROUPED = Format("grouped", "has a row for several equal ones", _claim, (COPIES,))


@pytest.fixture
def grouped(con, monkeypatch):
    monkeypatch.setattr(formats, "FORMATS", (GROUPED, *formats.FORMATS))
    con.execute("create table people as select (i % 3)::integer as a, i % 2 = 0 as b from range(12) t(i)")
    con.execute("comment on column people.a is 'anon: quasi'; comment on column people.b is 'anon: quasi'")
    con.execute("create table r as select a, b, count(*)::integer as copies from people group by all")
    return con


def test_a_new_shape_is_read_by_queries_and_by_measures_of_every_shape(grouped):
    query = "select a, count(*) as n, sum(a) as total from people where b group by a"
    told = grouped.execute("select original, estimate from relative_error($q, 'people', 'r')", {"q": query}).fetchall()
    assert len(told) == 6 and all(original == estimate for original, estimate in told)
    errors = grouped.execute("select relative_error from workload_error('people', 'r', 20, dims := 2, seed := 1)")
    assert [row[0] for row in errors.fetchall()] == [0.0] * 20


def test_measures_that_never_heard_of_a_shape_refuse_it(grouped):
    for call in ("k_anonymity('r', qi := ['a', 'b'])", "information_loss('people', 'r')"):
        with pytest.raises(duckdb.Error, match=r"has a row for several equal ones, which .* does not read"):
            grouped.execute(f"from {call}").fetchall()


def test_an_original_may_have_the_new_name(grouped):
    grouped.execute("create table more as select *, 7 as copies from people")
    told = grouped.execute("select estimate from relative_error('select count(*) as n from more', 'more', 'more')")
    assert told.fetchall() == [(12.0,)]


def test_no_other_module_knows_the_name_of_a_carrier():
    words = {carrier.word for carrier in carriers()}
    names = {found.name for found in formats.FORMATS}
    for module in PACKAGE.rglob("*.py"):
        if module.is_relative_to(PACKAGE / "model" / "release_formats"):
            continue
        tree = ast.parse(module.read_text())
        named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in words}
        # a format may be called like its carrier, and measures name the formats they answer
        names_formats = any(module.is_relative_to(PACKAGE / room) for room in ("measures", "methods"))
        assert named - PARAMETERS - (names if names_formats else set()) == set(), module


@pytest.mark.parametrize("name", ["bucket", "Noisy_Count", "noisy_count_"])
def test_what_may_be_a_carrier_of_an_unseen_table_is_refused_until_the_call_says_what_it_is(con, name):
    con.execute(f"""create temp table passing as select i % 3 as a, i % 2 as s, (i % 4)::double as "{name}"
        from range(12) t(i)""")
    con.execute("create table seen as select a, s from passing")
    for measure in ("k_anonymity", "l_diversity", "correlation"):
        roles = "qi := ['a'], sensitive := 's'" if measure != "k_anonymity" else "qi := ['a']"
        columns = ", columns := ['a', 's']" if measure == "correlation" else ""
        if measure != "correlation" or name != "bucket":  # no shape of rows has a bucket alone
            with pytest.raises(duckdb.Error, match=rf'{measure}: {name} of "?passing"? may be .* keep := '):
                con.execute(f"from {measure}('passing', {roles}{columns})").fetchall()
        kept = con.execute(f"from {measure}('passing', {roles}{columns}, keep := ['{name}'])").fetchall()
        assert kept == con.execute(f"from {measure}('seen', {roles}{columns})").fetchall()
    con.close()
