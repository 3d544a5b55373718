"""Fixtures shared by all tests."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

import duckdb_anon
from tests.reference.emptied import give_back, take

CAMPAIGNS = (
    "contract/test_examples", "endtoend/test_evidence", "endtoend/test_odd_data", "endtoend/test_release_in_parts",
    "endtoend/test_report", "unit/database", "unit/measures/queries/test_replay",
    "unit/measures/queries/test_workload_error", "unit/measures/risk/test_disclosure", "unit/releases/test_doors",
    "unit/releases/test_publish", "unit/releases/test_verify_release", "unit/report/test_profile",
    "unit/report/test_recommend", "unit/rewrite/test_corpus", "unit/rewrite/test_intervals",
    "unit/rewrite/test_persons", "unit/rewrite/test_trees", "unit/sequence/test_sequence_risk",
)  # fmt: skip
"""Minutes of many cases, marked as campaigns as a whole: a plain run ends in a few minutes without them, and CI runs them."""

WEEKLY = (
    "contract/test_advice", "contract/test_nested_columns", "contract/test_one_file", "contract/test_ordinary_names",
    "endtoend/test_interrupt", "property/test_new_values", "property/test_outer_joins", "unit/engine/test_equality",
    "unit/engine/test_memory_estimate", "unit/kernels/test_code_cache", "unit/kernels/test_jit",
    "unit/measures/queries/test_published_errors", "unit/measures/risk/test_composition_risk",
    "unit/measures/risk/test_population", "unit/parts/test_same_release", "unit/rewrite/test_learnt_counts",
    "unit/rewrite/test_unbounded_cells",
)  # fmt: skip
"""Campaigns of parts that seldom change, which run once a week (.ci/weekly)."""

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
    """Mark `CAMPAIGNS` before marks choose what runs, and then let the second of two workers begin with `PLAIN`."""
    for item in items:
        if _within(item, CAMPAIGNS + WEEKLY):
            item.add_marker(pytest.mark.campaign)
        if _within(item, WEEKLY):
            item.add_marker(pytest.mark.weekly)
    yield
    plain = [item for item in items if _within(item, PLAIN)]
    others = [item for item in items if not _within(item, PLAIN)]
    half = min(len(items) // 2, len(others))
    items[:] = others[:half] + plain + others[half:]


def _within(item: pytest.Item, places: tuple[str, ...]) -> bool:
    return item.path.relative_to(Path(__file__).parent).as_posix().startswith(places)
