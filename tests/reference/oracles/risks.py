"""What measures say of classes and their persons, on a release of every shape, against loops over printed rows."""

import math
from collections import defaultdict
from collections.abc import Callable

import duckdb
import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from tests.reference.answers import answered
from tests.reference.diversity_of_sets import kl_diversity, km_anonymity
from tests.reference.tiny_releases import ORIGINAL, Row, cell, covers, printed, values_of

QI = ("a", "g")


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


def groups(shape: str, rows: list[Row]) -> list[list[Row]]:
    """Classes nobody can look inside: equal printed quasi-identifiers, or a bucket of slices."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row, _ in present(shape, rows):
        found[str(row["bucket"] if shape == "sliced" else (row["a"], row["g"]))].append(row)
    return list(found.values())


def check_distortion(con: duckdb.DuckDBPyConnection, shape: str) -> None:
    rows = printed(con, shape)
    weights = [max(row.get("noisy_count", 1.0), 0.0) for row in rows]
    wanted = {}
    for place, name in enumerate(QI):
        lifted = [
            0.0
            if shape == "sliced"
            else float(set(values_of(cell(row, name))) != {ORIGINAL[i][place]})
            if not isinstance(cell(row, name), (dict, list))
            else float(len(values_of(cell(row, name))) > 1)
            for i, row in enumerate(rows)
        ]
        wanted[name] = float(np.average(lifted, weights=weights))
    told = con.execute(f"select attribute, distortion_ratio from distortion_ratio('tiny', '{shape}_linked')").fetchall()
    assert dict(told) == pytest.approx({**wanted, "(all)": np.mean(list(wanted.values()))})


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


SEEDS = 30


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
RIGHT: dict[str, Check] = {
    "distortion_ratio": check_distortion, "kl_diversity": check_kl, "km_anonymity": check_km,
    "classification_accuracy": check_classification,
}  # fmt: skip
