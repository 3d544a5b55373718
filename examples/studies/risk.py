"""One table for all methods: what attackers find, and what the releases are worth.

    PYTHONPATH=. python examples/studies/risk.py [--data FOLDER] [--out FOLDER] [--rows 2500] [--targets 300] [--alone]

Both pictures of the README of this folder come from this command: frontier.png is drawn by frontier.py after risk.png,
which `--alone` leaves out.

Takes at most `--rows` rows of census, adult, fair, randhie (where statsmodels is installed) and ARX's adult. For each:

* outside: the strongest attacker of linkage_risk, who knows all quasi-identifiers and the call, finds the record;
* register: the attacker who also knows everybody's quasi-identifiers; smallest: the same, of those in the smallest
  classes or groups;
* insider: who also knows the groups; of muco `tests/reference/insider.py` on a second draw, else the attacker `told`;
* attribute: the largest share of sensitive values that any of them names, and the baseline it is held against;
* SUM: mean relative error over half of the domain of four quasi-identifiers, of the sensitive column or of age where it
  is a name; COUNT: the same on three and the sensitive column; 3-way: score of k_marginal; s: seconds of the release.

Then what each paper claims, and risk.png: risk against error of counts on census and adult, with what `disclosure`, the
MuCo paper's measure of exact matches, says of the same. Methods of persons need other tables (one_to_m.py). Needs
matplotlib and scikit-learn.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import matplotlib
from frontier import Source
from frontier import study as frontier
from insider import measured as muco_measured
from insider import more_tables

import duckdb_anon

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

TABLES = ("census", "adult", "fair", "randhie", "arx")
HEAD = ("outside", "register", "smallest", "insider", "attribute", "baseline", "SUM", "COUNT", "3-way", "s")


@dataclass(frozen=True)
class Call:
    """A release to make, and what its paper claims: that `figure` (identity or attribute) is at most `bound`."""

    method: str
    arguments: str
    figure: str = ""
    bound: float = 1.0
    claim: str = ""

    @property
    def text(self) -> str:
        """As SQL, without its table."""
        return f"{self.method}({self.arguments})"

    @property
    def label(self) -> str:
        """As tables of the study call it."""
        return self.text.replace(", sensitive_column := 'alone'", "").replace(", domain := 'observed'", "")


ROW, VALUE = "a record is found with probability at most", "a value is named with probability at most"
CALLS = (
    *(Call("muco", f"1/{n}", "identity", 1 / n, ROW + " delta") for n in (5, 10, 20)),
    Call("muco", "1/5, tables := 'linear'", "identity", 0.2, ROW + " delta"),
    *(Call("slicing", f"{n}, sensitive_column := 'alone'", "attribute", 1 / n, VALUE + " 1/l") for n in (2, 4)),
    Call("merging", "2", "attribute", 1 / 2, VALUE + " 1/l"),
    *(Call("anatomy", f"{n}", "attribute", 1 / n, VALUE + " 1/l") for n in (2, 4)),
    Call("mondrian", "k := 10", "identity", 1 / 10, ROW + " 1/k"),
    Call("mondrian", "delta := 0.1", "identity", 1 / 10, ROW + " delta"),
    Call("mondrian", "k := 4, l := 4", "attribute", 1 / 4, VALUE + " 1/l"),
    Call("incognito", "k := 10, l := 2", "attribute", 1 / 2, VALUE + " 1/l"),
    Call("rr_distort", "p := 0.8"),
    Call("composition", "10", "identity", 1 / 10, ROW + " 1/k"),
    Call("probabilistic", "10", "identity", 1 / 10, ROW + " 1/k"),
    Call("hybrid", "10", "identity", 1 / 10, ROW + " 1/k"),
    Call("microaggregate", "10", "identity", 1 / 10, ROW + " 1/k"),
    *(Call("rank_swap", f"{p}") for p in (5, 15)),
    Call("laplace_on_groups", "10, 1.0"),
    Call("diffgen", "1.0, domain := 'observed', specializations := 5"),
)
Row = dict[str, float]


def main() -> None:
    """Measure, print, plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[3] / "shared" / "data")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--rows", type=int, default=2500)
    parser.add_argument("--targets", type=int, default=300)
    parser.add_argument("--alone", action="store_true", help="draw risk.png alone, not frontier.png too")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[Call, Row]] = {}
    for source in more_tables(given.data):
        if source.name not in TABLES:
            continue
        rows = source.rows.sample(min(given.rows, len(source.rows)), random_state=1).reset_index(drop=True)
        source = replace(source, rows=rows)
        con = loaded(source)
        print(f"\n{source.name}, {len(rows):,} rows, sensitive {source.sensitive}, {given.targets:,} targets")
        print(f"{'':36}" + "".join(f"{name:>10}" for name in HEAD), flush=True)
        found[source.name] = {}
        for call in CALLS:
            row = measured(con, source, call, given.targets)
            found[source.name][call] = row
            print(f"{call.label:36}" + "".join(f"{shown(name, row):>10}" for name in HEAD), flush=True)
        con.close()
    for table, measurements in found.items():
        verdict(table, measurements)
    plot({table: found[table] for table in ("census", "adult") if table in found}, given.out / "risk.png")
    if not given.alone:
        frontier(given.data, given.out)


def shown(name: str, row: Row) -> str:
    """One figure."""
    if name not in row:
        return "-"
    return f"{row[name]:.1f}" if name in ("3-way", "s") else f"{row[name]:.3f}"


def loaded(source: Source) -> duckdb.DuckDBPyConnection:
    """A database with the labelled table `t`."""
    con = duckdb_anon.connect()
    columns = [*source.qi, source.sensitive]
    rows = source.rows[columns].copy()
    for name in source.nominal.intersection(columns):
        rows[name] = rows[name].fillna("missing").astype(str)
    con.register("rows", rows)
    con.execute("create table t as from rows")
    con.unregister("rows")
    for name in columns:
        role = "sensitive" if name == source.sensitive else "quasi"
        con.execute(f"comment on column t.\"{name}\" is 'anon: {role}{' categorical' * (name in source.nominal)}'")
    return con


def measured(con: duckdb.DuckDBPyConnection, source: Source, call: Call, targets: int) -> Row:
    """One call; what cannot be done is left out."""
    arguments = call.arguments
    row: Row = {}
    start = time.process_time()
    try:
        con.execute(f"create or replace table r as from {call.method}('t', {arguments}, row_id := true, seed := 1)")
    except duckdb.Error:
        return row
    row["s"] = time.process_time() - start
    text = f"{call.method}({arguments})"
    attacks = f"linkage_risk('t', 'r', seed := 2, targets := {targets}, call := $${text}$$)"
    summed = f'sum("{"age" if source.sensitive in source.nominal else source.sensitive}")'
    workload = "from workload_error('t', 'r', n := 200, style := 'half', selectivity := 0.5, seed := 1"
    asked = (
        "select max(identity) filter (attacker not in ('register', 'told', 'strongest')) as outside, "
        "max(identity) filter (attacker = 'register') as register, max(smallest) as smallest, "
        "max(identity) filter (attacker = 'told') as insider, "
        "max(identity) filter (attacker = 'strongest') as identity, "
        "max(identity_low) filter (attacker = 'strongest') as identity_low, "
        "max(attribute) filter (attacker = 'strongest') as attribute, "
        "max(attribute_low) filter (attacker = 'strongest') as attribute_low, "
        f"max(baseline) filter (attacker = 'strongest') as baseline from {attacks}",
        f'select avg(abs(relative_error)) as "SUM" {workload}, dims := 4, aggregate := $${summed}$$)',
        f'select avg(abs(relative_error)) as "COUNT" {workload}, dims := 3, predicate_on_sensitive := true)',
        "select score as \"3-way\" from k_marginal('t', 'r', seed := 1) where k = 3",
        f"select identity as disclosure from disclosure('t', 'r', 1.0, targets := {targets})",
    )
    for question in asked:
        try:
            answer = con.execute(question)
            names = [column[0] for column in answer.description or ()]
            values = answer.fetchall()[0]
        except duckdb.Error:
            continue
        row |= {name: float(value) for name, value in zip(names, values, strict=True) if value is not None}
    if call.method == "muco" and "'linear'" not in arguments:
        given = {"delta": 1 / float(call.arguments.split("/")[1])}
        row["insider"] = muco_measured(source, 1, given, True)[5]
    return row


def verdict(table: str, measurements: dict[Call, Row]) -> None:
    """What the figures say of the papers' claims: a claim is broken where even the interval's lower end is above."""
    print(f"\n{table}: what the papers claim, and what was measured")
    for call, row in measurements.items():
        if call.claim and call.figure in row:
            value, low = row[call.figure], row[f"{call.figure}_low"]
            held = "BROKEN" if low > call.bound else "above, within the interval" if value > call.bound else "holds"
            print(f"  {call.label:36} {call.claim} = {call.bound:.3f}: {value:.3f}, {held}")
    blind = [(c, r) for c, r in measurements.items() if r.get("identity", 0) > 1.5 * r.get("disclosure", 1) + 0.01]
    for call, row in blind:
        exact, strongest = row["disclosure"], row["identity"]
        print(f"  {call.label:36} exact matches find {exact:.3f}, the strongest attacker {strongest:.3f}")


GREY = "#9aa0a6"
SHOWN = {
    "muco": ("#0072b2", "o"), "muco, the paper's tables": ("#56b4e9", "o"), "slicing": ("#009e73", "v"),
    "merging": ("#009e73", "^"), "anatomy": ("#cc79a7", "s"), "mondrian": ("#d55e00", "D"),
    "incognito": ("#d55e00", "P"), "rr_distort": ("#e69f00", "X"), "rank_swap": ("#000000", "x"),
    "microaggregate": ("#000000", "+"), "composition": (GREY, "<"), "probabilistic": (GREY, ">"), "hybrid": (GREY, "*"),
}  # fmt: skip


def named(call: Call) -> str:
    """The line of the plot a call belongs to."""
    return "muco, the paper's tables" if "'linear'" in call.arguments else call.method


def plot(found: dict[str, dict[Call, Row]], file: Path) -> None:
    """Identity against error, a panel a table; a stroke below a mark ends where exact matches alone would put it."""
    figure, panels = plt.subplots(1, len(found), figsize=(13, 5.2), sharey=True)
    for panel, (table, measurements) in zip(panels, found.items(), strict=True):
        for name, (colour, mark) in SHOWN.items():
            rows = [
                (max(row["COUNT"], 1e-3), max(row["identity"], 1e-4), max(row.get("disclosure", 1), 1e-4), call)
                for call, row in measurements.items()
                if named(call) == name and "identity" in row and "COUNT" in row
            ]
            strong = name == "muco"
            sizes = {"linewidth": 2.2, "markersize": 9, "zorder": 4} if strong else {"linewidth": 1, "markersize": 7}
            x_of, y_of = [row[0] for row in rows], [row[1] for row in rows]
            panel.plot(x_of, y_of, color=colour, marker=mark, label=name, **sizes)
            for x, y, exact, call in rows:
                if exact < y / 1.5:
                    panel.plot([x, x], [exact, y], color=colour, linewidth=0.8, linestyle=":", zorder=2)
                if name in ("muco", "mondrian", "anatomy", "rr_distort"):
                    figures = call.arguments.replace(" := ", "=").replace("4, l=4", "l=4").replace("6, l=6", "l=6")
                    panel.annotate(figures, (x, y), xytext=(7, 4), textcoords="offset points", fontsize=8, color=colour)
        panel.set(xscale="log", yscale="log", title=table, xlabel="mean relative error of a query")
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(alpha=0.2)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share of records that the strongest attacker finds")
    panels[0].annotate("better", (0.02, 0.02), (0.13, 0.13), xycoords="axes fraction", color=GREY,
                       arrowprops={"arrowstyle": "->", "color": GREY})  # fmt: skip
    panels[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    figure.suptitle("Risk against error; a dotted stroke goes down to what exact matches alone find", fontsize=11)
    figure.tight_layout()
    figure.savefig(file, dpi=90)


if __name__ == "__main__":
    main()
