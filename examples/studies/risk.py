"""Risk against error of every method: the strongest attacker beside the papers' claims.

Run: python examples/studies/risk.py [folder with census.csv and adult.csv] [output folder]
For each table and call: how often the strongest attacker of linkage_risk, who knows all quasi-identifiers and the call,
finds a person's row (identity) and names her sensitive value (attribute); what `disclosure`, the MuCo paper's measure,
says of the same; and the mean relative error of 300 count queries with a predicate on the sensitive column. Prints a
table and what it says of each paper's claim, and draws risk.png. In noisy counts nobody has a row to be found; methods
of persons with several rows need other tables (one_to_m.py). About three CPU minutes; needs matplotlib and opendp.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb
import matplotlib

import duckdb_anon

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TARGETS = 1000
TABLES = {
    "census": (["RELATE", "SEX", "AGE", "MARST", "RACE", "EDUC", "UHRSWORK"], "INCWAGE", "true"),
    "adult": (["age", "workclass", "education", "marital_status", "race", "sex", "hours_per_week"], "occupation",
              "occupation is not null and workclass is not null"),
}  # fmt: skip


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


ROW, VALUE = "nobody is found with probability above", "nobody's value is told with probability above"
CALLS = (
    *(Call("muco", f"1/{n}", "identity", 1 / n, ROW + " delta") for n in (5, 10, 20)),
    Call("muco", "1/5, tables := 'linear'", "identity", 0.2, ROW + " delta"),
    Call("muco", "1/10, tables := 'linear'", "identity", 0.1, ROW + " delta"),
    *(Call("slicing", f"{n}, sensitive_column := 'alone'", "attribute", 1 / n, VALUE + " 1/l") for n in (2, 4, 6)),
    *(Call("merging", f"{n}", "attribute", 1 / n, VALUE + " 1/l") for n in (2, 4)),
    *(Call("anatomy", f"{n}", "attribute", 1 / n, VALUE + " 1/l") for n in (2, 4, 6)),
    *(Call("mondrian", f"k := {n}", "identity", 1 / n, ROW + " 1/k") for n in (5, 10, 20)),
    *(Call("mondrian", f"k := {n}, l := {n}", "attribute", 1 / n, VALUE + " 1/l") for n in (4, 6)),
    Call("incognito", "k := 10, l := 2", "attribute", 1 / 2, VALUE + " 1/l"),
    *(Call("rr_distort", f"p := {p}") for p in (0.9, 0.8, 0.6)),
    Call("composition", "10", "identity", 1 / 10, ROW + " 1/k"),
    Call("probabilistic", "10", "identity", 1 / 10, ROW + " 1/k"),
    Call("hybrid", "10", "identity", 1 / 10, ROW + " 1/k"),
    Call("microaggregate", "10", "identity", 1 / 10, ROW + " 1/k"),
    *(Call("rank_swap", f"{p}") for p in (5, 15)),
    Call("laplace_on_groups", "10, 1.0"),
    Call("diffgen", "1.0, domain := 'observed'"),
)
Row = dict[str, float]


def main(folder: Path, output: Path) -> None:
    """Measure, print, plot."""
    output.mkdir(parents=True, exist_ok=True)
    methods = {row[0] for row in duckdb_anon.connect().execute("select function from anon_functions()").fetchall()}
    calls = [call for call in CALLS if call.method in methods]
    found: dict[str, dict[Call, Row]] = {}
    for table, (qi, secret, where) in TABLES.items():
        con = duckdb_anon.connect()
        columns = ", ".join([*qi, secret])
        con.execute(f"create table {table} as select {columns} from read_csv('{folder / table}.csv') where {where}")
        roles = f"qi := {qi}, sensitive := '{secret}'"
        rows = con.table(table).shape[0]
        print(f"\n{table}, {rows:,} rows, {len(qi)} quasi-identifiers, sensitive {secret}, {TARGETS:,} targets")
        print(f"{'call':44} identity [95%]          attribute [95%]         baseline  disclosure  query error")
        found[table] = {}
        for call in calls:
            row = measured(con, table, call, roles)
            if row:
                found[table][call] = row
                print(line(call, row), flush=True)
    for table, measurements in found.items():
        verdict(table, measurements)
    plot(found, output / "risk.png")


def measured(con: duckdb.DuckDBPyConnection, table: str, call: Call, roles: str) -> Row:
    """One call; what cannot be done is said and left out."""
    shown = "identity, identity_low, identity_high, attribute, attribute_low, attribute_high, baseline"
    asked = (
        f"select {shown} from linkage_risk('{table}', 'release', {roles}, seed := 1, targets := {TARGETS}, "
        f"call := $${call.text}$$) where attacker = 'strongest'",
        f"select identity as disclosure from disclosure('{table}', 'release', 1.0, {roles}, targets := {TARGETS})",
        f"select avg(abs(relative_error)) as error from workload_error('{table}', 'release', {roles}, n := 300, "
        "dims := 4, predicate_on_sensitive := true, seed := 1)",
    )
    row: Row = {}
    try:
        con.execute(f"create or replace table release as from {call.method}('{table}', {call.arguments}, {roles}, "
                    "row_id := true, seed := 1)")  # fmt: skip
    except duckdb.Error as error:
        print(f"{call.text:44} not made: {str(error).split(':', 1)[1][:100].strip()}")
        return row
    for question in asked:
        try:
            answer = con.execute(question)
            names = [column[0] for column in answer.description or ()]
            values = answer.fetchall()[0]
        except duckdb.Error as error:
            print(f"{call.text:44} {str(error).split(':', 1)[1][:100].strip()}")
            continue
        row |= {name: float(value) for name, value in zip(names, values, strict=True) if value is not None}
    return row


def line(call: Call, row: Row) -> str:
    """One row of the table."""
    cells = []
    for figure in ("identity", "attribute"):
        if figure in row:
            cells.append(f"{row[figure]:.4f} [{row[figure + '_low']:.4f}, {row[figure + '_high']:.4f}]")
        else:
            cells.append(f"{'-':23}")
    rest = (f"{row[name]:10.4f}" if name in row else f"{'-':>10}" for name in ("baseline", "disclosure", "error"))
    return f"{call.text:44} {cells[0]} {cells[1]} {' '.join(rest)}"


def verdict(table: str, measurements: dict[Call, Row]) -> None:
    """What the figures say of the papers' claims: a claim is broken where even the interval's lower end is above."""
    print(f"\n{table}: what the papers claim, and what was measured")
    for call, row in measurements.items():
        if call.claim and call.figure in row:
            value, low = row[call.figure], row[f"{call.figure}_low"]
            held = "BROKEN" if low > call.bound else "above, within the interval" if value > call.bound else "holds"
            print(f"  {call.text:44} {call.claim} = {call.bound:.3f}: {value:.3f}, {held}")
    blind = [(c, r) for c, r in measurements.items() if r.get("identity", 0) > 1.5 * r.get("disclosure", 1) + 0.01]
    for call, row in blind:
        print(
            f"  {call.text:44} exact matches find {row['disclosure']:.3f}, the strongest attacker {row['identity']:.3f}"
        )


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
                (max(row["error"], 1e-3), max(row["identity"], 1e-4), max(row.get("disclosure", 1), 1e-4), call)
                for call, row in measurements.items()
                if named(call) == name and "identity" in row and "error" in row
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
        panel.grid(alpha=0.2)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share of persons whose row the strongest attacker finds")
    panels[0].annotate("better", (0.02, 0.02), (0.13, 0.13), xycoords="axes fraction", color=GREY,
                       arrowprops={"arrowstyle": "->", "color": GREY})  # fmt: skip
    panels[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    figure.suptitle("Risk against error; a dotted stroke goes down to what exact matches alone would tell", fontsize=11)
    figure.tight_layout()
    figure.savefig(file, dpi=90)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0] if given else "../shared/data"), Path(given[1] if len(given) > 1 else Path(__file__).parent))
