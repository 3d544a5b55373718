"""Arguments of every numeric type DuckDB has, and of every size, are taken exactly or refused by name."""

import itertools
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import Method, Parameter
from duckdb_anon.registry import ENTRIES, METHODS
from tests.reference.entry_calls import arguments

HUGE = (2**63, 2**64 - 1, 2**127 - 1, Decimal(2**127 - 1), -(2**127), Decimal("1e37"), 1e300)


@pytest.mark.parametrize("given", [5, Decimal(5), Decimal("5.000"), 5.0, "5"])
def test_whole_numbers_of_every_type_are_whole_numbers(given):
    taken = Parameter("k", "rows", "integer", low=1).check("f", given)
    assert taken == 5 and type(taken) is int


@pytest.mark.parametrize(
    "given", [5.5, Decimal("5.0001"), "5.5", True, "five", float("nan"), float("inf"), Decimal("NaN")]
)
def test_what_is_no_whole_number_is_refused(given):
    with pytest.raises(ParameterError, match=r"k := .* is not a whole number .rows"):
        Parameter("k", "rows", "integer").check("f", given)


def test_whole_numbers_are_exact_where_a_float_would_round_them():
    taken = Parameter("seed", "seed", "integer", high=2**63 - 1).check("f", Decimal(2**63 - 1))
    assert taken == 2**63 - 1


@pytest.mark.parametrize("given", HUGE)
def test_numbers_beyond_64_bits_are_out_of_range_and_shown_as_written(given):
    allowed = "at least 1 and at most 2147483647" if given > 0 else "at least 1"
    with pytest.raises(ParameterError, match=f"is out of range. It must be {allowed} .rows") as e:
        Parameter("k", "rows", "integer", low=1).check("f", given)
    assert "Decimal" not in str(e.value)


def test_decimals_inside_lists_and_maps_become_numbers():
    mapping = Parameter("p", "probabilities", "mapping")
    assert mapping.check("f", {"age": Decimal("0.8"), "both": [Decimal(1)]}) == {"age": 0.8, "both": [1.0]}
    assert mapping.check("f", [("age", Decimal("0.8"))]) == {"age": 0.8}
    anything = Parameter("rules", "rules").check("f", [{"low": Decimal("1.5")}, (Decimal(2),)])
    assert anything == [{"low": 1.5}, (2.0,)]
    assert not any(isinstance(v, Decimal) for v in (anything[0]["low"], anything[1][0]))


def test_fractions_are_exact():
    delta = Parameter("delta", "share", "fraction", above=0, high=1)
    assert delta.check("f", Decimal("0.1")) == Fraction(1, 10) == delta.check("f", 0.1) == delta.check("f", "1/10")


@pytest.fixture(scope="module")
def con():
    con = duckdb_anon.connect()
    con.execute("""create table people as select range as pid, 20 + hash(range) % 40 as age, range % 2 as sex,
        'd' || hash(range, 1) % 12 as disease from range(60)""")
    con.execute("create table tree as select distinct disease as leaf, 'all' as root from people")
    return con


def calls() -> list[tuple[Method, str]]:
    """Smallest calls with one numeric parameter after the other at the end of its type."""
    found = []
    for method in METHODS:
        kinds = {
            "integer": ["2147483647", "9223372036854775807", "7.0::decimal(30,5)"],
            "number": ["1e9", "1e300", "0.5::decimal(3,2)"],
        }
        kinds["fraction"] = ["0.5::decimal(18,9)", "1e-300"]
        for parameter in method.parameters:
            for value in kinds.get(parameter.kind, ()):
                given = {**arguments(method.smallest), parameter.name: value}
                found.append((method, ", ".join(f"{name} := {each}" for name, each in given.items())))
    return found


@pytest.mark.parametrize(("method", "arguments"), calls(), ids=lambda given: getattr(given, "name", given))
def test_numbers_at_the_ends_of_their_types_release_or_are_refused(con, method, arguments):
    roles = "qi := ['age', 'sex'], sensitive := 'disease', seed := 1"
    if "person" in method.needs:
        roles += ", person := 'pid', hierarchies := {'disease': 'tree'}"
    try:
        con.execute(f"from {method.name}('people', {arguments}, {roles})").fetchall()
    except duckdb.Error as error:
        assert "internal error" not in str(error)
        assert method.name in str(error)


def test_no_parameter_takes_a_number_it_cannot_hold():
    for entry, given in itertools.product(ENTRIES, HUGE):
        for parameter in entry.parameters:
            if parameter.kind == "integer" and parameter.name != "seed":  # a HUGEINT
                with pytest.raises(ParameterError, match="out of range"):
                    parameter.check(entry.name, given)
