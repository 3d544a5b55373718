"""Random histories released ten times: k, l and the size of groups hold over all releases, from published rows alone."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import duckdb_anon
from tests.reference import linkage

pytestmark = pytest.mark.campaign
RELEASES = 10
HISTORIES = range(4)


@pytest.fixture
def con():
    con = duckdb_anon.connect()
    con.execute("create table people (id integer, age integer, town varchar, ill varchar)")
    for column, role in (("age", "quasi"), ("town", "quasi"), ("ill", "sensitive")):
        con.execute(f"comment on column people.{column} is 'anon: {role}'")
    yield con
    con.close()


class History:
    """A table that lives, and its releases."""

    def __init__(self, con: duckdb.DuckDBPyConnection, seed: int, call: str, **options: str) -> None:
        self.con, self.rng, self.call, self.options = con, random.Random(seed), call, options
        self.people: dict[int, tuple[int, str, str]] = {}
        self.next = 0
        self.batches: list[list[tuple[Any, ...]]] = []
        self.gone: list[Counter[tuple[Any, ...]]] = []
        self.known: dict[int, tuple[int, tuple[int, str, str]]] = {}

    def live(self) -> None:
        """Some records arrive, leave and change."""
        rng = self.rng
        for _ in range(rng.choice([0, 3, 15, 40]) if self.next else 120):
            person = (rng.randint(18, 80), rng.choice("abcd"), rng.choice("uvwxyz"))
            self.people[self.next] = person
            self.next += 1
        for record in rng.sample(sorted(self.people), rng.randint(0, 6)):
            del self.people[record]
        for record in rng.sample(sorted(self.people), rng.randint(0, 8)):
            age, town, ill = self.people[record]
            self.people[record] = (age + rng.randint(0, 1), rng.choice([town, "d"]), rng.choice([ill, "u"]))
        self.con.execute("delete from people")
        order = list(self.people)
        rng.shuffle(order)
        self.con.executemany("insert into people values (?, ?, ?, ?)", [(n, *self.people[n]) for n in order])

    def release(self, number: int) -> None:
        """Release the table; note the rows that appeared and went, and who was new among them."""
        options = {"previous": f"r{number - 1}", **self.options} if number else {}
        said = duckdb_anon.release(self.con, f"r{number}", self.call, key="id", **options)
        before = Counter(self.rows(number - 1)) if number else Counter()
        now = Counter(self.rows(number))
        self.batches.append(list((now - before).elements()))
        self.gone.append(before - now)
        if number and "wait" in said:
            assert not self.batches[-1] or "changed" in self.options
            return
        for record, person in self.people.items():
            if record not in self.known:
                self.known[record] = (number, person)

    def rows(self, number: int) -> list[tuple[Any, ...]]:
        found = self.con.execute(f"from r{number}").fetchall()
        return [tuple(repr(cell) if isinstance(cell, dict | list) else cell for cell in row) for row in found]

    def published(self) -> Iterator[tuple[tuple[int, str, str], list[tuple[Any, ...]]]]:
        """Each record as it was published, and the rows that appeared when it did."""
        for number, person in self.known.values():
            yield person, self.batches[number]


def shows(cell: Any, value: Any) -> bool:
    """Whether a cell, or what its repr reads as, covers a value."""
    return linkage.covers(eval(cell) if isinstance(cell, str) and cell[:1] in "{[" else cell, value)


def play(con: duckdb.DuckDBPyConnection, seed: int, call: str, **options: str) -> History:
    history = History(con, seed, call, **options)
    for number in range(RELEASES):
        history.live()
        history.release(number)
    return history


@pytest.mark.parametrize("seed", HISTORIES)
def test_every_record_is_one_of_k_over_all_releases(con, seed):
    history = play(con, seed, "mondrian('people', 4, l := 2)")
    for (age, town, ill), batch in history.published():
        alike = [row for row in batch if shows(row[0], age) and shows(row[1], town)]
        classes = Counter(row[:2] for row in alike)
        values = {box: Counter(row[2] for row in alike if row[:2] == box) for box in classes}
        assert min(classes.values()) >= 4
        assert any(ill in counts for counts in values.values())
        for box, size in classes.items():
            assert max(values[box].values()) <= size / 2
    assert not any(history.gone)


@pytest.mark.parametrize("call", ["mondrian('people', 4)", "microaggregate('people', 4, categorical := ['town'])"])
@pytest.mark.parametrize("seed", HISTORIES)
def test_what_is_left_when_groups_are_withdrawn_is_of_k(con, seed, call):
    play(con, seed, call, deleted="withdraw")
    fewest, withdrawn = [], []
    for number in range(RELEASES):
        sizes = con.execute(f"select count(*) from r{number} group by age, town").fetchall()
        fewest.append(min(size for (size,) in sizes))
        published, gone = con.execute(f"""select count(*) filter (withdrawn is null or withdrawn > {number + 1}),
            count(*) filter (withdrawn <= {number + 1}) from anon.records where release <= {number + 1}""").fetchall()[0]
        assert con.execute(f"select count(*) from r{number}").fetchall() == [(published,)]
        withdrawn.append(gone)
    assert min(fewest) >= 4 and withdrawn[-1] >= 4


@pytest.mark.parametrize("seed", HISTORIES)
def test_buckets_never_change_and_stay_diverse(con, seed):
    history = play(con, seed, "anatomy('people', 3)")
    bucket_of: dict[int, tuple[str, int]] = {}
    for number, batch in enumerate(history.batches):
        for bucket, rows in groups(batch, 0).items():
            assert bucket not in bucket_of  # no later record joins a bucket
            bucket_of[bucket] = (str(rows[0][3]), number)
            counts = eval(rows[0][3])
            assert len({row[3] for row in rows}) == 1 and sum(counts.values()) == len(rows) >= 3
            assert max(counts.values()) <= len(rows) / 3
    for (age, town, ill), batch in history.published():
        assert any(row[1:3] == (age, town) and ill in eval(row[3]) for row in batch)
    assert not any(history.gone)


@pytest.mark.parametrize("seed", HISTORIES)
def test_replaced_records_keep_one_set_of_sensitive_values(con, seed):
    history = play(con, seed, "anatomy('people', 3)", changed="replace")
    buckets: dict[int, set[tuple[int, str]]] = {}
    for number in range(RELEASES):
        for bucket, rows in groups(history.rows(number), 0).items():
            buckets.setdefault(bucket, set()).update((len(rows), row[3]) for row in rows)
    for versions in buckets.values():
        ((size, values),) = versions  # the same members and values in every release
        assert max(eval(values).values()) <= size / 3
    # what is published of a record that is there is what it is now; the others wait or have left
    last = Counter((age, town) for _, age, town, _ in history.rows(RELEASES - 1))
    now = Counter(person[:2] for record, person in history.people.items() if record in history.known)
    assert not now - last and any(history.gone)


@pytest.mark.parametrize("seed", HISTORIES)
def test_means_are_of_k_records_over_all_releases(con, seed):
    history = play(con, seed, "microaggregate('people', 4, categorical := ['town'])")
    for batch in history.batches:
        assert all(size >= 4 for size in Counter(row[:2] for row in batch).values())
    assert not any(history.gone)


@pytest.mark.parametrize("seed", HISTORIES)
def test_records_are_permuted_among_those_that_came_with_them(con, seed):
    history = play(con, seed, "muco('people', 0.2)")
    for number, batch in enumerate(history.batches):
        came = [person for at, person in history.known.values() if at == number]
        assert len(batch) == len(came) and (not batch or len(batch) >= 5)
        for column in range(3):
            assert Counter(row[column] for row in batch) == Counter(person[column] for person in came)
    assert not any(history.gone)


@pytest.mark.parametrize("seed", HISTORIES)
def test_sliced_buckets_never_change(con, seed):
    history = play(con, seed, "slicing('people', 2, columns := [['age'], ['town'], ['ill']])")
    seen: set[int] = set()
    for batch in history.batches:
        for bucket, rows in groups(batch, 0).items():
            assert bucket not in seen
            seen.add(bucket)
            assert max(Counter(row[3] for row in rows).values()) <= len(rows) / 2
    assert not any(history.gone)


def groups(rows: list[tuple[Any, ...]], column: int) -> dict[Any, list[tuple[Any, ...]]]:
    found: dict[Any, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row[column], []).append(row)
    return found
