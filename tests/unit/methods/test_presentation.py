"""What numbers and fakes could give away: an attacker reads bucket numbers, and insensitive values that stand twice."""

from collections import Counter, defaultdict

import duckdb
import numpy as np
import pytest

ROLES = "qi := ['age', 'zip'], sensitive := 'disease', keep := ['ticket']"
CALLS = [
    "slicing('t', 2, columns := [['age', 'zip'], ['disease']], {})",
    "slicing('t', 2, columns := [['age'], ['zip'], ['disease']], cut := 'median', {})",
    "merging('t', 2, columns := [['age'], ['zip']], fake := 0, {})",
    "merging('t', 2, columns := [['age'], ['zip']], cut := 'sse', fake := 0, {})",
    "anatomy('t', 2, {})",
    "anatomy('t', 2, groups := 'sse', {})",
]


@pytest.fixture
def sorted_table(con):
    con.execute("""create table t as select i::integer as age, (10000 + i + hash(i) % 7)::integer as zip,
        'd' || hash(i, 2) % 9 as disease, 'ticket ' || i as ticket from range(2000) as r(i)""")
    return con


def _numbers(con: duckdb.DuckDBPyConnection, call: str, more: str = "") -> dict[int, int]:
    """Number of the bucket of each person, by the holder's row_id."""
    found = con.execute(f"select row_id, bucket from {call.format(f'{ROLES}, row_id := true{more}')}").fetchall()
    return {row: bucket for row, bucket in found if row is not None}


@pytest.mark.parametrize("call", CALLS)
def test_numbers_of_buckets_say_nothing_of_file_or_values(sorted_table, call):
    first, second = _numbers(sorted_table, call), _numbers(sorted_table, call)
    # buckets are independent draws: where one person in a bucket is taken, so are its neighbours
    one_each = {bucket: row for row, bucket in first.items()}
    rows, numbers = list(one_each.values()), list(one_each)
    assert len(numbers) > 40 and abs(np.corrcoef(rows, numbers)[0, 1]) < 5 / len(numbers) ** 0.5
    # the same bucket has another number in another run
    assert sum(first[row] == second[row] for row in rows) < 0.1 * len(rows) + 5
    seeded = [_numbers(sorted_table, call, ", seed := 7") for _ in range(2)]
    assert seeded[0] == seeded[1]


@pytest.mark.parametrize("l", [2, 3])
def test_numbers_of_buckets_and_order_of_rows_are_chance(con, l):  # noqa: E741
    """Values are as chance has it in a file that is sorted by age: nothing of a bucket's number or row tells the age."""
    con.execute("""create table t as select i::integer as age, 1 as zip, 'd' || hash(i, 2) % 7 as disease, i as ticket
        from range(6000) as r(i)""")
    con.execute(f"create table r as from anatomy('t', {l}, {ROLES}, row_id := true, seed := 11)")
    buckets = """select bucket, min(row_id) as least, max(row_id) as most, arg_min(row_id, rowid) as first,
        avg(row_id) as middle, any_value(disease)::varchar as counts from r group by bucket"""
    many, greatest = con.execute(f"select count(*), max(bucket) from ({buckets})").fetchall()[0]
    assert many == greatest == 6000 // l
    # six standard deviations: of a correlation 1 / sqrt(n), of a share sqrt(p (1 - p) / n)
    for other in ("middle", "hash(counts)"):
        (found,) = con.execute(f"select corr(bucket, {other}) from ({buckets})").fetchall()[0]
        assert abs(found) < 6 / many**0.5
    for end in ("least", "most"):
        (share,) = con.execute(f"select avg((first = {end})::int) from ({buckets})").fetchall()[0]
        assert abs(share - 1 / l) < 6 * (1 / l * (1 - 1 / l) / many) ** 0.5
    assert con.execute("select bool_and(bucket >= before) from (select bucket, lag(bucket) over (order by rowid) as before from r)").fetchall() == [(True,)]  # fmt: skip


def test_insensitive_values_do_not_tell_whom_a_fake_copies(sorted_table):
    call = f"merging('t', 2, min_bucket := 20, columns := [['age'], ['zip']], fake := 200, {ROLES}, row_id := true)"
    sorted_table.execute(
        "update t set ticket = 'ticket ' || age // 2"
    )  # a ticket for two: a column of unique values is refused
    released = sorted_table.execute(f"select bucket, age.age, ticket, row_id from {call}").fetchall()
    # what the holder knows: the ages of a bucket's fakes are those its real records do not account for
    ages: defaultdict[int, Counter[int]] = defaultdict(Counter)
    tickets: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for bucket, age, ticket, row in released:
        ages[bucket][age] += 1
        tickets[bucket][ticket] += 1
        if row is not None:
            ages[bucket][row] -= 1
    assert sum(n for ages_of in ages.values() for n in ages_of.values()) == 200
    # the attacker knows the owners of each ticket, and takes those of one that occurs too often for the copied ones
    guesses = [
        any(ages[bucket][2 * int(ticket.split()[1]) + owner] > 0 for owner in (0, 1))
        for bucket in tickets
        for ticket, n in tickets[bucket].items()
        if n > 2
    ]
    assert len(guesses) > 50
    assert sum(guesses) / len(guesses) < 0.4  # by chance; it would be 1 if fakes had the tickets of those they copy
    assert all(ticket is not None for _, _, ticket, _ in released)
