"""Section 5 of Li et al. (2020), arXiv 2008.10771, again: what MuCo hides, what it costs, and against whom.

    python examples/studies/muco.py [census.csv] [--out figures] [--runs 3] [--quick]

Without a file the package's own sample is used. Two settings of muco stand side by side: the paper's tables
(tables := 'linear') and the default, columns permuted inside groups; Mondrian and Anatomy are the rivals. What the
strongest attacker finds is in frontier.py. Four parts, each a printed table and a plot:

1. privacy: identity and attribute disclosure over P_match, by delta (paper: figures of section 5.1);
2. what Mondrian discloses and loses, and query error of all methods: SUM over 4 random quasi-identifiers (5.2, 5.3);
3. the influence of l (5.4);
4. what the paper does not show: query error against measured disclosure, over all settings.

After each part stands what the paper says and what came out. Disclosure is exact over what an attacker may know,
for a fixed set of targets; error bars are standard deviations over runs.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import matplotlib
import numpy as np

import duckdb_anon

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import ScalarFormatter

SETTINGS = {"paper": ", tables := 'linear'", "default": ""}
P_MATCH = (0.3, 0.5, 0.7, 0.8, 0.9, 1.0)
NOMINAL = ["RELATE", "SEX", "MARST", "RACE", "EDUC"]
Values = np.ndarray


@dataclass
class Study:
    """The table, how much to run, and every release measured so far."""

    con: duckdb.DuckDBPyConnection
    sensitive: str
    nominal: str
    out: Path
    runs: int
    targets: int
    queries: int
    known: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)

    def release(self, call: str, seed: int) -> str:
        """Name of the table that holds the release of `call` under `seed`."""
        text = call.replace("SEED", str(seed))
        if text not in self.made:
            self.made[text] = f"release_{len(self.made)}"
            self.con.execute(f"create table {self.made[text]} as from {text}")
        return self.made[text]

    def over_runs(self, call: str, query: str) -> np.ndarray:
        """The row that `query` gives for each run, measured once; shape (runs, columns)."""
        if (call, query) not in self.known:
            runs = range(1, self.runs + 1) if "SEED" in call else [1]
            found = [self.con.execute(query.format(r=self.release(call, run), run=run)).fetchone() for run in runs]
            self.known[call, query] = np.array(found, dtype=float)
        return self.known[call, query]

    def disclosure(self, call: str, which: str, p_match: float = 0.7) -> Values:
        """Identity or attribute disclosure; the same targets for all releases, fewer where boxes make it slow."""
        targets = self.targets if call.startswith("muco") else max(200, self.targets // 4)
        risk = f"disclosure('census', '{{r}}', {p_match}, targets := {targets}, seed := 1)"
        return self.over_runs(call, f"select identity, attribute from {risk}")[
            :, ("identity", "attribute").index(which)
        ]

    def loss(self, call: str) -> Values:
        """Information loss, mean over rows and quasi-identifiers."""
        query = "select iloss from information_loss('census', '{r}') where attribute = '(all)'"
        return self.over_runs(call, query)[:, 0]

    def error(self, call: str, of: str = "mean") -> Values:
        """Mean, median or variance of the relative error over the workload; run k asks the k-th workload."""
        errors = (
            f"workload_error('census', '{{r}}', {self.queries}, aggregate := 'sum({self.sensitive})', "
            f"style := 'half', selectivity := 0.5, {self.nominal} seed := {{run}})"
        )
        three = "select avg(relative_error), median(relative_error), var_pop(relative_error)"
        return self.over_runs(call, f"{three} from {errors}")[:, ("mean", "median", "variance").index(of)]


def muco(delta: int, setting: str = "default", l: int = 10, more: str = "") -> str:  # noqa: E741
    """Call of muco with delta = 1/`delta`."""
    more = SETTINGS[setting] + more
    return f"muco('census', 1/{delta}, l := {l}{more}, row_id := true, seed := SEED)"


def mondrian(l: int, cut: str = "median") -> str:  # noqa: E741
    """Call of Mondrian under frequency l-diversity; it draws nothing, so one run is enough."""
    return f"mondrian('census', l := {l}, cut := '{cut}', width := 'spread', row_id := true, seed := 1)"


def anatomy(l: int) -> str:  # noqa: E741
    """Call of Anatomy."""
    return f"anatomy('census', {l}, seed := SEED)"


def open_census(path: str | None) -> tuple[duckdb.DuckDBPyConnection, str, str]:
    """A database with the labelled table census; its sensitive column; its numbers without order."""
    con = duckdb_anon.connect()
    if path:
        con.execute(f"create table census as select * exclude (OCC) from read_csv('{path}')")
        sensitive, nominal = "INCWAGE", f"categorical := {NOMINAL},"
    else:
        con.execute("create table census as from anon_sample('census', seed := 1)")
        sensitive, nominal = "salary", ""
    for (column,) in con.execute("select column_name from duckdb_columns() where table_name = 'census'").fetchall():
        con.execute(f"comment on column census.{column} is 'anon: {'sensitive' if column == sensitive else 'quasi'}'")
    return con, sensitive, nominal


def table(title: str, header: list[str], rows: list[list[object]]) -> None:
    """Print aligned columns; numbers with four digits behind the point."""
    texts = [[f"{c:.4f}" if isinstance(c, float) else str(c) for c in row] for row in rows]
    widths = [max(len(r[k]) for r in [header, *texts]) for k in range(len(header))]
    print(f"\n{title}")
    for row in [header, *texts]:
        print(
            "  "
            + "  ".join(t.ljust(w) if k == 0 else t.rjust(w) for k, (t, w) in enumerate(zip(row, widths, strict=True)))
        )


def verdict(claim: str, holds: bool, numbers: str) -> None:
    """Print a claim of the paper beside what came out."""
    print(f"  paper: {claim}\n  here:  {'holds' if holds else 'DOES NOT HOLD'}; {numbers}")


def mean(values: Values) -> float:
    """Mean over runs."""
    return float(np.mean(values))


def save(figure: plt.Figure, study: Study, name: str) -> None:
    """Write the plot."""
    figure.tight_layout()
    figure.savefig(study.out / f"{name}.png", dpi=130)
    plt.close(figure)


def bars(axis: Axes, x: list[float], series: list[Values], label: str, marker: str = "o") -> None:
    """A line of means with standard deviations over runs."""
    axis.errorbar(
        x, [mean(s) for s in series], yerr=[float(np.std(s)) for s in series], marker=marker, capsize=3, markersize=4,
        linewidth=1.2, label=label,
    )  # fmt: skip


def privacy(study: Study, deltas: list[int], ls: list[int]) -> None:
    """Part 1: disclosure over P_match."""
    figure, axes = plt.subplots(2, 3, figsize=(13, 7), sharex=True, sharey="row")
    calls = {name: [(f"delta 1/{d}", muco(d, name)) for d in deltas] for name in SETTINGS}
    calls["mondrian"] = [(f"l = {level}", mondrian(level)) for level in ls]
    for column, (name, lines) in enumerate(calls.items()):
        rows: list[list[object]] = []
        for label, call in lines:
            for row, which in enumerate(("identity", "attribute")):
                series = [study.disclosure(call, which, p) for p in P_MATCH]
                bars(axes[row, column], list(P_MATCH), series, label)
                rows.append([f"{label} {which}", *map(mean, series)])
        table(f"1. Disclosure, {name}: mean over runs", ["P_match", *map(str, P_MATCH)], rows)
        axes[0, column].set_title(name if name == "mondrian" else f"muco, {name} setting")
        axes[1, column].set_xlabel("P_match")
        axes[0, column].legend(fontsize=8)
    for row, which in enumerate(("identity", "attribute")):
        axes[row, 0].set_ylabel(f"{which} disclosure")
        axes[row, 0].set_ylim(bottom=0)
        for axis in axes[row]:
            axis.grid(alpha=0.3)
    save(figure, study, "privacy")
    for name in SETTINGS:
        at_one = [mean(study.disclosure(muco(d, name), "identity", 1.0)) for d in deltas]
        verdict(
            f"identity disclosure is 0 at P_match 1 ({name} setting)", max(at_one) == 0, f"largest {max(at_one):.5f}"
        )
        falls = [mean(study.disclosure(muco(d, name), "identity")) for d in deltas]
        verdict(
            f"disclosure falls with delta ({name} setting)",
            falls == sorted(falls, reverse=True),
            f"at P_match 0.7: {', '.join(f'1/{d} {v:.4f}' for d, v in zip(deltas, falls, strict=True))}",
        )


def utility(study: Study, deltas: list[int], ls: list[int]) -> None:
    """Part 2: information loss and query error of everybody."""
    calls = {f"muco {name} 1/{d}": muco(d, name) for name in SETTINGS for d in deltas}
    calls |= {f"mondrian l = {level}": mondrian(level) for level in ls} | {"anatomy l = 10": anatomy(10)}
    rows: list[list[object]] = []
    for label, call in calls.items():
        lost: object = "-" if call.startswith("anatomy") else mean(study.loss(call))
        rows.append([label, lost, *(mean(study.error(call, of)) for of in ("mean", "median", "variance"))])
    table("2. Information loss and error of SUM queries", ["method", "loss", "mean", "median", "variance"], rows)
    figure, axes = plt.subplots(1, 2, figsize=(13, 5))
    colours = {"muco paper": "tab:blue", "muco default": "tab:green", "mondrian": "tab:orange", "anatomy": "tab:red"}
    names = list(calls)
    shade = [next(c for start, c in colours.items() if name.startswith(start)) for name in names]
    place = np.arange(len(names))
    lost_values = [0.0 if row[1] == "-" else float(str(row[1])) for row in rows]
    axes[0].bar(place, lost_values, color=shade)
    axes[0].set_title("information loss (Anatomy publishes quasi-identifiers as they are)")
    axes[1].bar(place, [float(str(row[2])) for row in rows], color=shade, label="mean")
    axes[1].plot(place, [float(str(row[3])) for row in rows], "k_", markersize=12, label="median")
    axes[1].set_yscale("log")
    axes[1].yaxis.set_major_formatter(ScalarFormatter())
    axes[1].set_title("relative error of SUM queries (log scale): mean, and median as a line")
    for axis in axes:
        axis.set_xticks(place, names, rotation=60, ha="right", fontsize=8)
        axis.grid(axis="y", alpha=0.3)
    save(figure, study, "utility")
    for name in SETTINGS:
        mine = {d: mean(study.error(muco(d, name))) for d in deltas}
        best = min(mean(study.error(mondrian(level))) for level in ls)
        other = mean(study.error(anatomy(10)))
        verdict(f"query error below Mondrian's ({name} setting)", max(mine.values()) < best,
                f"worst {max(mine.values()):.4f}, best Mondrian {best:.4f}")  # fmt: skip
        verdict(f"query error below Anatomy's ({name} setting)", max(mine.values()) < other,
                f"worst {max(mine.values()):.4f}, Anatomy {other:.4f}")  # fmt: skip
        losses = [mean(study.loss(muco(d, name))) for d in deltas]
        verdict(f"information loss rises as delta falls ({name} setting)", losses == sorted(losses),
                ", ".join(f"1/{d} {v:.4f}" for d, v in zip(deltas, losses, strict=True)))  # fmt: skip


def influence_of_l(study: Study, levels: list[int]) -> None:
    """Part 3: larger groups at one delta."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4))
    measures = {
        "information loss": study.loss,
        "mean query error": study.error,
        "attribute disclosure": lambda call: study.disclosure(call, "attribute"),
    }
    rows: list[list[object]] = []
    for name in SETTINGS:
        for axis, (title, measure) in zip(axes, measures.items(), strict=True):
            bars(axis, [float(v) for v in levels], [measure(muco(6, name, v)) for v in levels], f"{name} setting")
            axis.set_title(title)
            axis.set_xlabel("l (delta 1/6; disclosure at P_match 0.7)")
        rows += [
            [f"{name} l = {v}", *(mean(measure(muco(6, name, v))) for measure in measures.values())] for v in levels
        ]
    for axis in axes:
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[0].legend()
    table("3. Influence of l, delta 1/6, disclosure at P_match 0.7", ["setting", *measures], rows)
    save(figure, study, "influence_of_l")
    for name in SETTINGS:
        losses = [mean(study.loss(muco(6, name, v))) for v in levels]
        verdict(f"a larger l costs less information ({name} setting)", losses == sorted(losses, reverse=True),
                ", ".join(f"l = {v}: {x:.4f}" for v, x in zip(levels, losses, strict=True)))  # fmt: skip


def frontier(study: Study, deltas: list[int], ls: list[int]) -> None:
    """Part 4: query error at equal measured disclosure."""
    families = {
        "paper setting": [muco(d, "paper") for d in deltas],
        "paper setting, min_changed 1.5": [muco(d, "paper", more=", min_changed := 1.5") for d in deltas],
        "paper setting, min_changed 2": [muco(d, "paper", more=", min_changed := 2") for d in deltas],
        "default": [muco(d) for d in deltas],
        "mondrian, median cuts": [mondrian(level) for level in ls],
        "mondrian, loss cuts": [mondrian(level, "loss") for level in ls],
    }
    points = {}
    for name, calls in families.items():
        risk = [mean(study.disclosure(c, "attribute")) for c in calls]
        points[name] = (np.array(risk), np.array([mean(study.error(c)) for c in calls]))
    asked = [float(v) for v in points["paper setting"][0]]
    rows: list[list[object]] = [[name, *(least_error(*points[name], risk) for risk in asked)] for name in points]
    table("4. Least mean query error at no more attribute disclosure (P_match 0.7) than the paper's setting has",
          ["setting", *(f"1/{d}: {risk:.4f}" for d, risk in zip(deltas, asked, strict=True))], rows)  # fmt: skip
    print("  '-': every point of this setting discloses more")
    figure, axis = plt.subplots(figsize=(8.5, 5.5))
    for number, (name, (risk, error)) in enumerate(points.items()):
        order = np.argsort(risk)
        axis.plot(risk[order], error[order], marker="osD^vP*X"[number], label=name, linewidth=1)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(ScalarFormatter())
    axis.set_xlabel("attribute disclosure at P_match 0.7")
    axis.set_ylabel("mean relative error of SUM queries (log scale)")
    axis.set_title("lower left is better")
    axis.grid(alpha=0.3, which="both")
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    save(figure, study, "frontier")


def least_error(risk: Values, error: Values, at: float) -> object:
    """Smallest error of the points that disclose no more than `at`."""
    allowed = error[risk <= at + 1e-12]
    return float(allowed.min()) if len(allowed) else "-"


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("census", nargs="?", help="census.csv; default: the package's sample")
    parser.add_argument("--out", default="muco_study", help="folder for the plots")
    parser.add_argument("--runs", type=int, default=3, help="releases of each random method")
    parser.add_argument("--quick", action="store_true", help="one run, three deltas, fewer targets and queries")
    given = parser.parse_args()
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    quick = given.quick
    con, sensitive, nominal = open_census(given.census)
    study = Study(
        con, sensitive, nominal, out, 1 if quick else given.runs, 500 if quick else 2000, 200 if quick else 1000
    )
    deltas, ls = ([5, 7, 10], [8, 18]) if quick else ([5, 6, 7, 8, 10], [8, 10, 12, 15, 18])
    print(f"{study.runs} run(s), {study.targets} targets, {study.queries} queries; plots in {out}/")
    start = time.perf_counter()
    privacy(study, deltas, ls)
    utility(study, deltas, ls)
    influence_of_l(study, [10, 20] if quick else [10, 12, 15, 20, 30])
    frontier(study, deltas, ls)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
