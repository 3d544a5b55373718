"""Lower error at lower risk: muco's default against its rivals, by what the strongest attacker finds.

    python examples/studies/frontier.py [--data FOLDER] [--out figures] [--seeds 3] [--targets 1000] [--quick]

FOLDER holds census.csv and adult.csv; two more tables, on which nothing was tuned, come with statsmodels where it is
installed. Every seed takes 80% of a table. Error: mean relative error of SUM queries with half-domain predicates on
four random quasi-identifiers; and the score of all three-way marginals, 1000 times 1 minus half their L1 distance, in
ten bins. Risk, of a person all of whose quasi-identifiers are known:

* outside: the likeliest released row is hers. Likelihood of values moving is learned without a secret, by
  running the same call on the release; ties share.
* insider: the same among the rows of her own group, which this attacker knows; and the best assignment of all members
  of the group at once (Hungarian method), whichever is higher, for every person of the table. "fair" is one over the
  group, on average.

Boxes enter as values drawn from them, slices row by row. Each target of frontier.md is printed with what came out;
after the tables stands what SSE groups do for slicing, merging and anatomy at the same l.

What was measured is in README.md of this folder, with the plot.
"""

from __future__ import annotations

import argparse
import itertools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import matplotlib
import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

import duckdb_anon
from duckdb_anon.kernels.permutation.permute_within_groups import permuted
from duckdb_anon.methods import microaggregate, mondrian, muco, rank_swap, slicing
from duckdb_anon.methods.microaggregate import mdav_groups
from duckdb_anon.model import released_columns
from duckdb_anon.model.coded_table import Attribute, CodedTable
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.function_specs import ColumnInfo, Method, Roles
from duckdb_anon.model.number_scale import Scale

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

Codes = list[np.ndarray[Any, Any]]
Released = tuple[Codes, np.ndarray[Any, Any] | None]
SHARE = 0.8
MARK = {"muco": "o", "MDAV": "s", "linear": "^", "mondrian": "D", "slicing": "v", "rank": "x", "micro": "+"}
# SUM error, score, outside and insider risk of frontier.md
TARGETS = {
    ("census", "muco 1/10"): (0.023, 979, 0.10, 0.085),
    ("census", "muco 1/20"): (0.028, 976, 0.055, 0.045),
    ("adult", "muco 1/10"): (0.042, 982, 0.10, 0.085),
    ("adult", "muco 1/20"): (0.052, 978, 0.055, 0.045),
}


@dataclass(frozen=True)
class Source:
    """A table: its columns, which are nominal, what is summed."""

    name: str
    rows: pd.DataFrame
    qi: tuple[str, ...]
    nominal: frozenset[str]
    sensitive: str
    summed: str

    def part(self, seed: int, share: float = SHARE) -> tuple[CodedTable, np.ndarray[Any, Any]]:
        """A sample of the rows as codes, and what is summed."""
        rows = self.rows.sample(frac=share, random_state=seed).reset_index(drop=True)
        qi = tuple(attribute(rows[name], name in self.nominal) for name in self.qi)
        secret = attribute(rows[self.sensitive], self.sensitive in self.nominal)
        return CodedTable(len(rows), qi, (secret,)), rows[self.summed].to_numpy(dtype=float)


def attribute(column: pd.Series[Any], nominal: bool) -> Attribute:
    """A column as codes; missing values are a value of their own where nominal."""
    if nominal:
        codes, values = pd.factorize(column.astype(object).fillna("missing").astype(str), sort=True)
        return coded(str(column.name), codes, np.arange(len(values), dtype=float), "nominal")
    values, codes = np.unique(column.to_numpy(dtype=float), return_inverse=True)
    return coded(str(column.name), codes, values, "ordered")


def coded(name: str, codes: Any, positions: Any, kind: Any) -> Attribute:
    """An attribute without NULLs."""
    first = np.zeros(len(positions), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return Attribute(
        name, kind, codes.astype(np.int32), positions, len(positions), -1, first, scale=Scale("real", positions)
    )


def tables(folder: Path) -> list[Source]:
    """Those that are there."""
    found = []
    if (folder / "census.csv").exists():
        found.append(Source(
            "census", pd.read_csv(folder / "census.csv"),
            ("RELATE", "SEX", "AGE", "MARST", "RACE", "EDUC", "UHRSWORK"),
            frozenset(("RELATE", "SEX", "MARST", "RACE", "EDUC")), "INCWAGE", "INCWAGE",
        ))  # fmt: skip
    if (folder / "adult.csv").exists():
        qi = ("age", "workclass", "education", "marital_status", "race", "sex", "native_country")
        rows = pd.read_csv(folder / "adult.csv")
        found.append(Source(
            "adult", rows, qi, frozenset((*qi[1:], "occupation")), "occupation", "hours_per_week"
        ))  # fmt: skip
    try:
        from statsmodels.datasets import fair, randhie
    except ImportError:
        print("statsmodels is not installed: the two tables nobody tuned on are left out")
        return found
    found.append(Source(
        "fair", fair.load_pandas().data, ("age", "yrs_married", "children", "religious", "educ", "occupation",
        "occupation_husb"), frozenset(("occupation", "occupation_husb")), "rate_marriage", "affairs",
    ))  # fmt: skip
    found.append(Source(
        "randhie", randhie.load_pandas().data, ("lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthg"),
        frozenset(("idp", "hlthg")), "mdvis", "mdvis",
    ))  # fmt: skip
    return found


def params(method: Method, **given: Any) -> dict[str, Any]:
    """Arguments of a call, as SQL would check them."""
    full = {p.name: p.check(method.name, given.get(p.name)) for p in method.parameters}
    return method.refine(full) if method.refine else full


def run(method: Method, table: CodedTable, rng: np.random.Generator, **given: Any) -> Released:
    """Released codes of each quasi-identifier, row i being row i's."""
    checked = params(method, **given)
    if method.resolve_params is not None:
        infos = [tuple(ColumnInfo(a.name, "", a.kind) for a in columns) for columns in (table.qi, table.sensitive)]
        checked |= method.resolve_params(Roles(infos[0], infos[1]), checked, lambda: table)
    made = method.release(table, checked, rng)
    rows = made[released_columns.ROWS].rows if released_columns.ROWS in made else None
    fields = dict(made)
    for name, each in made.items():
        if isinstance(each, released_columns.Struct):
            fields |= each.fields
        fields.setdefault(name, each)
    published = [values(a, fields[a.name], rng) for a in table.qi]
    if rows is not None and (rows != np.arange(table.rows)).any():
        back = np.argsort(rows)
        published = [codes[back] for codes in published]
    groups = muco.groups_of(table, checked) if method is muco.METHOD else None
    return published, groups


def values(own: Attribute, released: Any, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Codes a reader could take the cells for: boxes and sets by a draw from them, means by the nearest value."""
    if isinstance(released, released_columns.Coded):
        return released.codes
    if isinstance(released, released_columns.Source):
        return own.codes[released.rows]
    if isinstance(released, released_columns.Value):
        place = released.numbers[released.index]
        right = np.clip(np.searchsorted(own.positions, place), 1, max(1, own.domain - 1))
        nearer = place - own.positions[right - 1] <= own.positions[np.minimum(right, own.domain - 1)] - place
        return np.where(nearer, right - 1, right).clip(0, own.domain - 1).astype(np.int32)
    index = released.index
    if isinstance(released, released_columns.Interval):
        low, high = released.lower[index], released.upper[index]
        return (low + (rng.random(len(index)) * (high - low + 1)).astype(int)).astype(np.int32)
    start, end = released.offsets[index], released.offsets[index + 1]
    return np.asarray(released.codes[start + (rng.random(len(index)) * (end - start)).astype(int)], dtype=np.int32)


def mdav_permuted(table: CodedTable, rng: np.random.Generator, k: int) -> Released:
    """Columns permuted inside MDAV's clusters of k."""
    group = mdav_groups("study", table.qi, k)
    return [a.codes[rows] for a, rows in zip(table.qi, permuted(group, len(table.qi), rng), strict=True)], group


Call = Callable[[CodedTable, np.random.Generator], Released]


def calls(quick: bool) -> dict[str, Call]:
    """What is compared."""
    found: dict[str, Call] = {}
    for k in (10, 20) if quick else (5, 10, 14, 20, 30):
        found[f"muco 1/{k}"] = lambda t, g, k=k: run(muco.METHOD, t, g, delta=1 / k)
    found["muco 1/10, not repaired"] = lambda t, g: run(muco.METHOD, t, g, delta=0.1, repair=False)
    for k in (10,) if quick else (5, 10, 20):
        found[f"MDAV permuted, k = {k}"] = lambda t, g, k=k: mdav_permuted(t, g, k)
        found[f"mondrian k = {k}, drawn"] = lambda t, g, k=k: run(mondrian.METHOD, t, g, k=k, edges="tight")
        found[f"microaggregate k = {k}"] = lambda t, g, k=k: run(microaggregate.METHOD, t, g, k=k)
    for p in (5,) if quick else (2, 5, 15):
        found[f"rank_swap p = {p}"] = lambda t, g, p=p: run(rank_swap.METHOD, t, g, p=p)
    for level in (2,) if quick else (2, 3):
        found[f"slicing l = {level}"] = lambda t, g, level=level: run(
            slicing.METHOD, t, g, l=level, sensitive_column="alone"
        )
    return found


def linear(k: int) -> Call:
    """The paper's MuCo."""

    def call(t: CodedTable, g: np.random.Generator) -> Released:
        published, _ = run(muco.METHOD, t, g, delta=1 / k, tables="linear")
        return published, None

    return call


def sum_error(table: CodedTable, summed: Any, published: Codes, seed: int, queries: int = 400) -> float:
    """Mean relative error of SUM over half of the domain of four quasi-identifiers."""
    rng, errors = np.random.default_rng(seed), []
    while len(errors) < queries:
        true = np.ones(table.rows, dtype=bool)
        told = true.copy()
        for q in rng.choice(len(table.qi), 4, replace=False):
            own = table.qi[q]
            half = -(-own.domain // 2)
            chosen = np.zeros(own.domain, dtype=bool)
            if own.kind == "ordered":
                low = rng.integers(0, own.domain - half + 1)
                chosen[low : low + half] = True
            else:
                chosen[rng.permutation(own.domain)[:half]] = True
            true &= chosen[own.codes]
            told &= chosen[published[q]]
        if summed[true].sum() != 0:
            errors.append(abs(summed[told].sum() / summed[true].sum() - 1))
    return float(np.mean(errors))


def score(table: CodedTable, published: Codes) -> float:
    """1000 (1 - half the L1 distance), averaged over all three-way marginals."""
    columns = [*table.qi, *table.sensitive]
    bins = []
    for own in columns:
        counts = np.bincount(own.codes, minlength=own.domain)
        if own.domain <= 12:
            bins.append(np.arange(own.domain))
        elif own.kind == "nominal":
            bins.append(np.minimum(np.argsort(np.argsort(-counts, kind="stable")), 10))
        else:
            bins.append(((np.cumsum(counts) - counts / 2) * 10 // counts.sum()).astype(int))
    true = [b[own.codes] for b, own in zip(bins, columns, strict=True)]
    told = [b[codes] for b, codes in zip(bins, [*published, *(s.codes for s in table.sensitive)], strict=True)]
    found = []
    for chosen in itertools.combinations(range(len(columns)), 3):
        wide = [int(bins[c].max()) + 1 for c in chosen]
        counts = [
            np.bincount(np.ravel_multi_index([each[c] for c in chosen], wide), minlength=int(np.prod(wide)))
            for each in (true, told)
        ]
        found.append(1000 * (1 - np.abs(counts[0] - counts[1]).sum() / 2 / table.rows))
    return float(np.mean(found))


def risks(
    table: CodedTable, call: Call, released: Released, rng: np.random.Generator, targets: int
) -> tuple[float, float, float]:
    """Outside risk of some targets; insider risk of everybody and one over the size of her group on average (nan where
    groups are not the method's)."""  # noqa: D205, D209
    published, group = released
    again, _ = call(
        replace(table, qi=tuple(replace(a, codes=c) for a, c in zip(table.qi, published, strict=True))), rng
    )
    logs = []
    for own, first, second in zip(table.qi, published, again, strict=True):
        step = max(1, own.domain // 100)
        both = np.full(((own.domain - 1) // step + 1,) * 2, 0.02)
        np.add.at(both, (first // step, second // step), 1.0)
        both /= both.sum()
        log = np.log(both / both.sum(axis=1, keepdims=True) / both.sum(axis=0, keepdims=True))
        logs.append((step, log))
    chosen = rng.choice(table.rows, min(targets, table.rows), replace=False)
    everybody = np.arange(table.rows)

    def scores(t: int, rows: Any) -> Any:
        return sum(
            log[own.codes[t] // step, codes[rows] // step]
            for own, codes, (step, log) in zip(table.qi, published, logs, strict=True)
        )

    outside = np.mean([hit(scores(t, everybody), everybody, t) for t in chosen])
    if group is None:
        return float(outside), np.nan, np.nan
    members = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    guessed = assigned = 0.0
    for rows in members:
        every = np.stack([scores(m, rows) for m in rows])
        guessed += sum(hit(mine, rows, m) for m, mine in zip(rows, every, strict=True))
        # equal scores are told apart by chance, not by the order of rows
        first, second = rng.permutation(len(rows)), rng.permutation(len(rows))
        person, place = linear_sum_assignment(-every[first][:, second])
        assigned += float((first[person] == second[place]).sum())
    return float(outside), max(guessed, assigned) / table.rows, len(members) / table.rows


def hit(score_of_row: Any, rows: Any, target: int) -> float:
    """Her row among the likeliest, over their number."""
    best = rows[score_of_row >= score_of_row.max() - 1e-9]
    return float((best == target).sum() / len(best))


def compare(source: Source, seeds: int, targets: int, quick: bool) -> dict[str, list[float]]:
    """Print and return the mean of all measures of every method."""
    every = calls(quick) | {f"linear 1/{k}, paper's setting": linear(k) for k in ((5,) if quick else (5, 10))}
    print(f"\n{source.name}: {len(source.rows)} rows, {len(source.qi)} quasi-identifiers, mean of {seeds} seed(s)")
    print(f"{'method':32s} {'SUM error':>9s} {'score':>7s} {'outside':>8s} {'insider':>8s} {'fair':>7s} {'s':>6s}")
    found: dict[str, list[float]] = {}
    for name, call in every.items():
        measured = []
        try:
            for seed in range(seeds):
                table, summed = source.part(seed)
                rng = np.random.default_rng(seed)
                start = time.process_time()
                released = call(table, rng)
                took = time.process_time() - start
                measured.append([
                    sum_error(table, summed, released[0], seed), score(table, released[0]),
                    *risks(table, call, released, rng, targets), took,
                ])  # fmt: skip
        except AnonError as error:
            print(f"{name:32s} {error}")
            continue
        found[name] = [float(v) for v in np.mean(measured, axis=0)]
        error, marginals, outside, insider, fair, took = found[name]
        print(
            f"{name:32s} {error:9.4f} {marginals:7.1f} {outside:8.4f} {insider:8.4f} {fair:7.4f} {took:6.2f}",
            flush=True,
        )
    for (table_name, name), wanted in TARGETS.items():
        if table_name == source.name and name in found:
            kept = [found[name][0] <= wanted[0], found[name][1] >= wanted[1],
                    found[name][2] <= wanted[2], found[name][3] <= wanted[3]]  # fmt: skip
            words = ("SUM error", "score", "outside", "insider")
            told = ", ".join(
                f"{word} {value:.4g} ({'kept' if ok else 'MISSED'}: {limit:g})"
                for word, value, ok, limit in zip(words, found[name], kept, wanted, strict=False)
            )
            print(f"  target, {name}: {told}")
    return found


def family_of(method: str) -> str:
    """Which of `MARK` a method belongs to."""
    return next(word for word in MARK if method.startswith(word))


def draw(found: dict[str, dict[str, list[float]]], out: Path) -> None:
    """SUM error over risk, a row of two panels a table: the outside attacker, and the insider where groups are the
    method's; a colour and mark a family of methods."""  # noqa: D205, D209
    figure, axes = plt.subplots(len(found), 2, figsize=(12, 4.3 * len(found)), squeeze=False)
    for pair, (name, methods) in zip(axes, found.items(), strict=True):
        for axis, risk, who in zip(pair, (2, 3), ("outside attacker", "insider who knows the groups"), strict=True):
            for number, (family, mark) in enumerate(MARK.items()):
                mine = {k: m for k, m in methods.items() if family_of(k) == family and not np.isnan(m[risk])}
                line = sorted((m[risk], m[0]) for method, m in mine.items() if "not repaired" not in method)
                if not line:
                    continue
                axis.plot(*zip(*line, strict=True), mark + "-", label=family, color=f"C{number}", markersize=5, lw=0.8)
                for method, m in mine.items():
                    if "not repaired" in method:
                        axis.plot(m[risk], m[0], mark, color=f"C{number}", markersize=5, fillstyle="none")
                    axis.annotate(re.sub(r"[^0-9/]", "", method), (m[risk], m[0]), fontsize=6, xytext=(4, 3),
                                  textcoords="offset points")  # fmt: skip
            axis.set(title=name, xlabel=f"{who} finds the row", yscale="log", xscale="log")
            for line_of in (axis.xaxis, axis.yaxis):
                line_of.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                line_of.set_major_formatter("{x:g}")
                line_of.set_minor_formatter(NullFormatter())
            axis.grid(alpha=0.3)
        pair[0].set_ylabel("mean relative error of SUM queries")
    axes.flat[0].legend(fontsize=7)
    figure.suptitle("Lower left is better; numbers are delta, k, p (percent) or l; hollow: not repaired")
    figure.tight_layout(rect=(0, 0, 1, 0.985))
    figure.savefig(out / "frontier.png", dpi=80)
    plt.close(figure)


def sse_for_others(source: Source) -> None:
    """Query error of slicing, merging and anatomy at the same l, with their own groups and with SSE groups."""
    con = duckdb_anon.connect()
    rows = source.rows[[*source.qi, source.sensitive]].fillna("missing").astype(dict.fromkeys(source.nominal, str))
    con.register("frame", rows)
    con.execute("create table t as from frame")
    for name in source.qi:
        con.execute(
            f"comment on column t.\"{name}\" is 'anon: quasi{' categorical' if name in source.nominal else ''}'"
        )
    con.execute(f"comment on column t.\"{source.sensitive}\" is 'anon: sensitive'")
    print(
        f"\n{source.name}: mean and median error of 200 COUNT queries on 2 quasi-identifiers and the sensitive column"
    )
    for call in (
        "slicing('t', {l}, sensitive_column := 'alone'{sse})",
        "merging('t', {l}{sse})",
        "anatomy('t', {l}{sse})",
    ):
        for level in (2, 4):
            told = []
            for sse in ("", ", groups := 'sse'" if call.startswith("anatomy") else ", cut := 'sse'"):
                text = call.format(l=level, sse=sse)
                try:
                    con.execute(f"create or replace table r as from {text[:-1]}, seed := 1)")
                    told.append("{:.4f} / {:.4f}".format(*con.execute(
                        "select avg(relative_error), median(relative_error) "
                        "from workload_error('t', 'r', 200, dims := 2, "
                        "predicate_on_sensitive := true, selectivity := 0.1, seed := 1)"
                    ).fetchone()))  # fmt: skip
                except duckdb.Error as error:
                    told.append(f"refused ({str(error).splitlines()[0][-90:]})")
            print(
                f"  {call.split('(')[0]} l = {level}: {told[0]} with its own groups, {told[1]} with SSE groups",
                flush=True,
            )


def study(data: Path, out: Path, seeds: int = 3, targets: int = 1000, names: Any = None, quick: bool = False) -> None:
    """Measure, print and draw; `names`: of the tables to take, by default all."""
    out.mkdir(parents=True, exist_ok=True)
    chosen = [s for s in tables(data) if names is None or s.name in names]
    found = {source.name: compare(source, seeds, targets, quick) for source in chosen}
    draw(found, out)
    for source in chosen:
        sse_for_others(source)


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data", help="folder of census.csv and adult.csv")
    parser.add_argument("--out", default="frontier_study", help="folder for the plot")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--tables", nargs="*", help="names of the tables to take; default: all")
    parser.add_argument("--quick", action="store_true", help="one seed, few methods and targets")
    given = parser.parse_args()
    seeds, targets = (1, 300) if given.quick else (given.seeds, given.targets)
    study(Path(given.data), Path(given.out), seeds, targets, given.tables, given.quick)


if __name__ == "__main__":
    main()
