"""Differentially private rows: dp_synthesize, and MST of the same budget where `mbi` 2 is installed.

    python examples/studies/synthesis.py [--data FOLDER] [--seeds 2] [--epsilon 1 10] [--rows 1000000]

FOLDER holds census.csv and adult.csv. Domains are declared: bounds of numbers, all names. Error: mean relative error of
400 SUM queries over half of the domain of four quasi-identifiers; and the score of all three-way marginals
(`k_marginal`). `counts held`: share of 400 counts under one to four conditions that their intervals hold (randhie, in
whole numbers, where statsmodels is installed). Seconds are of the processor. `--rows` times dp_synthesize on so many
rows of census, drawn again.

MST (McKenna, Miklau and Sheldon, 2021): a third of rho for single columns, a third for the choice of a spanning tree of
pairs by the exponential mechanism, a third for its pairs; numbers in 32 bins of equal width, values uniform inside. Its
noise is numpy's, and there is no compression of rare values, so its figures are of utility alone.
"""

from __future__ import annotations

import argparse
import itertools
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

import duckdb_anon
from duckdb_anon.kernels.differential_privacy.noisy_histograms import rho_of

TABLES: dict[str, tuple[dict[str, list[int]], list[str], str]] = {
    "census": (
        {"AGE": [0, 100], "UHRSWORK": [0, 99], "INCWAGE": [0, 500_000]},
        ["RELATE", "SEX", "MARST", "RACE", "EDUC"], "INCWAGE",
    ),
    "adult": (
        {"age": [0, 100], "hours_per_week": [0, 99]},
        ["workclass", "education", "marital_status", "race", "sex", "native_country"], "hours_per_week",
    ),
    "randhie": (
        {"lncoins": [0, 500], "fmde": [0, 90], "disea": [0, 60], "mdvis": [0, 80]}, ["idp", "physlm", "hlthg"], "mdvis",
    ),
}  # fmt: skip
BINS, DELTA = 32, 1e-6


def mst(rows: pd.DataFrame, bounds: dict[str, list[int]], epsilon: float, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of a tree of noisy pairs, by `mbi`."""
    from mbi import Domain, LinearMeasurement, estimation

    codes, names = {}, {}
    for name in rows.columns:
        if name in bounds:
            low, high = bounds[name]
            codes[name] = np.clip((rows[name] - low) * BINS // (high - low + 1), 0, BINS - 1).to_numpy(dtype=int)
        else:
            codes[name], names[name] = pd.factorize(rows[name].astype(object).fillna("missing").astype(str), sort=True)
    domain = Domain(tuple(codes), tuple(len(names[c]) if c in names else BINS for c in codes))
    rho = rho_of(epsilon, DELTA)

    def noisy(cliques: list[tuple[str, ...]], share: float) -> list[Any]:
        sigma, found = float(np.sqrt(len(cliques) / (2 * share))), []
        for clique in cliques:
            counts = counted(codes, domain, clique)
            found.append(LinearMeasurement(counts + rng.normal(0, sigma, len(counts)), clique, sigma))
        return found

    singles = noisy([(name,) for name in codes], rho / 3)
    model = estimation.MirrorDescent().estimate(domain, singles)
    pairs, chosen = list(itertools.combinations(codes, 2)), []
    scores = np.array([
        np.abs(counted(codes, domain, pair) - np.asarray(model.project(pair).datavector())).sum() for pair in pairs
    ])  # fmt: skip
    step = np.sqrt(8 * rho / 3 / (len(codes) - 1))
    place = {name: k for k, name in enumerate(codes)}
    while len(chosen) < len(codes) - 1:
        links = np.zeros((len(codes),) * 2)
        for a, b in chosen:
            links[place[a], place[b]] = 1
        part = connected_components(links, directed=False)[1]
        open_pairs = [k for k, (a, b) in enumerate(pairs) if part[place[a]] != part[place[b]]]
        # by Gumbel noise, the exponential mechanism; a record changes a score by at most 1
        chosen.append(pairs[max(open_pairs, key=lambda k: scores[k] * step / 2 + rng.gumbel())])
    model = estimation.MirrorDescent().estimate(domain, singles + noisy(chosen, rho / 3))
    made = model.synthetic_data()
    drawn: dict[str, Any] = {}
    for name in codes:
        cells = np.asarray(made.data[name])
        if name in names:
            drawn[name] = np.asarray(names[name], dtype=object)[cells]
        else:
            low, high = bounds[name]
            drawn[name] = np.floor(low + (cells + rng.random(len(cells))) * (high - low + 1) / BINS).astype(int)
    return pd.DataFrame(drawn)[list(rows.columns)]


def counted(codes: dict[str, Any], domain: Any, clique: tuple[str, ...]) -> Any:
    """Rows of each cell of some columns."""
    sizes = [domain.size([name]) for name in clique]
    cells = np.ravel_multi_index([codes[name] for name in clique], sizes)
    return np.bincount(cells, minlength=int(np.prod(sizes))).astype(float)


def held(rows: pd.DataFrame, made: pd.DataFrame, rng: np.random.Generator) -> float:
    """Share of counts that `count_error` holds: ranges and halves of names, or single names, of one to four columns."""
    error, inside = made["count_error"].iloc[0], []
    for _ in range(400):
        kept = [np.ones(len(table), dtype=bool) for table in (rows, made)]
        names = rng.choice(rows.columns, rng.integers(1, 5), replace=False)
        wide = rng.integers(2)
        for name in names:
            if pd.api.types.is_numeric_dtype(rows[name]):
                low, high = np.sort(rng.choice(rows[name], 2))
                if wide:
                    width = (rows[name].max() - rows[name].min()) / 2
                    low = rows[name].min() + rng.random() * width
                    high = low + width
                found = [table[name].between(low, high).to_numpy() for table in (rows, made)]
            else:
                values = rows[name].unique()
                some = rng.choice(values, max(1, len(values) // 2), replace=False) if wide else [rng.choice(rows[name])]
                found = [table[name].isin(some).to_numpy() for table in (rows, made)]
            kept = [a & b for a, b in zip(kept, found, strict=True)]
        true, count = (int(k.sum()) for k in kept)
        variance = error["factor"] * count ** error["power"] * error["per_column"] ** len(names)
        inside += [abs(true - count) <= 1.96 * np.sqrt(variance)] * (count > 0)
    return float(np.mean(inside))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[3] / "shared" / "data")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0, 10.0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    for table, (bounds, nominal, summed) in TABLES.items():
        if table != "randhie":
            rows = pd.read_csv(given.data / f"{table}.csv")[[*nominal, *bounds]]
        elif find_spec("statsmodels") is None:
            continue
        else:
            from statsmodels.datasets import randhie

            scaled = randhie.load_pandas().data[[*nominal, *bounds]] * ([1, 1, 1, 100, 10, 1, 1])
            rows = scaled.round().astype(int)
        rows[nominal] = rows[nominal].fillna("missing").astype(str)
        con = duckdb_anon.connect()
        _create(con, "t", rows, summed)
        for epsilon in given.epsilon:
            for name in ("dp_synthesize", "mst"):
                errors, scores, seconds, shares = [], [], [], []
                for seed in range(given.seeds):
                    start = time.process_time()
                    if name == "mst":
                        try:
                            made = mst(rows, bounds, epsilon, np.random.default_rng(seed))
                        except ImportError:
                            continue
                        _create(con, "r", made, summed)
                    else:
                        _synthesize(con, "t", epsilon, bounds)
                        shares.append(held(rows, con.execute("from r").df(), np.random.default_rng(1)))
                    seconds.append(time.process_time() - start)
                    errors.append(con.execute(_ERROR.format(summed=summed)).fetchall()[0][0])
                    scores.append(
                        con.execute("select score from k_marginal('t', 'r', seed := 1) where k = 3").fetchall()[0][0]
                    )
                if errors:
                    error, score = np.mean(errors), np.mean(scores)
                    print(f"{table:8}{name:16}epsilon {epsilon:4g}  SUM {error:.4f}  3-way {score:6.1f}  "
                          f"{np.max(seconds):6.1f} s, at most"
                          + f"  counts held {np.mean(shares):.3f}" * bool(shares), flush=True)  # fmt: skip
        if table == "census" and given.rows:
            _create(con, "t", rows.sample(given.rows, replace=True, random_state=1), summed)
            start = time.process_time()
            _synthesize(con, "t", 1.0, bounds)
            print(f"{given.rows:,} rows: {time.process_time() - start:.1f} s of the processor", flush=True)


_ERROR = (
    "select avg(abs(relative_error)) from workload_error('t', 'r', n := 400, style := 'half', selectivity := 0.5, "
    "dims := 4, seed := 1, aggregate := 'sum(\"{summed}\")')"
)


def _synthesize(con: duckdb.DuckDBPyConnection, table: str, epsilon: float, bounds: dict[str, list[int]]) -> None:
    call = f"dp_synthesize('{table}', {epsilon}, bounds := {bounds})"
    con.execute(f"create or replace table r as from {call}")


def _create(con: duckdb.DuckDBPyConnection, name: str, rows: pd.DataFrame, sensitive: str) -> None:
    con.register("rows", rows)
    con.execute(f"create or replace table {name} as from rows")
    con.unregister("rows")
    for column in rows.columns:
        role = "sensitive" if column == sensitive else "quasi"
        con.execute(f"comment on column {name}.\"{column}\" is 'anon: {role}'")


if __name__ == "__main__":
    main()
