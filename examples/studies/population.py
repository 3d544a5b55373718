"""How good are estimates of population uniqueness? Samples of known populations, estimates against the truth.

census (40,152 rows) and adult (30,162 rows without missing values) are taken as whole populations; samples of 1, 5, 10
and 20% are drawn, five of each, and every model estimates the number of population uniques from the sample alone.
Beside them stands the decision rule of Dankar et al. (2012) as ARX applies it: Pitman up to 10%, Zayatz where that
does not converge; above, the smaller of Zayatz and the slide negative binomial. All seven columns of census are left
out: its makers removed duplicates on them, so everybody is unique. Two more tables, by which nothing was chosen, come
with statsmodels where it is installed.

    python examples/studies/population.py FOLDER     # with census.csv and adult.csv
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from duckdb_anon.kernels import uniqueness

CENSUS = ["RELATE", "SEX", "AGE", "MARST", "RACE", "EDUC"]
ADULT = ["age", "sex", "race", "marital_status", "education", "native_country", "workclass", "hours_per_week"]
FAIR = ["age", "educ", "occupation", "occupation_husb", "yrs_married", "children", "religious", "rate_marriage"]
RANDHIE = ["lpi", "disea", "physlm", "fmde", "lncoins", "hlthg", "idp"]
MODELS = ("pitman", "zayatz", "snb", "poisson", "rule", "best")
FRACTIONS = (0.01, 0.05, 0.1, 0.2)
SAMPLES = 5


def decision_rule(found: dict[str, float], fraction: float) -> float:
    if fraction <= 0.1:
        return found["pitman"] if np.isfinite(found["pitman"]) else found["zayatz"]
    return min(found["zayatz"], found["snb"]) if np.isfinite(found["snb"]) else found["zayatz"]


def estimates(codes: list[np.ndarray], class_of_row: np.ndarray, fraction: float) -> dict[str, float]:
    _, numbers, sizes = np.unique(class_of_row, return_inverse=True, return_counts=True)
    found = {name: getattr(uniqueness, name)(sizes, fraction) for name in ("pitman", "zayatz", "snb")}
    found["poisson"] = uniqueness.poisson(codes, numbers, sizes, fraction)
    most = float((sizes == 1).sum()) / fraction
    return {**found, "best": min(uniqueness.best(found)[0], most), "rule": min(decision_rule(found, fraction), most)}


def ratios(table: pd.DataFrame, columns: list[str], samples: int = SAMPLES) -> list[tuple[float, dict[str, float]]]:
    """(fraction, estimate over truth by model), the geometric mean over the samples."""
    codes = [pd.factorize(table[column].astype(str))[0].astype(np.int32) for column in columns]
    _, class_of_row, sizes = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True, return_counts=True)
    truth = float((sizes == 1).sum())
    rng = np.random.default_rng(1)
    result = []
    for fraction in FRACTIONS:
        drawn = [rng.choice(len(table), round(len(table) * fraction), replace=False) for _ in range(samples)]
        each = [estimates([c[rows] for c in codes], class_of_row.ravel()[rows], fraction) for rows in drawn]
        mean = {
            name: float(np.exp(np.mean([np.log((one[name] + 0.5) / (truth + 0.5)) for one in each])))
            for name in each[0]
        }
        result.append((fraction, mean))
    return result


def new_tables() -> list[tuple[str, pd.DataFrame, list[str]]]:
    """Tables by which no model was chosen, where statsmodels is installed."""
    try:
        from statsmodels.datasets import fair, randhie
    except ImportError:
        print("statsmodels is not installed: the two tables by which nothing was chosen are left out")
        return []
    return [
        *(("fair", fair.load_pandas().data, FAIR[:k]) for k in (8, 7, 6, 5)),
        *(("randhie", randhie.load_pandas().data, RANDHIE[:k]) for k in (7, 5, 4, 3)),
    ]


def tables(folder: Path) -> list[tuple[str, pd.DataFrame, list[str]]]:
    census, adult = pd.read_csv(folder / "census.csv"), pd.read_csv(folder / "adult.csv").dropna()
    return [
        *(("census", census, CENSUS[:k]) for k in (6, 5, 4, 3)),
        *(("adult", adult, ADULT[:k]) for k in (8, 7, 6, 5, 4)),
    ]


def show(title: str, some: list[tuple[str, pd.DataFrame, list[str]]]) -> None:
    errors: dict[str, list[float]] = {}
    print(f"{title}\n| table | columns | sample | " + " | ".join(MODELS))
    for name, table, columns in some:
        for fraction, mean in ratios(table, columns):
            print(f"| {name} | {len(columns)} | {fraction:.0%} | " + " | ".join(f"{mean[n]:.2f}" for n in MODELS))
            for model, value in mean.items():
                errors.setdefault(model, []).append(value)
    for model in MODELS if errors else ():
        logs = np.abs(np.log(errors[model]))
        span = f"{np.nanmin(errors[model]):.2f} to {np.nanmax(errors[model]):.2f}"
        print(
            f"{model}: {span} times the truth, off by a factor of"
            f" {np.exp(np.nanmean(logs)):.2f} on average; does not fit in {int(np.isnan(logs).sum())}"
        )


def main() -> None:
    show("the tables by which `best` was chosen", tables(Path(sys.argv[1])))
    show("tables by which nothing was chosen", new_tables())


if __name__ == "__main__":
    main()
