"""What measures of values, queries and classes say of a release of every shape.

Whatever a measure says of values must follow from the expected number of original rows with each combination of values
(`expected`); whatever it says of classes, from the printed cells.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from tests.reference.tiny_releases import ORIGINAL, Row, S, Table, expected, printed, values_of


def shares(table: Table, keep: tuple[int, ...]) -> Table:
    found: Table = defaultdict(float)
    for key, weight in table.items():
        found[tuple(key[i] for i in keep)] += weight / sum(table.values())
    return found


def uncertainty(table: Table, given: int, response: int) -> float:
    """Uncertainty coefficient (Theil): mutual information over the entropy of the response; noise below 0 is 0."""
    joint = {key: max(value, 0.0) for key, value in shares(table, (given, response)).items()}
    total = sum(joint.values())
    joint = {key: value / total for key, value in joint.items()}
    first, second = (_marginal(joint, place) for place in (0, 1))
    told = sum(v * math.log(v / (first[x] * second[y])) for (x, y), v in joint.items() if v > 0)
    entropy = -sum(v * math.log(v) for v in second.values() if v > 0)
    return told / entropy if entropy > 0 else 0.0


def _marginal(joint: Table, place: int) -> dict[Any, float]:
    found: dict[Any, float] = defaultdict(float)
    for key, value in joint.items():
        found[key[place]] += value
    return found


def check_correlation(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    table = expected(shape, printed(con, shape))
    call = f"correlation('{shape}_release', columns := ['a', 'g', 's'], qi := ['a', 'g'], sensitive := 's')"
    found = con.execute(f"select given, response, uncertainty_coefficient from {call}").fetchall()
    assert len(found) == 6
    for given, response, value in found:
        assert value == pytest.approx(uncertainty(table, "ags".index(given), "ags".index(response)), abs=1e-9)


def check_distribution_distance(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    table = expected(shape, printed(con, shape))
    truth: Table = Counter(ORIGINAL)  # type: ignore[assignment]
    for names in ("a", "s", "gs", "ags"):
        keep = tuple("ags".index(name) for name in names)
        before, after = shares(truth, keep), shares(table, keep)
        wanted = sum(abs(before.get(key, 0.0) - after.get(key, 0.0)) for key in {*before, *after})
        call = f"distribution_distance('tiny', '{shape}_release', columns := {list(names)})"
        cursor = con.execute(f"from {call}")
        columns = [d[0] for d in cursor.description]
        row = dict(zip(columns, cursor.fetchall()[-1], strict=True))
        assert row["l1"] == pytest.approx(wanted, abs=1e-9), names


EVEN = "spread := 'uniform'"
"""The model that worlds are counted by here; learnt shares have tests of their own against values one by one."""


def likely(records: dict[tuple[object, ...], float]) -> dict[tuple[object, ...], float]:
    """What the estimates of each group are multiplied by: 0 below half a record, so that all records stay in the sum."""
    stay = {group: n for group, n in records.items() if n >= 0.5}
    scale = sum(records.values()) / sum(stay.values()) if sum(stay.values()) >= sum(records.values()) / 2 else 1.0
    return {group: scale if group in stay else 0.0 for group in records}


def check_queries(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    table = expected(shape, printed(con, shape))
    query = "select g, count(*) as n, sum(a) as total from tiny where a <= 3 and s = 'flu' group by g"
    told = con.execute(
        f"select keys['g'], measure, estimate from relative_error($q, 'tiny', '{shape}_release', {EVEN})", {"q": query}
    )
    kept = {key: w for key, w in table.items() if key[0] <= 3 and key[2] == "flu"}
    records: Counter[tuple[object, ...]] = Counter()
    for (_, g, _), w in kept.items():
        records[(g,)] += w
    scale = likely(records)
    for group, measure, value in told.fetchall():
        wanted = sum(w * (key[0] if measure == "total" else 1) for key, w in kept.items() if key[1] == group)
        assert (value or 0) == pytest.approx(wanted * scale.get((group,), 0), abs=1e-9), (group, measure)


def check_cube(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    table = expected(shape, printed(con, shape))
    found = con.execute(f"""select keys, estimate
        from cube_error('tiny', '{shape}_release', dims := ['g', 's'], {EVEN})""").fetchall()
    assert len(found) == 9
    for names in ((), (1,), (2,), (1, 2)):
        records: Counter[tuple[object, ...]] = Counter()
        for key, w in table.items():
            records[tuple(key[name] for name in names)] += w
        scale = likely(records)
        for keys, value in found:
            if sorted(keys) == ["ags"[name] for name in names]:
                group = tuple(keys["ags"[name]] for name in names)
                wanted = records[group] * scale.get(group, 0)
                assert (value or 0) == pytest.approx(wanted, abs=1e-9), keys


def check_rewritten(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    table = expected(shape, printed(con, shape))
    query = "select count(*) as n from tiny where a = 2 or s = ''cold''"
    text = con.execute(f"select rewrite_query('{query}', 'tiny', '{shape}_release', {EVEN})").fetchall()[0][0]
    value = con.execute(text).fetchall()[0][0]
    exact = sum(w for (a, _, s), w in table.items() if a == 2 or s == "cold")
    # a count is a whole number, as the original's is; halves go away from 0, as DuckDB's do
    assert isinstance(value, int)
    assert value == math.copysign(math.floor(abs(exact) + 0.5 + 1e-9), exact)


def check_workload(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    table = expected(shape, printed(con, shape))
    con.execute("create or replace temp table worlds(a integer, g varchar, s varchar, w double)")
    con.executemany("insert into worlds values (?, ?, ?, ?)", [(*key, w) for key, w in table.items()])
    for aggregate, amount in (("count(*)", "w"), ("sum(a)", "w * a")):
        call = f"workload_error('tiny', '{shape}_release', 25, dims := 2, seed := 3, selectivity := 0.4, {EVEN}, "
        options = f"aggregate := '{aggregate}', predicate_on_sensitive := true)"
        found = con.execute(f"select query, estimate from {call}{options}").fetchall()
        assert found
        for query, value in found:
            wanted = con.execute(f"select coalesce(sum({amount}), 0) from worlds where {query.split(' WHERE ')[1]}")
            assert value == pytest.approx(wanted.fetchall()[0][0], abs=1e-9), query


def classes(shape: str, rows: list[Row], secret: bool) -> list[list[Row]]:
    """Rows nobody can tell apart: equal printed quasi-identifiers, or a bucket of slices or of counts."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        within = shape == "sliced" or (secret and shape == "buckets")
        found[str(row["bucket"] if within else (row["a"], row["g"]))].append(row)
    return list(found.values())


def check_sizes(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    sizes = sorted(len(group) for group in classes(shape, printed(con, shape), False))
    options = f"('{shape}_release', qi := ['a', 'g'])"
    assert con.execute(f"from k_anonymity{options}").fetchall() == [(sizes[0],)]
    found = con.execute(f"select class_size from equivalence_classes{options} order by 1").fetchall()
    assert [row[0] for row in found] == sizes
    assert con.execute(f"select classes from class_statistics{options}").fetchall() == [(len(sizes),)]
    risk = con.execute(f"select * from reidentification_risk{options}").fetchall()[0]
    assert 1 / sizes[0] in [pytest.approx(value) for value in risk if isinstance(value, float)]


def check_diversity(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    worst, farthest = math.inf, 0.0
    groups = [_secrets(group) for group in classes(shape, printed(con, shape), True)]
    whole = {s: sum(group.get(s, 0.0) for group in groups) for s in S}
    for group in groups:
        worst = min(worst, sum(group.values()) / max(group.values()))
        far = sum(abs(group.get(s, 0.0) / sum(group.values()) - whole[s] / sum(whole.values())) for s in S) / 2
        farthest = max(farthest, far)
    options = f"('{shape}_release', qi := ['a', 'g'], sensitive := 's')"
    told = dict(con.execute(f"from l_diversity{options}").fetchall())
    assert told["frequency"] == pytest.approx(worst)
    assert con.execute(f"select t from t_closeness{options}").fetchall()[0][0] == pytest.approx(farthest)


def _secrets(group: list[Row]) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for row in group:
        cell = row["s"]["s"] if isinstance(row["s"], dict) and "s" in row["s"] else row["s"]
        for value, share in values_of(cell).items():
            found[value] += share
    return found


def check_loss(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    if shape in ("rows", "retained", "buckets"):
        return  # replaced values cost nothing without row_id where there is no box; see its own tests
    rows = printed(con, shape)
    weights = [max(row.get("noisy_count", 1.0), 0.0) for row in rows]
    told = dict(con.execute(f"select attribute, ncp from information_loss('tiny', '{shape}_release')").fetchall())
    widths = [values_of(row["a"] if "a" in row else row["a_g"]["a"]) for row in rows]
    wanted = sum(w * (max(v) - min(v)) / 3 for w, v in zip(weights, widths, strict=True)) / sum(weights)
    assert told["a"] == pytest.approx(wanted)
    sets = [values_of(row["g"] if "g" in row else row["a_g"]["g"]) for row in rows]
    wanted = sum(w * (len(v) / 2 if len(v) > 1 else 0.0) for w, v in zip(weights, sets, strict=True)) / sum(weights)
    assert told["g"] == pytest.approx(wanted)


def check_k_map(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    fitting = [
        sum(a in values_of(row["a"]) and g in values_of(row["g"]) for a, g, _ in ORIGINAL)
        for row in printed(con, shape)
    ]
    k, unmatched, average, highest = con.execute(f"""select k, unmatched, average, highest
        from k_map('{shape}_release', 'tiny')""").fetchall()[0]
    assert (k, unmatched) == (min(fitting), fitting.count(0))
    assert highest == pytest.approx(1 / min(n for n in fitting if n))
    assert average == pytest.approx(sum(1 / n for n in fitting if n) / len(fitting))


Check = Callable[[duckdb.DuckDBPyConnection, str], None]
RIGHT: dict[str, Check] = {
    "correlation": check_correlation, "distribution_distance": check_distribution_distance,
    "relative_error": check_queries, "cube_error": check_cube, "rewrite_query": check_rewritten,
    "workload_error": check_workload, "k_anonymity": check_sizes, "l_diversity": check_diversity,
    "information_loss": check_loss, "k_map": check_k_map,
}  # fmt: skip
"""k_anonymity stands for the measures of classes, l_diversity for t too."""
