"""An original may call its columns what shapes call theirs: all is as it is with an ordinary name in that place."""

import math
import re
from itertools import cycle
from typing import Any

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.model import release_formats
from duckdb_anon.model.function_specs import Method, Task
from duckdb_anon.registry import ENTRIES, METHODS
from tests.reference.entry_calls import Tables, is_scalar, reads_original, reads_release

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

PLAIN = "ordinary"
NAMES = {
    "Bucket": "(1 + i % 4)::bigint", "noisy_Count": "(0.5 + i % 4)::double",
    "SAMPLING_RATE": "(0.25 * (1 + i % 4))::double", "Suppressed": "(i % 4)::bigint",
    "reTention": "(0.25 * (1 + i % 4))::double", "RR": "(i % 4)::integer", "Moved_Within": "(1 + i % 4)::bigint",
    "Row_Id": "(3 - i % 4)::bigint", "Sensitive_Edges": "(2 + i % 4)::bigint",
}  # fmt: skip
ROLES = ("quasi", "sensitive", "insensitive", "unlabelled")
STEP = 30
"""One measure in so many on each release, another one for the next name: what is read of a name is read in one place."""
OF_ROWS = [method for method in METHODS if "person" not in method.needs]
MEASURES = [
    (entry, trial)
    for entry in ENTRIES
    if reads_release(entry) and not is_scalar(entry) and "person" not in getattr(entry, "needs", ())
    # a release alone does not say whose column has the name of a carrier
    if {"original", "qi"} & {parameter.name for parameter in parameters_of(entry)}
    for trial in (entry.smallest, *entry.trials)
]
OF_ORIGINALS = [
    entry
    for entry in ENTRIES
    if not isinstance(entry, (Method, Task)) and reads_original(entry) and not is_scalar(entry)
]


@pytest.fixture(scope="module")
def con():
    connection = duckdb_anon.connect()
    connection.execute("set threads = 1")  # several name first whichever of two wrong columns they read first
    yield connection
    connection.close()


def _original(con: duckdb.DuckDBPyConnection, table: str, name: str, expression: str, role: str) -> None:
    con.execute(
        f"create or replace table {table} as select (20 + (i * 7) % 20)::integer as a, (['F', 'M', 'X'])[1 + i % 3] "
        f"as g, {expression} as \"{name}\", (['flu', 'cold', 'acne', 'gout'])[1 + (i // 2) % 4] as s "
        "from (select i::integer as i from range(24) as t(i))"
    )
    roles = {"a": "quasi", "g": "quasi", "s": "insensitive" if role == "sensitive" else "sensitive", name: role}
    for column, word in roles.items():
        if word != "unlabelled":
            con.execute(f"comment on column {table}.\"{column}\" is 'anon: {word}'")


def _tables(original: str, release: str, name: str, role: str) -> Tables:
    qi = ("a", "g", name) if role == "quasi" else ("a", "g")
    keep = {"insensitive": (name,), "sensitive": ("s",)}.get(role, ())
    secret = name if role == "sensitive" else "s"
    return Tables(original, release, number="a", text="g", sensitive=secret, qi=qi, keep=keep)


def _release(con: duckdb.DuckDBPyConnection, method: Method, turn: int, source: str, target: str) -> list[str] | None:
    """Names of the columns of a release; None where the table cannot meet what the call asks."""
    options = ", keep := []" if "counts" in method.formats else ", row_id := true"
    call = (method.smallest, *method.trials)[turn % (1 + len(method.trials))]
    try:
        con.execute(f"create or replace table {target} as from {method.name}('{source}', {call}{options}, seed := 5)")
    except duckdb.Error:
        return None
    return [row[0] for row in con.execute(f"describe {target}").fetchall()]


def _told(con: duckdb.DuckDBPyConnection, call: str, names: dict[str, str]) -> Any:
    """Rows of a call, or the text of its error, with `names` put back."""
    try:
        rows = con.execute(f"from {call}").fetchall()
    except duckdb.Error as error:
        text = str(error).split("\n")[0]
        for name in names:  # a carrier that made way for a column is the nearest word to that column
            text = text.replace(f" (did you mean '{name}'?)", "") if name.endswith("_") else text
        return _renamed(text, names)
    return sorted((tuple(_renamed(value, names) for value in row) for row in rows), key=repr)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, other in names.items():
            value = re.sub(rf"(?<![A-Za-z0-9]){name}(?![A-Za-z0-9])", other, value)
        return value
    if isinstance(value, dict):
        return {_renamed(k, names): _renamed(v, names) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_renamed(v, names) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def test_every_name_is_tried():
    assert {name.lower() for name in NAMES} == {carrier.word for carrier in release_formats.carriers()}


def cases() -> list[tuple[str, str, str]]:
    """Each name in odd letter case, as it is usually written, and as a carrier is called beside a column of its name."""
    spelled = [(name, name if n % 2 else name.lower(), ROLES[n % 4]) for n, name in enumerate(NAMES)]
    return [*spelled, *((name, f"{name}_", ROLES[(n + 1) % 4]) for n, name in enumerate(NAMES) if n % 2)]


@pytest.mark.parametrize(("name", "spelled", "role"), cases())
def test_a_name_changes_nothing(con, name, spelled, role):
    turn = list(NAMES).index(name) + ROLES.index(role)
    _original(con, "odd", spelled, NAMES[name], role)
    _original(con, "even", PLAIN, NAMES[name], role)
    for place, method in enumerate(OF_ROWS):
        columns = _release(con, method, turn, "odd", "odd_release")
        expected = _release(con, method, turn, "even", "even_release")
        if columns is None or expected is None:
            assert columns == expected, method.name
            continue
        carrier = f"{spelled.lower()}_"  # what the method's own column is called beside one of its name
        moved = [carrier[:-1] if shown == carrier else shown.replace(spelled, PLAIN) for shown in columns]
        assert moved == expected, method.name
        assert (spelled in columns) == (PLAIN in expected)
        # a text that has the carrier's very word may mean either, so then both are called alike on both sides
        alike = {spelled: PLAIN} if spelled == spelled.lower() else {}
        names = {carrier: alike.get(spelled, spelled.lower()), spelled: PLAIN, "odd": "even"}
        for entry, trial in MEASURES[(place + turn) % STEP :: STEP]:
            odd = _tables("odd", "odd_release", spelled, role).call(entry, trial, seed=1)
            even = _tables("even", "even_release", PLAIN, role).call(entry, trial, seed=1)
            assert _told(con, odd, names) == _told(con, even, alike), (method.name, odd)


@pytest.mark.parametrize(
    ("name", "role"), list(zip(NAMES, cycle(["quasi", "sensitive", "insensitive", "identifier", "person"])))
)
def test_an_original_is_measured_as_it_is(con, name, role):
    _original(con, "odd", name, NAMES[name], role)
    _original(con, "even", PLAIN, NAMES[name], role)
    names = {name: PLAIN, "odd": "even"}
    for entry in OF_ORIGINALS[list(NAMES).index(name) % 3 :: 3]:
        odd = _tables("odd", "odd", name, role).call(entry, seed=1)
        even = _tables("even", "even", PLAIN, role).call(entry, seed=1)
        assert _told(con, odd, names) == _told(con, even, {}), odd


def test_what_may_be_a_carrier_or_not_is_asked_back(con):
    con.execute("create or replace table unsaid as select i % 2 as a, 0.5::double as noisy_count from range(6) t(i)")
    with pytest.raises(duckdb.Error, match=r"has noisy counts.*say keep := \['noisy_count'\]"):
        con.execute("from k_anonymity('unsaid', qi := ['a'])")
    assert con.execute("from k_anonymity('unsaid', qi := ['a'], keep := ['noisy_count'])").fetchall() == [(3,)]
