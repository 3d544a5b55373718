"""anon_hierarchy: tables that methods take, whatever is in the column."""

from typing import Any

import duckdb
import pytest

SOURCES = {
    "dates": ("select date '1999-12-28' + (i * 41)::integer as v from range(200) t(i)", ""),
    "timestamps": ("select timestamp '2019-12-31 23:00:00' + interval (i) hour as v from range(50) t(i)", "levels := ['day', 'year']"),
    "dates in texts": ("select (date '2020-01-01' + i::integer)::varchar as v from range(70) t(i)", "kind := 'date'"),
    "integers": ("select (i * i) % 997 - 300 as v from range(300) t(i)", "bins := 7"),
    "decimals": ("select (i / 7)::decimal(9, 3) as v from range(80) t(i)", "bins := 5"),
    "doubles": ("select 1e-7 * i as v from range(80) t(i)", ""),
    "one number": ("select 5 as v", ""),
    "quantiles": ("select i * i as v from range(100) t(i)", "kind := 'quantile', bins := 6"),
    "breaks": ("select i as v from range(100) t(i)", "breaks := [18, 40, 65]"),
    "coded ends": ("select i as v from range(100) t(i)", "bottom := 16, top := 90"),
    "codes": ("select printf('%05d', i * 7919 % 99999) as v from range(200) t(i)", "kind := 'code'"),
    "codes of all lengths": ("select (i * 37)::varchar as v from range(300) t(i)", "kind := 'code', levels := [3, 1]"),
    "rare texts": ("select 'g' || floor(sqrt(i)) as v from range(200) t(i)", "rare := 9"),
    "a mapping": ("select unnest(['a', 'b', 'c']) as v", "mapping := {'a': 'vowel', 'b': 'consonant'}"),
    "with NULL": ("select nullif(i, 3) as v from range(40) t(i)", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_a_hierarchy_is_taken_by_a_method_and_its_levels_only_join_what_is_below_them(con, name):
    source, options = SOURCES[name]
    con.execute(f"create table t as {source}")
    con.execute(f"create table tree as from anon_hierarchy('t', 'v'{', ' if options else ''}{options})")
    rows = con.execute("from tree").fetchall()
    assert len({row[0] for row in rows}) == len(rows) == con.execute("select count(distinct v) from t").fetchall()[0][0]
    assert {row[-1] for row in rows} == {"*"}
    for level in range(1, len(rows[0]) - 1):
        assert len({row[level : level + 2] for row in rows}) == len({row[level] for row in rows})
    released = con.execute(
        "from mondrian('t', k := 1, qi := ['v'], hierarchies := {'v': 'tree'}, seed := 1)"
    ).fetchall()
    assert len(released) == con.execute("select count(*) from t").fetchall()[0][0]


def levels_of(con: duckdb.DuckDBPyConnection, value: str, options: str) -> tuple[Any, ...]:
    call = f"anon_hierarchy('(select i as v from range(100) t(i))', 'v', {options})"
    return con.execute(f"from {call} where level0 = {value}").fetchall()[0]


def test_intervals_hold_their_values_and_ends_are_open(con):
    assert levels_of(con, "17", "breaks := [18, 40, 65]") == (17, "< 18", "< 40", "*")
    assert levels_of(con, "18", "breaks := [18, 40, 65]") == (18, "[18, 40)", "< 40", "*")
    assert levels_of(con, "99", "breaks := [18, 40, 65]") == (99, ">= 65", ">= 40", "*")
    assert levels_of(con, "3", "bottom := 16, top := 90")[1] == "< 16"
    assert levels_of(con, "95", "bottom := 16, top := 90")[1] == ">= 90"
    labels = str(
        con.execute(
            "from anon_hierarchy('(select 13 + i as v from range(75) t(i))', 'v') select * exclude level0"
        ).fetchall()
    )
    assert "13" not in labels
    assert "87" not in labels


def test_dates_climb_to_decades(con):
    call = "anon_hierarchy('(select date ''1987-05-17'' as v)', 'v')"
    assert con.execute(f"select * exclude level0 from {call}").fetchall() == [
        ("1987-05", "1987-Q2", "1987", "1985..1989", "1980..1989", "*")
    ]


def test_dates_without_a_month_and_before_christ_have_their_decade(con):
    source = "(select unnest([''infinity'', ''0044-03-15 (BC)'', ''0003-01-01'', null])::date as v)"
    call = f"anon_hierarchy('{source}', 'v', levels := ['YEAR', 'five years', 'decades'])"
    assert con.execute(f"select * exclude level0 from {call} order by level0").fetchall() == [
        ("-43", "-45..-41", "-50..-41", "*"), ("3", "0..4", "0..9", "*"), ("infinity", "infinity", "infinity", "*"),
    ]  # fmt: skip


def test_an_option_says_what_the_values_are(con):
    con.execute("create table t as select unnest([1067, 10115, 80331, null]) as plz, unnest(['2020-01-31', null]) as d")
    codes = con.execute("select * exclude level0 from anon_hierarchy('t', 'plz', levels := [2])").fetchall()
    assert codes == [("01***", "*"), ("10***", "*"), ("80***", "*")]
    assert con.execute("from anon_hierarchy('t', 'd', levels := 'year')").fetchall() == [("2020-01-31", "2020", "*")]
    groups = con.execute("from anon_hierarchy('t', 'plz', mapping := map {1067: 'Dresden', 10115: 'Berlin'})")
    assert [row[1] for row in groups.fetchall()] == ["Dresden", "Berlin", "(other)"]


ENDS: tuple[tuple[str, str, list[tuple[str, ...]]], ...] = (
    ("select i * 0.1::double as v from range(10) t(i)", "bins := 7",
     [("< 0.2", "< 0.4", "< 0.8"), ("[0.2, 0.4)", "< 0.4", "< 0.8"), ("[0.4, 0.6)", "[0.4, 0.8)", "< 0.8"),
      ("[0.6, 0.8)", "[0.4, 0.8)", "< 0.8"), (">= 0.8", ">= 0.8", ">= 0.8")]),
    ("select i * 100000000000000000000000::hugeint as v from range(3) t(i)", "bins := 2",
     [("< 1e+23",), (">= 1e+23",)]),
    ("select if(i < 70, 0, i) as v from range(100) t(i)", "kind := 'quantile', bins := 4", [("< 74",), (">= 74",)]),
    ("select unnest([null, ''inf'', ''nan''])::double as v", "bins := 8", [()]),
    ("select 1 as v limit 0", "bins := 8", []),
    ("select 1 as v limit 0", "kind := 'quantile'", []),
)  # fmt: skip


def test_ends_are_round_and_no_level_repeats_another(con):
    for source, options, labels in ENDS:
        found = con.execute(f"select distinct * exclude level0 from anon_hierarchy('({source})', 'v', {options})")
        assert sorted(found.fetchall()) == sorted((*row, "*") for row in labels), source


def test_a_temporary_table_needs_only_the_kind(con):
    con.execute("create temp table mine as select i as v from range(40) t(i)")
    with pytest.raises(duckdb.Error, match=r"or say which kind := .* its values are: date, code, number"):
        con.execute("from anon_hierarchy('mine', 'v')").fetchall()
    assert con.execute("from anon_hierarchy('mine', 'v', kind := 'number', breaks := [20])").fetchall()[:1] == [
        (0, "< 20", "*")
    ]


def test_a_short_code_has_a_separate_node(con):
    call = "anon_hierarchy('(select unnest([''12'', ''123'', ''13'']) as v)', 'v', kind := 'code', levels := [2, 1])"
    assert con.execute(f"from {call}").fetchall() == [
        ("12", "12*", "1**", "*"), ("123", "12*", "1**", "*"), ("13", "13*", "1**", "*"),
    ]  # fmt: skip


def test_a_file_of_arx_is_read_as_it_is(con, tmp_path):
    path = tmp_path / "sex.csv"
    path.write_text("male;*\nfemale;*\n", encoding="utf-8")
    assert con.execute(f"from anon_hierarchy('{path}', kind := 'arx')").fetchall() == [("male", "*"), ("female", "*")]
    con.execute(f"create table tree as from anon_hierarchy('{path}', kind := 'arx')")
    con.execute("create table t as select unnest(['male', 'female', 'male']) as sex")
    assert len(con.execute("from mondrian('t', k := 3, qi := ['sex'], hierarchies := {'sex': 'tree'})").fetchall()) == 3


ARX: tuple[tuple[str, list[tuple[str, ...]]], ...] = (
    ('"a;b";"x";*\n"c ""q""";y;*\n', [("a;b", "x", "*"), ('c "q"', "y", "*")]),
    ("a;x;*\r\nb;;*\r\n", [("a", "x", "*"), ("b", "", "*")]),
    ("\ufeffZürich,CH,*\nO'Brien,IE,*\n", [("Zürich", "CH", "*"), ("O'Brien", "IE", "*")]),
    (" 1 ;low\n02;low\n", [(" 1 ", "low"), ("02", "low")]),
)


def test_quotes_and_cells_of_arx_stay_as_they_are(con, tmp_path):
    path = tmp_path / "tree.CSV"
    for text, rows in ARX:
        path.write_bytes(text.encode())
        found = con.execute(f"from anon_hierarchy('{path}', kind := 'arx')")
        assert [column[0] for column in found.description] == [f"level{k}" for k in range(len(rows[0]))]
        assert found.fetchall() == rows


def test_what_arx_does_not_write_is_refused(con, tmp_path):
    for number, (text, message) in enumerate((
        (b"a;x;*\nb;*\n", "lines of as many cells each"),
        ("Zürich;CH\n".encode("latin-1"), "UTF-8 text"),
        (b"a\nb\n", "one cell a line"),
        (b"", "one cell a line"),
        (None, "No files found"),
    )):  # fmt: skip
        path = tmp_path / f"tree{number}.csv"
        if text is not None:
            path.write_bytes(text)
        with pytest.raises(duckdb.Error, match=message):
            con.execute(f"from anon_hierarchy('{path}', kind := 'arx')").fetchall()


REFUSED = (
    ("'v', levels := ['yaer'], kind := 'date'", "levels has 'yaer'.*did you mean 'year'"),
    ("'v', levels := ['year', 'month'], kind := 'date'", "from fine to coarse, each once: month, year"),
    ("'v', levels := ['x'], kind := 'code'", "numbers of characters to keep"),
    ("'v', breaks := [3, 1]", "no list of rising numbers"),
    ("'w'", "there is no column 'w'"),
    ("'v', kind := 'arx'", "reads a CSV file that ARX wrote"),
    ("'g', kind := 'number'", "is VARCHAR; kind := 'number' takes numbers"),
    ("'g', kind := 'date'", "a value is no date"),
    ("'g', mapping := {}", "mapping"),
    ("'g', mapping := {'g1': null}", "gives 'g1' NULL as its group"),
    ("'v', levels := ['yaer', 'year']", "levels has 'yaer'|numbers of characters"),
    ("'v', kind := 'date', bins := 5", "kind := 'date' takes levels; bins belongs to kind := 'number', 'quantile'"),
    ("'v', kind := 'quantile', breaks := [3]", "breaks belongs to kind := 'number'"),
    ("'v', bins := 4, breaks := [3]", "leave bins out"),
    ("'v', bottom := 7, top := 3", "bottom := 7 is above top := 3"),
    ("'v', breaks := ['nan'::double]", "no list of rising numbers"),
    ("'g', levels := [2]", "keeps 2 characters, and the longest value has 2"),
    ("'g', levels := [1.5]", "numbers of characters to keep"),
)


def test_what_makes_no_hierarchy_is_refused(con):
    con.execute("create table t as select i as v, 'g' || i as g from range(9) t(i)")
    for options, message in REFUSED:
        with pytest.raises(duckdb.Error, match=f"anon_hierarchy: .*{message}"):
            con.execute(f"from anon_hierarchy('t', {options})").fetchall()


def test_numbers_whose_range_no_double_holds_have_one_interval(con):
    con.execute("create table wide as select * from (values (5.0::double), (1e308), (-1e308)) t(x)")
    assert con.execute("from anon_hierarchy('wide', 'x')").fetchall() == [(-1e308, "*"), (5.0, "*"), (1e308, "*")]


ROLES = "qi := ['a', 'b'], sensitive := 's'"
METHODS = ("mondrian('t', 2", "rr_distort('t', p := 0.7", "slicing('t', 1", "anatomy('t', 1")
CALLS = (
    "delta_presence('t', 'r'", "k_map('t', 'r'", "membership_risk('r', 't', 'r'", "linkage_risk('r', 't'",
    "workload_error('r', 't'", "distribution_distance('r', 't'", "composition_risk('t', 'r', 'r'",
)  # fmt: skip


def test_a_release_in_the_place_of_its_original_is_no_internal_error(con):
    con.execute("create table t as select i % 4 as a, 'x' || i % 2 as b, 'y' || i % 3 as s from range(12) r(i)")
    for method in METHODS:
        con.execute(f"create or replace table r as from {method}, {ROLES})")
        for call in CALLS:
            try:
                con.execute(f"from {call}, {ROLES})").fetchall()
            except duckdb.Error as error:
                assert "internal error" not in str(error)


def test_whole_numbers_are_cut_between_whole_numbers(con):
    con.execute("create table t as select 20 + i % 5 as v from range(50) r(i)")
    labels = con.execute("select distinct level1 from anon_hierarchy('t', 'v')").fetchall()
    assert {label for (label,) in labels} == {"< 21", "[21, 22)", "[22, 23)", "[23, 24)", ">= 24"}


def test_a_bignum_is_called_so_and_the_cast_is_named(con):
    con.execute("create table t as select i::bignum as v from range(50) r(i)")
    with pytest.raises(duckdb.Error, match=r"'v' is BIGNUM.* Cast it to HUGEINT"):
        con.execute("from mondrian('t', 5, qi := ['v'])")
