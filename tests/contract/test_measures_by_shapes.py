"""Every measure on a release of every shape: right, against loops over the printed rows, or refused by name."""

from dataclasses import replace

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.model.function_specs import PureSql, Query, Report
from duckdb_anon.model.release_formats.formats import FORMATS
from duckdb_anon.registry import ENTRIES
from tests.reference.answers import answered
from tests.reference.entry_calls import Tables, reads_release, refusal
from tests.reference.oracles import attackers, criteria, risks, utility
from tests.reference.tiny_releases import NAMES, RELEASES, fill

ANSWERS = {e.name: set(e.answers) for e in ENTRIES if isinstance(e, (Report, PureSql, Query))}
TABLES = Tables("tiny", "", number="a", text="g", sensitive="s", qi=("a", "g"))
TAKING = [e for e in ENTRIES if isinstance(e, (Report, PureSql)) and reads_release(e) and "person" not in e.needs]
PLAIN = {**utility.RIGHT, **attackers.RIGHT, **criteria.RIGHT}
ORACLES = {**PLAIN, **risks.RIGHT}


@pytest.fixture(scope="module")
def con():
    connection = duckdb_anon.connect()
    fill(connection)
    connection.execute("create table people(a integer, g varchar)")
    connection.executemany("insert into people values (?, ?)", attackers.PEOPLE)
    connection.execute("create table others(a integer, g varchar, s varchar)")
    connection.executemany("insert into others values (?, ?, ?)", criteria.OTHERS)
    yield connection
    connection.close()


def unread(name: str, shape: str) -> set[str]:
    """Shapes of a release that a measure does not answer."""
    found = {"boxes", shape} if shape in ("sampled", "suppressed", "retained", "counts") else {shape}
    return set() if "*" in ANSWERS[name] else found - ANSWERS[name]


RIGHT = [
    pytest.param(name, shape, id=f"{name}-{shape}", marks=() if name in PLAIN else pytest.mark.campaign)
    for name in ORACLES
    for shape in NAMES
    if not unread(name.split()[0], shape)
]
REFUSED = [
    pytest.param(e, shape, unread(e.name, shape), id=f"{e.name}-{shape}")
    for e in TAKING
    for shape in NAMES
    if unread(e.name, shape)
]


@pytest.mark.parametrize(("name", "shape"), RIGHT)
def test_a_measure_is_right_wherever_it_answers(con, name, shape):
    ORACLES[name](con, shape)


@pytest.mark.parametrize(("entry", "shape", "missing"), REFUSED)
def test_a_measure_refuses_by_name_what_it_does_not_answer(con, entry, shape, missing):
    function, code, message = refusal(con, replace(TABLES, release=f"{shape}_release").statement(entry))
    assert (function, code) == (entry.name, "format-not-read")
    assert all(one.description in message for one in FORMATS if one.name in missing)
    assert any(f"{other.name} " in message for other in ENTRIES if other != entry)


def test_there_is_a_release_of_every_shape():
    # a constant beside the columns of an edged release, or of made records, changes no value's shape; suppressed cells that are counted
    # are NULL, which tests/unit/methods/test_suppress.py and tests/unit/kernels/cells read as any value
    assert {shape.name for shape in FORMATS} - {"linked", "persons", "edged", "made", "blank"} == set(RELEASES)


def test_attackers_answer_every_shape_and_criteria_those_in_which_rows_are_persons():
    assert all(ANSWERS[name] == {*NAMES, "persons"} for name in ("linkage_risk", "attribute_risk"))
    assert all(set(NAMES) - ANSWERS[name] == {"counts"} for name in criteria.RIGHT)


def test_by_default_counts_of_a_bucket_are_left_out_or_refused_by_name(con):
    for call, named in (
        ("singling_out('tiny', 'buckets_release', n := 2, seed := 1{})", ", columns := ['a', 'g']"),
        ("linkability('tiny', 'buckets_release', seed := 1{})", ", columns_a := ['a'], columns_b := ['g']"),
    ):
        told, same = (answered(con, f"from {call.format(more)}") for more in ("", named))
        assert told.pop("note") == same.pop("note") + "; s left out: rows show counts of their bucket"
        assert str(told) == str(same)
    with pytest.raises(duckdb.Error, match=r"inference: rows of the release have counts of 's' .* Use attribute_risk"):
        con.execute("from inference('tiny', 'buckets_release')")
    with pytest.raises(duckdb.Error, match="'s' of the release holds counts"):
        con.execute("from singling_out('tiny', 'buckets_release', columns := ['a', 's'])")
