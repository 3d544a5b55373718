"""Fixtures shared by all tests."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

import duckdb_anon
from tests.reference.emptied import give_back, take

PLAIN = ("unit/rewrite", "unit/sql", "unit/serve", "unit/shell", "unit/test_")
"""Minutes of tests that hardly need a compiled kernel: while one worker runs them the other one compiles for both."""

PROJECT = Path(__file__).resolve().parent.parent
os.environ.setdefault("OMP_NUM_THREADS", "1")  # every core has a worker; threads of scikit-learn would wait in loops

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # a shell ignores the signal for what it starts in the background, and children of the tests would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)

# without a deadline, since the first call of a kernel compiles it; --hypothesis-profile thorough draws more
hypothesis.settings.register_profile("untimed", deadline=None, max_examples=30)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=300)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session")
def shared_data():
    """Folder with the real tables; a clone without them skips the tests that need them."""
    folder = Path(os.environ.get("ANON_SHARED_DATA", PROJECT.parent / "shared" / "data"))
    if not (folder / "census.csv").exists():
        pytest.skip("the real tables are not beside this checkout")
    return folder


@pytest.fixture
def con(request):
    """An empty database in memory with the package loaded."""
    connection = take(request.path)
    yield connection
    give_back(connection, request.path)


@pytest.fixture(scope="session")
def census(shared_data):
    """A database with the labelled table census; tests must not change it."""
    connection = duckdb_anon.connect()
    connection.execute(f"create table census as from read_csv('{shared_data / 'census.csv'}')")
    for column in ("RELATE", "SEX", "AGE", "MARST", "RACE", "EDUC", "UHRSWORK"):
        connection.execute(f"comment on column census.{column} is 'anon: quasi'")
    connection.execute("comment on column census.INCWAGE is 'anon: sensitive'")
    yield connection
    connection.close()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Let the second of two workers begin with `PLAIN`."""
    yield
    plain = [item for item in items if _within(item, PLAIN)]
    others = [item for item in items if not _within(item, PLAIN)]
    half = min(len(items) // 2, len(others))
    items[:] = others[:half] + plain + others[half:]


def _within(item: pytest.Item, places: tuple[str, ...]) -> bool:
    return item.path.relative_to(Path(__file__).parent).as_posix().startswith(places)
