"""Tables that other tools anonymized, judged like releases of this package: one table for adult.

    PYTHONPATH=. python examples/studies/others.py [--data FOLDER] [--rows 12000] [--targets 1000]

Half of the rows are released, the other half are the hold-out. The tables are made here by plain means, as CSV files
without row_id, comment or description, and read back as a data holder would read those of the tools:

* recoding: ARX's output; age in intervals of 20 years, hours in intervals of 20, education and marital status masked to
  their first letters, all quasi-identifiers of records in classes below 5 suppressed ('*'). Records keep their order.
* microaggregation: sdcMicro's; age and hours averaged over groups of 5 along the first principal component, education
  suppressed (NULL) where the names of a record are shared by fewer than 3. Records keep their order.
* CART synthesis: synthpop's; column by column, values drawn from the leaf of a tree on the columns before. No record
  is anybody's.

Identity is measured where records keep their order. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

import duckdb_anon

QI = ["age", "workclass", "education", "marital_status", "race", "sex", "hours_per_week"]
NAMES, SENSITIVE = [name for name in QI if name not in ("age", "hours_per_week")], "occupation"
HEAD = ("identity", "attribute", "hold-out", "inference", "linkability", "singled", "AUC", "tpr 1%", "closest",
        "others", "query", "s")  # fmt: skip
Frame = pd.DataFrame


def recoding(rows: Frame, rng: np.random.Generator) -> Frame:
    """Global recoding to intervals and masked texts; whole records are suppressed in classes below 5."""
    found = rows.copy()
    for name in ("age", "hours_per_week"):
        low = rows[name] // 20 * 20
        found[name] = "[" + low.astype(str) + ", " + (low + 20).astype(str) + "["
    for name, letters in (("education", 1), ("marital_status", 2)):
        found[name] = rows[name].str[:letters] + "*"
    found[["workclass", "race"]] = "*"
    size = found.groupby(QI)[SENSITIVE].transform("size")
    found.loc[size < 5, QI] = "*"
    return found


def microaggregation(rows: Frame, rng: np.random.Generator) -> Frame:
    """Means of 5 records along the first principal component, and local suppression of rare combinations of names."""
    found = rows.copy()
    numbers = rows[["age", "hours_per_week"]].to_numpy(dtype=float)
    scaled = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    order = np.argsort(scaled @ np.linalg.svd(scaled, full_matrices=False)[2][0], kind="stable")
    group = np.empty(len(rows), dtype=int)
    group[order] = np.minimum(np.arange(len(rows)) // 5, len(rows) // 5 - 1)
    for name in ("age", "hours_per_week"):
        found[name] = rows.groupby(group)[name].transform("mean")
    rare = rows.groupby(NAMES)[SENSITIVE].transform("size") < 3
    found.loc[rare, "education"] = None
    return found


def synthesis(rows: Frame, rng: np.random.Generator) -> Frame:
    """Each column drawn from the leaf of a tree on the columns before it; leaves have 5 records or more."""
    found = {QI[0]: rng.choice(rows[QI[0]].to_numpy(), len(rows))}
    for name in [*QI[1:], SENSITIVE]:
        before = list(found)
        encoder = OrdinalEncoder().fit(rows[before])
        tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=int(rng.integers(2**31)))
        tree.fit(encoder.transform(rows[before]), rows[name].astype(str))
        donors = tree.apply(encoder.transform(rows[before]))
        leaves = tree.apply(encoder.transform(pd.DataFrame(found)))
        order = np.argsort(donors, kind="stable")
        first, end = (np.searchsorted(donors[order], leaves, side=side) for side in ("left", "right"))
        drawn = first + np.floor(rng.random(len(rows)) * (end - first)).astype(int)
        found[name] = rows[name].to_numpy()[order[drawn]]
    return pd.DataFrame(found)


MADE: dict[str, tuple[Callable[[Frame, np.random.Generator], Frame], bool, bool]] = {
    "recoding": (recoding, True, True),
    "microaggregation": (microaggregation, True, True),
    "CART synthesis": (synthesis, False, False),
}
"""What makes each table, whether it has generalized or suppressed cells, and whether records keep their order."""


def judged(con: duckdb.DuckDBPyConnection, targets: int) -> list[float | None]:
    """Figures of the table `release`, in the order of `HEAD`."""
    roles = f"qi := {QI}, sensitive := '{SENSITIVE}', seed := 1"
    calls = (
        f"select identity, advantage, baseline from linkage_risk('people', 'release', {roles}, targets := {targets}, "
        "holdout := 'others') where attacker = 'strongest'",
        f"select risk from inference('people', 'release', {roles}, attacks := {targets}, holdout := 'others')",
        f"select risk from linkability('people', 'release', {roles}, attacks := {targets}, holdout := 'others')",
        f"select risk from singling_out('people', 'release', {roles}, mode := 'multivariate', holdout := 'others')",
        "select max(auc), max(tpr_at_1_fpr), max(closest), max(closest_others) from membership_risk('people', "
        f"'release', qi := {QI}, seed := 1, targets := {targets}, holdout := 'others')",
        f"select avg(abs(relative_error)) from workload_error('people', 'release', {roles}, n := 200, dims := 2, "
        "predicate_on_sensitive := true)",
    )
    start = time.perf_counter()
    figures = [value for call in calls for value in con.execute(call).fetchall()[0]]
    return [*figures, time.perf_counter() - start]


def main() -> None:
    """Make, read and judge each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[3] / "shared" / "data")
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--targets", type=int, default=1000)
    given = parser.parse_args()
    con, rng = duckdb_anon.connect(), np.random.default_rng(1)
    con.execute(
        f"create table everybody as select {', '.join([*QI, SENSITIVE])} from read_csv('{given.data / 'adult.csv'}') "
        f"where workclass is not null and occupation is not null using sample {given.rows} rows (reservoir, 1)"
    )
    for name, half in (("people", 0), ("others", 1)):
        con.execute(f"create table {name} as from everybody where rowid % 2 = {half}")
    rows = con.execute("from people").df()
    print(f"adult, {len(rows):,} rows released, {given.targets:,} targets\n{'':18}" + "".join(f"{h:>12}" for h in HEAD))
    with tempfile.TemporaryDirectory() as folder:
        for name, (make, generalized, ordered) in MADE.items():
            file = Path(folder) / "released.csv"
            make(rows, rng).to_csv(file, index=False)
            read = (
                f"read_generalized('people', '{file}', qi := {QI}, row_id := {ordered})" if generalized else f"'{file}'"
            )
            con.execute(f"create or replace table release as from {read}")
            show(name, judged(con, given.targets))
    for call in ("muco(0.1)", "mondrian(10)"):
        method, argument = call[:-1].split("(")
        con.execute(
            f"create or replace table release as from {method}('people', {argument}, qi := {QI}, "
            f"sensitive := '{SENSITIVE}', row_id := true, seed := 7)"
        )
        show(call, judged(con, given.targets))


def show(name: str, figures: list[float | None]) -> None:
    """One row of the table."""
    print(f"{name:18}" + "".join(f"{'-':>12}" if v is None else f"{v:12.3f}" for v in figures), flush=True)


if __name__ == "__main__":
    main()
