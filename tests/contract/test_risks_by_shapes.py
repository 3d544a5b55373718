"""What measures say of persons and their rows, on a release of every shape, against loops over the printed rows."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import duckdb_anon
from duckdb_anon.model.entries import PureSql, Report
from duckdb_anon.registry import MEASURES
from tests.reference.tiny_releases import (
    NAMES,
    ORIGINAL,
    A,
    G,
    Row,
    S,
    carried,
    cell,
    covers,
    fill,
    printed,
    values_of,
)

ANSWERS = {entry.name: entry.answers for entry in MEASURES if isinstance(entry, (Report, PureSql))}
QI = ("a", "g")


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb_anon.connect()
    fill(connection)
    yield connection
    connection.close()


def answered(con: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    cursor = con.execute(sql)
    names = [d[0] for d in cursor.description]
    return dict(zip(names, cursor.fetchall()[0], strict=True))


def check_disclosure(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows, p = printed(con, shape), 0.6
    identity, attribute = [], []
    for t, (a, g, s) in enumerate(ORIGINAL):
        found = carries = 0.0
        for known in ({"a": a}, {"g": g}, {"a": a, "g": g}):
            weight = p ** len(known) * (1 - p) ** (2 - len(known)) / (1 - (1 - p) ** 2)
            some = [i for i, row in enumerate(rows) if all(covers(row, n, v) for n, v in known.items())]
            if some:
                found += weight * (t in some) / len(some)
                carries += weight * sum(carried(rows[i], s) for i in some) / len(some)
        identity.append(found)
        attribute.append(carries)
    told = answered(con, f"from disclosure('tiny', '{shape}_linked', p_match := {p})")
    assert told["identity"] == pytest.approx(np.mean(identity))
    assert told["attribute"] == pytest.approx(np.mean(attribute))
    assert told["identity_highest"] == pytest.approx(max(identity))
    assert told["attribute_highest"] == pytest.approx(max(attribute))


def mismatch(row: Row, a: int, g: str) -> float:
    """The exact attacker's score of a row, turned round."""
    return 0.0 if covers(row, "a", a) and covers(row, "g", g) else 1.0


def distance(row: Row, a: int, g: str) -> float:
    """The nearest attacker's: a in shares of its range of 3, g in 0 and 1."""
    low, high = min(values_of(cell(row, "a"))), max(values_of(cell(row, "a")))
    return max(low - a, a - high, 0) / 3 + (not covers(row, "g", g))


def check_linkage(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows = printed(con, shape)
    unit = [row["bucket"] if shape == "sliced" else i for i, row in enumerate(rows)]
    weight = [max(row.get("noisy_count", 1.0), 0.0) for row in rows]
    for attacker, far in (("exact", mismatch), ("nearest", distance)):
        identity = attribute = 0.0
        for t, (a, g, s) in enumerate(ORIGINAL):
            best: dict[Any, float] = defaultdict(lambda: math.inf)
            for row, mine in zip(rows, unit, strict=True):
                best[mine] = min(best[mine], far(row, a, g))
            chosen = [i for i, mine in enumerate(unit) if best[mine] <= min(best.values()) + 1e-12]
            identity += (t in chosen) / len(chosen)
            votes = {v: sum(weight[i] * carried(rows[i], v) for i in chosen) for v in S}
            most = [v for v in S if votes[v] > 0 and votes[v] >= max(votes.values()) - 1e-12]
            attribute += (s in most) / max(len(most), 1)
        told = answered(con, f"from linkage_risk('tiny', '{shape}_linked', attackers := ['{attacker}'])")
        assert told["attribute"] == pytest.approx(attribute / 8), attacker
        assert told["identity"] == (None if shape == "counts" else pytest.approx(identity / 8)), attacker


def present(shape: str, rows: list[Row]) -> list[tuple[Row, int]]:
    """Rows that are taken to be there, and how many each stands for."""
    counts = [math.floor(row.get("noisy_count", 1.0) + 0.5) for row in rows]
    return [(row, n) for row, n in zip(rows, counts, strict=True) if n >= 1]


def linked(shape: str, rows: list[Row], a: int, g: str) -> dict[str, float]:
    """How surely a release links a person to each sensitive value."""
    found: dict[str, float] = defaultdict(float)
    if shape == "sliced":
        for bucket in {row["bucket"] for row in rows}:
            mates = [row for row in rows if row["bucket"] == bucket]
            shown = sum(covers(row, "a", a) and covers(row, "g", g) for row in mates) / len(mates)
            for row in mates:
                found[cell(row, "s")] += shown / len(mates)
    else:
        for row, n in present(shape, rows):
            for value, share in values_of(cell(row, "s")).items():
                if covers(row, "a", a) and covers(row, "g", g):
                    found[value] += n * share
    total = sum(found.values())
    return {value: share / total for value, share in found.items() if share > 0}


def check_composition(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows, boxes = printed(con, shape), printed(con, "boxes")
    for weighted in (False, True):
        true = total = 0.0
        alone = 0
        for a, g, s in ORIGINAL:
            one, other = linked(shape, rows, a, g), linked("boxes", boxes, a, g)
            both = {v: one[v] * other[v] if weighted else 1.0 for v in set(one) & set(other)}
            true, total = true + both.get(s, 0.0), total + sum(both.values())
            alone += set(both) == {s}
        told = answered(
            con, f"from composition_risk('{shape}_release', 'boxes_release', 'tiny', weighted := {weighted})"
        )
        assert told["true_matches"] == pytest.approx(true)
        assert told["false_matches"] == pytest.approx(total - true)
        assert told["singled_out"] == alone
        assert told["privacy_risk"] == pytest.approx(100 * true / total if total else 0)


def groups(shape: str, rows: list[Row]) -> list[list[Row]]:
    """Classes nobody can look inside: equal printed quasi-identifiers, or a bucket of slices."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row, _ in present(shape, rows):
        found[str(row["bucket"] if shape == "sliced" else (row["a"], row["g"]))].append(row)
    return list(found.values())


def check_pairs_of_classes(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    triples = true = 0
    single = 0
    for one, other in itertools.product(groups(shape, printed(con, shape)), groups("boxes", printed(con, "boxes"))):

        def may(group: list[Row], name: str, value: Any) -> bool:
            return any(covers(row, name, value) for row in group)

        def holds(group: list[Row]) -> set[str]:
            return {v for v in S if any(carried(row, v) > 0 for row in group)}

        if not all(any(may(one, n, v) and may(other, n, v) for v in domain) for n, domain in (("a", A), ("g", G))):
            continue
        shared = holds(one) & holds(other)
        here = {
            s
            for a, g, s in ORIGINAL
            if s in shared
            and all(any(covers(row, "a", a) and covers(row, "g", g) for row in group) for group in (one, other))
        }
        triples, true = triples + len(shared), true + len(here)
        single += len(shared) == 1 and bool(here)
    told = answered(con, f"from composition_risk('{shape}_release', 'boxes_release', 'tiny', unit := 'ec_pair')")
    assert (told["true_matches"], told["false_matches"]) == (true, triples - true)
    assert told["singled_out"] == single


def check_slicing_diversity(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows = printed(con, shape)
    worst = [max(linked(shape, rows, a, g).values(), default=0.0) for a, g, _ in ORIGINAL]
    told = answered(con, f"from slicing_diversity('tiny', '{shape}_release')")
    matched = [p for p in worst if p > 0]
    assert told["matched"] == len(matched)
    assert told["highest"] == pytest.approx(max(matched))
    assert told["average"] == pytest.approx(np.mean(matched))
    assert told["l"] == pytest.approx(1 / max(matched))


def check_distortion(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows = printed(con, shape)
    weights = [max(row.get("noisy_count", 1.0), 0.0) for row in rows]
    wanted = {}
    for place, name in enumerate(QI):
        lifted = [
            0.0
            if shape == "sliced"
            else float(set(values_of(cell(row, name))) != {cell_of(i, place)})
            if not isinstance(cell(row, name), (dict, list))
            else float(len(values_of(cell(row, name))) > 1)
            for i, row in enumerate(rows)
        ]
        wanted[name] = float(np.average(lifted, weights=weights))
    told = con.execute(f"select attribute, distortion_ratio from distortion_ratio('tiny', '{shape}_linked')").fetchall()
    assert dict(told) == pytest.approx({**wanted, "(all)": np.mean(list(wanted.values()))})


def cell_of(i: int, place: int) -> Any:
    """What the original has where a released row comes from."""
    return ORIGINAL[i][place]


def check_kl(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows = printed(con, shape)
    persons = [(str((row["a"], row["g"])), (row["s"],)) for row in rows]
    told = answered(con, f"from kl_diversity('{shape}_release', qi := ['a', 'g'], sensitive := 's')")
    assert told == pytest.approx(kl_diversity(persons))


def check_km(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows = printed(con, shape)
    persons = [(str((row["a"], row["g"])), (row["s"],)) for row in rows]
    call = f"km_anonymity('{shape}_release', qi := ['a', 'g'], sensitive := 's', m := 3)"
    assert con.execute(f"from {call}").fetchall() == km_anonymity(persons, 3)


def kl_diversity(persons: list[tuple[str, tuple[str, ...]]]) -> dict[str, float]:
    """Gong et al. 2017, definitions 1 to 5, one person at a time: (class, set of values)."""
    prints = Counter(frozenset(items) for _, items in persons)
    classes: dict[str, Counter[frozenset[str]]] = defaultdict(Counter)
    for group, items in persons:
        classes[group][frozenset(items)] += 1
    sizes = {group: sum(held.values()) for group, held in classes.items()}
    entropy = {
        group: math.exp(-sum(n / sizes[group] * math.log(n / sizes[group]) for n in held.values()))
        for group, held in classes.items()
    }
    return {
        "persons": len(persons), "classes": len(classes), "fingerprints": len(prints), "k": min(prints.values()),
        "frequency_l": min(sizes[group] / max(held.values()) for group, held in classes.items()),
        "distinct_l": min(map(len, classes.values())), "entropy_l": min(entropy.values()),
        "qi_risk": 1 / min(sizes.values()), "fingerprint_risk": 1 / min(prints.values()),
    }  # fmt: skip


def km_anonymity(persons: list[tuple[str, tuple[str, ...]]], m: int) -> list[tuple[int, int, int]]:
    """Poulis et al. 2013: size of a set of values, number of such sets in classes, least number who have one."""
    found: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for group, items in persons:
        for size in range(m + 1):
            found.update((group, some) for some in itertools.combinations(sorted(set(items)), size))
    sizes = sorted({len(some) for _, some in found})
    return [
        (
            size,
            sum(len(some) == size for _, some in found),
            min(n for (_, some), n in found.items() if len(some) == size),
        )
        for size in sizes
    ]


SEEDS = 60


def check_classification(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    """Folds and draws are random: the mean over seeds is that of an independent version, within 4.5 deviations."""
    call = f"classification_accuracy('tiny', '{shape}_linked', 's', folds := 2, seed := {{}}, min_leaf := 1)"
    told = [answered(con, f"from {call.format(seed)}")["accuracy"] for seed in range(SEEDS)]
    rng = np.random.default_rng(5)
    wanted = [classified(shape, printed(con, shape), rng) for _ in range(6 * SEEDS)]
    error = math.sqrt(np.var(told) / len(told) + np.var(wanted) / len(wanted))
    assert abs(np.mean(told) - np.mean(wanted)) <= 4.5 * error + 1e-9


def classified(shape: str, rows: list[Row], rng: np.random.Generator) -> float:
    """Accuracy of a tree that learns s on the released rows of one half of the records, on the other half."""
    features, labels, records = [], [], []
    for i, row in enumerate(rows):
        for _ in range(max(round(row.get("noisy_count", 1.0)), 0) if shape == "counts" else 1):
            low, high = min(values_of(cell(row, "a"))), max(values_of(cell(row, "a")))
            g, s = (str(rng.choice(list(v), p=list(v.values()))) for v in (values_of(cell(row, n)) for n in ("g", "s")))
            features.append([(low + high) / 2, g == "F", g == "M"])
            labels.append(s)
            records.append(-1 if shape == "counts" else i)
    fold = rng.permutation(8) % 2
    asked = [i for i in range(8) if i in records or shape == "counts"]
    right = []
    for k in (0, 1):
        train = [j for j, record in enumerate(records) if record < 0 or fold[record] != k]
        test = [i for i in asked if fold[i] == k]
        tree = DecisionTreeClassifier(min_samples_leaf=1, random_state=int(rng.integers(2**31)))
        tree.fit([features[j] for j in train], [labels[j] for j in train])
        guessed = tree.predict([[ORIGINAL[i][0], ORIGINAL[i][1] == "F", ORIGINAL[i][1] == "M"] for i in test])
        right.append(np.mean([guess == ORIGINAL[i][2] for guess, i in zip(guessed, test, strict=True)]))
    return float(np.mean(right))


Check = Callable[[duckdb.DuckDBPyConnection, str], None]
RIGHT: dict[str, tuple[str, Check]] = {
    "disclosure": ("disclosure", check_disclosure),
    "linkage_risk": ("linkage_risk", check_linkage),
    "composition_risk": ("composition_risk", check_composition),
    "composition_risk of classes": ("composition_risk", check_pairs_of_classes),
    "slicing_diversity": ("slicing_diversity", check_slicing_diversity),
    "distortion_ratio": ("distortion_ratio", check_distortion),
    "kl_diversity": ("kl_diversity", check_kl),
    "km_anonymity": ("km_anonymity", check_km),
    "classification_accuracy": ("classification_accuracy", check_classification),
}


@pytest.mark.parametrize("shape", NAMES)
@pytest.mark.parametrize("name", RIGHT)
def test_a_measure_is_right_wherever_it_answers(con: duckdb.DuckDBPyConnection, name: str, shape: str) -> None:
    measure, check = RIGHT[name]
    found = {"boxes", shape} if shape in ("sampled", "suppressed", "retained", "counts") else {shape}
    if found <= set(ANSWERS[measure]):
        check(con, shape)


# ---- releases of persons: a row a person, with a list of nodes for her set of values

TREE = {"x1": "X", "x2": "X", "y1": "Y", "y2": "Y"}
VISITS = [
    ("p", 1, "x1"),
    ("p", 1, "y1"),
    ("q", 2, "x2"),
    ("q", 2, "y1"),
    ("r", 3, "y1"),
    ("r", 3, "y2"),
    ("t", 4, "y2"),
]
PERSONS = [("p", (1, 2), ["X", "y1"]), ("q", (1, 2), ["X", "y1"]), ("r", (3, 4), ["Y"]), ("t", (3, 4), ["Y"])]


def leaves(node: str) -> list[str]:
    return [leaf for leaf, above in TREE.items() if node in (leaf, above, "*")]


def expected_visits() -> dict[tuple[int, str], float]:
    """Each node stands for one of her rows, any leaf below it as likely, whatever her age in the box is."""
    found: dict[tuple[int, str], float] = defaultdict(float)
    for _, (low, high), nodes in PERSONS:
        for node, a in itertools.product(nodes, range(low, high + 1)):
            for leaf in leaves(node):
                found[a, leaf] += 1 / (high - low + 1) / len(leaves(node))
    return found


@pytest.fixture(scope="module")
def visits() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb_anon.connect()
    connection.execute(
        "create table tree as select * from (values "
        + ", ".join(f"('{v}', '{p}', '*')" for v, p in TREE.items())
        + ") t(leaf, node, root)"
    )
    connection.execute("create table visits(p varchar, a integer, d varchar)")
    connection.executemany("insert into visits values (?, ?, ?)", VISITS)
    for column, role in {"p": "person", "a": "quasi", "d": "sensitive hierarchy=tree"}.items():
        connection.execute(f"comment on column visits.{column} is 'anon: {role}'")
    first = {person: i for i, (person, _, _) in reversed(list(enumerate(VISITS)))}
    rows = " union all ".join(
        f"select {{lower: {a[0]}, upper: {a[1]}}} as a, {nodes} as d, {first[p]}::bigint as row_id"
        for p, a, nodes in PERSONS
    )
    connection.execute(f"create table linked as {rows}")
    connection.execute("create table released as select a, d from linked")
    yield connection
    connection.close()


ROLES = "qi := ['a'], sensitive := 'd', hierarchies := {'d': 'tree'}"


def test_classes_of_persons_are_those_of_their_boxes(visits: duckdb.DuckDBPyConnection) -> None:
    assert visits.execute("from k_anonymity('released', qi := ['a'])").fetchall() == [(2,)]
    assert visits.execute("select classes from class_statistics('released', qi := ['a'])").fetchall() == [(2,)]
    sizes = visits.execute("select class_size from equivalence_classes('released', qi := ['a'])").fetchall()
    assert sizes == [(2,), (2,)]
    risk = answered(visits, "from reidentification_risk('released', qi := ['a'])")
    assert 0.5 in [value for value in risk.values() if isinstance(value, float)]
    persons = [(str(a), tuple(nodes)) for _, a, nodes in PERSONS]
    assert answered(visits, "from kl_diversity('released', ['a'], 'd')") == pytest.approx(kl_diversity(persons))
    assert visits.execute("from km_anonymity('released', ['a'], 'd', m := 2)").fetchall() == km_anonymity(persons, 2)
    raw = [
        (str(next(a for p, a, _ in VISITS if p == who)), tuple(d for p, _, d in VISITS if p == who)) for who in "pqrt"
    ]
    assert answered(visits, "from kl_diversity('visits', ['a'], 'd', person := 'p')") == pytest.approx(
        kl_diversity(raw)
    )
    assert visits.execute("from km_anonymity('visits', ['a'], 'd', m := 2, person := 'p')").fetchall() == km_anonymity(
        raw, 2
    )


def test_losses_of_persons_are_those_of_their_boxes_and_nodes(visits: duckdb.DuckDBPyConnection) -> None:
    told = dict(visits.execute(f"select attribute, ncp from information_loss('visits', 'linked', {ROLES})").fetchall())
    assert told["a"] == pytest.approx(1 / 3)
    told = dict(
        visits.execute(
            f"select attribute, distortion_ratio from distortion_ratio('visits', 'linked', {ROLES})"
        ).fetchall()
    )
    assert told["a"] == 1.0
    ncp = {
        who: [
            len(leaves(n)) / 4 if len(leaves(n)) > 1 else 0.0
            for d in (d for p, _, d in VISITS if p == who)
            for n in nodes
            if d in leaves(n)
        ]
        for who, _, nodes in PERSONS
    }
    per_item = [loss for found in ncp.values() for loss in found]
    assert len(per_item) == len(VISITS)
    assert answered(visits, f"from sa_ncp('visits', 'linked', {ROLES})")["sa_ncp"] == pytest.approx(np.mean(per_item))


def test_queries_on_persons_count_their_nodes(visits: duckdb.DuckDBPyConnection) -> None:
    table = expected_visits()
    for condition, kept in (
        ("a = 1", lambda a, d: a == 1),
        ("a <= 3 and d in ('x1', 'y1')", lambda a, d: a <= 3 and d in ("x1", "y1")),
        ("d = 'y2'", lambda a, d: d == "y2"),
    ):
        wanted = sum(w for (a, d), w in table.items() if kept(a, d))
        query = f"select count(*) as n from visits where {condition}"
        found = visits.execute("select estimate from relative_error($q, 'visits', 'released')", {"q": query}).fetchall()
        assert found == [(pytest.approx(wanted),)], condition
        sql = visits.execute("select rewrite_query($q, 'visits', 'released')", {"q": query}).fetchall()[0][0]
        counted = visits.execute(sql).fetchall()[0][0]
        assert counted == math.floor(wanted + 0.5), condition  # a count is a whole number, as in the query
    call = "workload_error('visits', 'released', 20, dims := 1, seed := 4, selectivity := 0.5, predicate_on_sensitive := true)"
    visits.execute("create or replace temp table worlds(a integer, d varchar, w double)")
    visits.executemany("insert into worlds values (?, ?, ?)", [(*key, w) for key, w in table.items()])
    found = visits.execute(f"select query, estimate from {call}").fetchall()
    assert found
    for query, value in found:
        where = query.split(" WHERE ")[1]
        wanted = visits.execute(f"select coalesce(sum(w), 0) from worlds where {where}").fetchall()[0][0]
        assert value == pytest.approx(wanted, abs=1e-9), query


def test_fragments_are_found_where_nodes_cover_them(visits: duckdb.DuckDBPyConnection) -> None:
    found = [1 / sum(any(value in leaves(node) for node in nodes) for _, _, nodes in PERSONS) for _, _, value in VISITS]
    told = answered(visits, f"from fragment_risk('visits', 'released', m := 1, {ROLES}, person := 'p')")
    assert told["max_risk"] == pytest.approx(max(found))
    assert told["mean_risk"] == pytest.approx(np.mean(found))


REFUSED = {
    "l_diversity": f"('released', {ROLES})",
    "t_closeness": f"('released', {ROLES})",
    "correlation": f"('released', columns := ['a', 'd'], {ROLES})",
    "distribution_distance": f"('visits', 'released', columns := ['a', 'd'], {ROLES})",
    "disclosure": f"('single', 'released', {ROLES})",
    "linkage_risk": f"('single', 'released', {ROLES})",
    "attribute_risk": f"('single', 'released', {ROLES})",
    "singling_out": f"('single', 'released', {ROLES})",
    "linkability": f"('single', 'released', columns_a := ['a'], columns_b := ['d'], {ROLES})",
    "inference": f"('single', 'released', {ROLES})",
    "membership_risk": f"('single', 'released', holdout := 'single', {ROLES})",
    "composition_risk": f"('released', 'released', 'single', {ROLES})",
    "slicing_diversity": f"('single', 'released', {ROLES})",
    "k_map": f"('released', 'single', {ROLES})",
    "delta_presence": f"('released', 'single', {ROLES})",
    "k_marginal": f"('single', 'released', {ROLES})",
    "propensity": f"('single', 'released', permutations := 1, {ROLES})",
    "unique_exact_matches": f"('single', 'released', {ROLES})",
    "apparent_matches": f"('single', 'released', {ROLES})",
    "correlation_comparison": f"('single', 'released', columns := ['a', 'd'], {ROLES})",
    "regression_comparison": f"('single', 'released', 'a', {ROLES})",
    "classification_accuracy": f"('single', 'released', 'd', {ROLES})",
}


def test_every_measure_is_right_on_persons_or_refused_here() -> None:
    taking = {
        entry.name: entry.answers
        for entry in MEASURES
        if isinstance(entry, PureSql)
        or (isinstance(entry, Report) and entry.reads == "tables" and len(entry.tables) > 1)
    }
    here = {"k_anonymity", "class_statistics", "kl_diversity", "km_anonymity", "information_loss", "distortion_ratio"}
    here |= {"sa_ncp", "fragment_risk", "workload_error", "reidentification_risk", "equivalence_classes"}
    assert {name for name, answers in taking.items() if "persons" in answers or "*" in answers} == here
    assert set(taking) - here <= set(REFUSED)


@pytest.mark.parametrize("name", REFUSED)
def test_measures_of_rows_refuse_releases_of_persons_by_name(visits: duckdb.DuckDBPyConnection, name: str) -> None:
    visits.execute("create or replace table single as select a, min(d) as d from visits group by p, a")
    with pytest.raises(duckdb.Error, match=f"{name}: .*has a row a person with a list of nodes.* does not read"):
        visits.execute(f"from {name}{REFUSED[name]}").fetchall()
