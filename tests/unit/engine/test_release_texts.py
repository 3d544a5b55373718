"""Texts of a release that are neither values of the original nor nodes of a hierarchy are refused."""

from dataclasses import replace

import duckdb
import pytest

from duckdb_anon import load
from duckdb_anon.engine.catalog.catalog import Catalog, Relation
from duckdb_anon.engine.records.release_texts import ReleasePair
from duckdb_anon.model.errors import ColumnError


@pytest.fixture
def tables():
    with duckdb.connect() as con:
        con.execute("""create table people as select *
            from (values ('F', 'n1', 'flu'), ('M', 's1', null), (null, 's1', 'flu')) as t(a, b, c)""")
        con.execute("""create table release as select *
            from (values (['F', 'M'], 'n1', 'flu'), (null, 's1', 'flu')) as t(a, b, c)""")
        con.execute("create table tree as select * from (values ('n1', 'n'), ('s1', 's')) as t(leaf, node)")
        yield con


def pair(tables: duckdb.DuckDBPyConnection, **trees: str) -> ReleasePair:
    catalog = Catalog(tables, "memory", "main")
    original, release, *found = (catalog.relation("f", "t", name) for name in ("people", "release", *trees.values()))
    return ReleasePair("f", catalog, original, release, dict(zip(trees, found, strict=True)))


def check(tables: duckdb.DuckDBPyConnection, **trees: str) -> None:
    pair(tables, **trees).require_clear_texts()


@pytest.mark.parametrize(
    ("column", "value", "message"), [("a", "['F', 'X', 'Y']", "2 distinct"), ("b", "'n'", "1 "), ("c", "'x'", "1 ")]
)
def test_the_column_with_texts_that_nothing_knows_is_named(tables, column, value, message):
    tables.execute(f"update release set {column} = {value} where b = 's1'")
    with pytest.raises(ColumnError, match=f"{message}.*'{column}' in release are not in people"):
        check(tables)


INSIDE = [
    ("'flu'", "map {'flu': 2::bigint} as s", "map {'flu': 1::bigint, 'b': 1} as s"),  # counts of values
    ("'flu'::enum('flu')", "map {'flu': 2::bigint} as s", "map {'b': 2::bigint} as s"),
    ("['flu', 'cold', null]", "['cold'] as s", "['flu', 'b'] as s"),  # a person's list of values
    ("['flu', 'cold']", "{'s': ['cold']} as slice, 1 as bucket", "{'s': ['flu', 'b']} as slice, 1 as bucket"),
    ("'flu'", "{'s': ['flu']} as slice, 1 as bucket", "{'s': ['b']} as slice, 1 as bucket"),
    (
        "'flu'",
        "{'s': map {'flu': 1::bigint}} as slice, 1 as bucket",
        "{'s': map {'b': 1::bigint}} as slice, 1 as bucket",
    ),
]


@pytest.mark.parametrize(("original", "known", "unknown"), INSIDE)
@pytest.mark.parametrize("trees", [{}, {"s": "kinds"}])
def test_members_of_lists_and_keys_of_counts_are_texts_too(tables, original, known, unknown, trees):
    tables.execute("create table kinds as select * from (values ('flu', 'b'), ('cold', 'b')) as t(leaf, node)")
    tables.execute(f"create or replace table people as select {original} as s")
    tables.execute(f"create or replace table release as select {known}")
    check(tables, **trees)
    tables.execute(f"create or replace table release as select {unknown}")
    if trees and "map" not in unknown:  # it is a node; counts are of values
        check(tables, **trees)
        assert pair(tables, **trees).attributes_with_nodes() == {"s"}
        return
    with pytest.raises(ColumnError, match=r"1 distinct text\(s\) of 's' in release are not in people"):
        check(tables, **trees)


@pytest.mark.parametrize("kept", ["{'s': ['z']}", "{'s': map {'z': 1::bigint}}", "{'s': 'z'}"])
def test_fields_of_a_column_that_the_original_has_are_no_attributes(tables, kept):
    tables.execute(f"create or replace table people as select 'a' as s, {kept} as history")
    tables.execute("create or replace table release as from people")
    tables.execute("create table kinds as select 'a' as leaf, 'z' as node")
    check(tables)
    check(tables, s="kinds")
    assert not pair(tables, s="kinds").attributes_with_nodes()


@pytest.mark.parametrize("channels", ["rr", "RR_"])
def test_texts_beside_channels_are_told_by_them(tables, channels):
    tables.execute("create or replace table people as select 'a' as s, 1 as rr")
    names = "" if channels == "rr" else ", 1 as rr"
    tables.execute(f"""create or replace table release
        as select 'z' as s, {{'s': {{'p': .5::double, 'domain': ['a', 'z']}}}} as {channels}{names}""")
    if channels == "rr":  # the original's own name
        with pytest.raises(ColumnError, match="1 distinct"):
            check(tables)
    else:
        check(tables)


def test_a_node_is_known_to_its_tree_alone(tables):
    tables.execute("update release set b = 'n' where b = 's1'")
    check(tables, b="tree")
    assert pair(tables, b="tree").attributes_with_nodes() == {"b"}
    tables.execute("update release set b = '(null)' where b = 'n'")
    check(tables, b="tree")
    assert not pair(tables, b="tree").attributes_with_nodes()


def test_a_table_whose_rows_cannot_be_read_hides_nothing_of_the_others(tables):
    tables.execute("update release set b = 'x' where b = 's1'")
    found = pair(tables)
    gone = {"a": Relation("gone", "gone", {"leaf": "VARCHAR"}, {})}
    with pytest.raises(ColumnError, match=r"1 distinct.*'b'"):
        replace(found, trees=gone).require_clear_texts()


@pytest.mark.parametrize("home", ["main", '"My ""own"" place"'])
def test_texts_are_looked_for_in_the_tables_of_the_callers_own_schema(home):
    """Both schemas have tables of these names, and the planner's cursor begins in `main`."""
    away, people = "main" if home != "main" else "away", '"Odd ""people"'
    query = f"select count(*) from {people} where region = 'x'"
    with duckdb.connect() as con:
        load(con)
        for schema, regions in ((home, "['x', 'q']"), (away, "['x']")):
            con.execute(f"create schema if not exists {schema}; use {schema}")
            con.execute(f"create table {people} as select * from (values ('x'), ('y')) as t(region)")
            con.execute(f"create table release as select {regions} as region")
        assert con.execute("select rewrite_query($1, $2, 'release')", [query, people]).fetchone()
        con.execute(f"use {home}")
        with pytest.raises(duckdb.Error, match=r"1 distinct text\(s\) of 'region' in release"):
            con.execute("select rewrite_query($1, $2, 'release')", [query, people])


def test_the_label_of_null_is_a_text_like_others_where_no_tree_says_so(con):
    con.execute("""create table people as select i % 9 as age, ['flu', 'cold', 'gout'][1 + i % 3] as ill
        from range(90) r(i)""")
    roles = "qi := 'age', sensitive := 'ill'"
    call = f"select rewrite_query('select count(*) from people where ill = ''flu''', 'people', 'r', {roles})"
    for made in ("anatomy('people', 2, {})", "slicing('people', 2, columns := [['age'], ['ill']], {})"):
        con.execute(f"create or replace table r as from {made.format(roles)}")
        con.execute(call).fetchall()
        kind = con.execute("select typeof(ill) from r limit 1").fetchall()[0][0]
        label = "map(['(null)'], [2::bigint])" if kind.startswith("MAP") else "{'ill': '(null)'}"
        con.execute(f"update r set ill = {label} where bucket = (select min(bucket) from r)")
        with pytest.raises(duckdb.Error, match="1 distinct text"):
            con.execute(call)


def test_rows_that_are_made_up_may_show_null(con):
    con.execute("""create table people as select i % 9 as age, ['flu', 'cold', 'gout'][1 + i % 3] as ill, 'g' || i % 2 as kept
        from range(90) r(i)""")
    roles = "qi := 'age', sensitive := 'ill', keep := 'kept'"
    con.execute(f"create table r as from merging('people', 2, fake := 2, {roles})")
    con.execute("update r set kept = null where rowid < 3")  # as of rows that merging makes up
    query = "select count(*) from people where kept = ''g1''"
    assert con.execute(f"select rewrite_query('{query}', 'people', 'r', {roles})").fetchall()
