"""What an insider finds in muco's releases, and what they are worth, on seven tables.

    PYTHONPATH=. python examples/studies/insider.py [--data FOLDER] [--seeds 3] [--delta 10] [--tables census,adult]
        [--least 14] [--call 'repair := false']

FOLDER holds census.csv, adult.csv, visits.csv and arx/adult.csv; fair and randhie come with statsmodels where it is
installed. The attack (`tests/reference/insider.py`) knows the groups and the quasi-identifiers of all individuals,
learns P(sensitive | quasi-identifiers) from the release alone and deals rows to individuals one to one. The strongest
of its variants is shown, for all individuals and for those of the smallest groups (the least sizes that hold 5% of
the rows). Error: mean relative error of SUM on four random quasi-identifiers (half-domain predicates) and of COUNT on
three and the sensitive column, 400 queries each; and the score of all three-way marginals.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from frontier import Source, run, score, sum_error, tables

import duckdb_anon
from duckdb_anon.methods import muco
from duckdb_anon.model.coded_table import CodedTable
from tests.reference.insider import binned, found_by_insider, smallest_groups

HEAD = ("least", "mean", "SUM", "COUNT", "score", "insider", "smallest", "in largest", "s")


def more_tables(folder: Path) -> list[Source]:
    """Those of `frontier.py`, and two more."""
    found = tables(folder)
    if (folder / "arx" / "adult.csv").exists():
        rows = pd.read_csv(folder / "arx" / "adult.csv", sep=";")
        qi = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
        nominal = frozenset((*qi, "salary-class")) - {"age"}
        rows["high"] = (rows["salary-class"] == ">50K").astype(int)
        found.append(Source("arx", rows, qi, nominal, "salary-class", "high"))
    if (folder / "visits.csv").exists():
        rows = pd.read_csv(folder / "visits.csv", dtype={"diagnosis": str}).drop_duplicates("person_id")
        qi = ("month_of_birth", "year_of_birth", "race", "years_of_education")
        found.append(Source("visits", rows.reset_index(drop=True), qi, frozenset(("race",)), "income", "income"))
    rows = duckdb_anon.connect().execute("from anon_sample('census', seed := 1)").df()
    nominal = frozenset(("gender", "relationship", "marital_status", "race", "education"))
    found.append(Source("sample", rows, tuple(rows.columns[:-1]), nominal, "salary", "salary"))
    return found


def count_error(table: CodedTable, published: list[Any], seed: int, queries: int = 400) -> float:
    """Mean relative error of COUNT over half of the domain of three quasi-identifiers and the sensitive column."""
    rng, errors = np.random.default_rng(seed + 1000), []
    columns = [*table.qi, table.sensitive[0]]
    for _ in range(20 * queries):
        true = np.ones(table.rows, dtype=bool)
        told = true.copy()
        for q in (*rng.choice(len(table.qi), 3, replace=False), len(table.qi)):
            own = columns[q]
            chosen = np.zeros(own.domain, dtype=bool)
            half = -(-own.domain // 2)
            if own.kind == "ordered":
                low = rng.integers(0, own.domain - half + 1)
                chosen[low : low + half] = True
            else:
                chosen[rng.permutation(own.domain)[:half]] = True
            true &= chosen[own.codes]
            told &= chosen[(published[q] if q < len(table.qi) else own.codes)]
        if true.any():
            errors.append(abs(told.sum() / true.sum() - 1))
        if len(errors) == queries:
            break
    return float(np.mean(errors))


def measured(source: Source, seed: int, given: dict[str, Any], attacked: bool) -> list[float]:
    """Figures of one release, in the order of `HEAD`."""
    table, summed = source.part(seed, 1.0)
    rng = np.random.default_rng(seed)
    start = time.process_time()
    published, group = run(muco.METHOD, table, rng, **given)
    took = time.process_time() - start
    assert group is not None
    sizes = np.bincount(group)
    worth = [
        sizes.min(), sizes.mean(), sum_error(table, summed, published, seed), count_error(table, published, seed),
        score(table, published),
    ]  # fmt: skip
    risk = [np.nan, np.nan]
    if attacked:
        second = replace(table, qi=tuple(replace(a, codes=c) for a, c in zip(table.qi, published, strict=True)))
        again, _ = run(muco.METHOD, second, rng, **given)
        own = table.sensitive[0]
        found = found_by_insider(
            [a.codes for a in table.qi], published, again, [a.kind == "nominal" for a in table.qi], group,
            binned(own.codes, own.kind == "nominal"), seed,
        )  # fmt: skip
        few = smallest_groups(group)
        risk = [max(f.mean() for f in found.values()), max(f[few].mean() for f in found.values())]
    return [float(v) for v in (*worth, *risk, sizes.max() / table.rows, took)]


def main() -> None:
    """Print a table a delta."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[3] / "shared" / "data")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--delta", type=int, nargs="+", default=[10])
    parser.add_argument("--tables", default="")
    parser.add_argument("--least", type=int, help="least group, in place of muco's own")
    parser.add_argument("--not-repaired", action="store_true")
    parser.add_argument("--l", type=float)
    parser.add_argument("--no-attack", action="store_true")
    options = parser.parse_args()
    if options.least:
        muco.least_size = lambda params: options.least
    given: dict[str, Any] = {"repair": False} if options.not_repaired else {}
    given |= {"l": options.l} if options.l else {}
    for k in options.delta:
        print(
            f"\ndelta 1/{k} {given or ''} mean of {options.seeds} seeds\n{'':10s}" + "".join(f"{h:>11s}" for h in HEAD)
        )
        for source in more_tables(options.data):
            if options.tables and source.name not in options.tables.split(","):
                continue
            figures = [
                measured(source, s, {"delta": 1 / k} | given, not options.no_attack) for s in range(options.seeds)
            ]
            print(f"{source.name:10s}" + "".join(f"{v:11.4f}" for v in np.mean(figures, axis=0)), flush=True)


if __name__ == "__main__":
    main()
