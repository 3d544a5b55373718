"""How long a call goes on after `con.interrupt()`: `python -m tests.fuzz.interrupts --rows 1000000 --file big.duckdb`.

Each call is started in a thread, interrupted once at a few moments, each time anew, and timed until it has ended; what
is printed is the longest wait of each, and where the threads of Python were while they let wait. Tables and releases
are made once and stay in the file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb

import duckdb_anon

MOMENTS = (0.2, 1.0, 3.0, 8.0)
"""Seconds after its start at which a call is interrupted."""
LONG = 1.0
"""Seconds that nobody should wait for longer."""
TABLES = {
    "people": "from anon_sample('census', {rows}, seed := 1)",
    "others": "from anon_sample('census', 20000, seed := 2)",
    "release": "from muco('people', 0.2, row_id := true)",
    "boxes": "from mondrian('people', 10, l := 3, row_id := true)",
    "buckets": "from anatomy('people', 5, row_id := true)",
    "randomized": "from rr_distort('people', p := 0.8, row_id := true)",
}
ROLES = {name: "anon: quasi" for name in ("age", "gender", "education", "hours_per_week")} | {
    "salary": "anon: sensitive"
}
_QUERY = "select gender, avg(salary), count(*), median(age) from people where age < 40 group by gender"
CALLS = {
    **{f"muco, {word}": f"from muco('people', 0.2{more})" for word, more in (("", ""), ("linear", ", tables := 'linear'"))},
    "mondrian": "from mondrian('people', 5, l := 2)",
    "mondrian t": "from mondrian('people', 5, t := 0.3)",
    "incognito": "from incognito('people', 5, l := 2)",
    "anatomy": "from anatomy('people', 5)",
    "anatomy sse": "from anatomy('people', 5, groups := 'sse')",
    "rr_distort": "from rr_distort('people', l := 5)",
    "slicing": "from slicing('people', 3)",
    "merging": "from merging('people', 3)",
    "microaggregate": "from microaggregate('people', 5)",
    "microaggregate mdav": "from microaggregate('people', 5, groups := 'mdav')",
    "rank_swap": "from rank_swap('people', 5)",
    "composition": "from composition('people', 5)",
    "probabilistic": "from probabilistic('people', 5)",
    "hybrid": "from hybrid('people', 5)",
    "diffgen": "from diffgen('people', 5.0, domain := 'observed', qi := ['age', 'education'], sensitive := 'gender')",
    "laplace_on_groups": "from laplace_on_groups('people', 5, 1.0, qi := ['age', 'education'], sensitive := 'gender')",
    "disclosure": "from disclosure('people', 'release', p_match := 0.7)",
    "disclosure, boxes": "from disclosure('people', 'boxes')",
    "linkage_risk": "from linkage_risk('people', 'release', call := 'muco(0.2)')",
    "linkage_risk, boxes": "from linkage_risk('people', 'boxes')",
    "attribute_risk": "from attribute_risk('people', 'release', 'salary', call := 'muco(0.2)')",
    "attribute_risk, buckets": "from attribute_risk('people', 'buckets', 'salary')",
    "singling_out": "from singling_out('people', 'release')",
    "singling_out, boxes": "from singling_out('people', 'boxes', mode := 'univariate')",
    "linkability": "from linkability('people', 'release', columns_a := ['age', 'gender'])",
    "inference": "from inference('people', 'release')",
    "membership_risk": "from membership_risk('people', 'release', holdout := 'others')",
    "k_anonymity": "from k_anonymity('people')",
    "l_diversity": "from l_diversity('boxes', ['age', 'gender', 'education', 'hours_per_week'], 'salary')",
    "t_closeness": "from t_closeness('people')",
    "equivalence_classes": "from equivalence_classes('people')",
    "workload": "from workload('people', 5000)",
    "workload_error": "from workload_error('people', 'boxes', 1000, aggregate := 'sum(salary)')",
    "workload_error, values": "from workload_error('people', 'release', 1000)",
    "relative_error": f"from relative_error('{_QUERY}', 'people', 'boxes')",
    "relative_error, values": f"from relative_error('{_QUERY}', 'people', 'release')",
    "relative_error, buckets": f"from relative_error('{_QUERY}', 'people', 'buckets')",
    "estimate": f"from estimate('{_QUERY}', 'randomized', original := 'people')",
    "cube_error": "from cube_error('people', 'boxes', dims := ['gender', 'education', 'age'])",
    "information_loss": "from information_loss('people', 'boxes')",
    "distribution_distance": "from distribution_distance('people', 'randomized', columns := ['age', 'salary'])",
    "correlation": "from correlation('people')",
    "correlation_comparison": "from correlation_comparison('people', 'release')",
    "regression_comparison": "from regression_comparison('people', 'release', 'salary', columns := ['age', 'gender', 'education'])",
    "classification_accuracy": "from classification_accuracy('people', 'boxes', 'gender')",
    "k_marginal": "from k_marginal('people', 'release')",
    "k_marginal, boxes": "from k_marginal('people', 'boxes')",
    "propensity": "from propensity('people', 'release')",
    "unique_exact_matches": "from unique_exact_matches('people', 'release')",
    "apparent_matches": "from apparent_matches('people', 'release')",
    "special_uniques": "from special_uniques('people', max_size := 4)",
    "population_uniqueness": "from population_uniqueness('people', 0.05, model := 'best')",
    "k_map": "from k_map('boxes', 'people')",
    "delta_presence": "from delta_presence('(from people limit 300000)', 'people')",
    "muco_tables": "from muco_tables('people', 0.2)",
    "muco_groups": "from muco_groups('people', 0.2)",
    "delta_probability": "from delta_probability('people', 0.2)",
    "rr_parameters": "from rr_parameters('people', 5)",
    "rr_risk": "from rr_risk('people', p := 0.8)",
    "rr_reconstruct": "from rr_reconstruct('randomized', ['gender', 'age'])",
    "composition_risk": "from composition_risk('boxes', 'boxes', 'people')",
    "compare": "from compare('people', ['release', 'boxes', 'buckets'], n := 300)",
    "recommend": "from recommend('people', rows := 200000)",
    "anon_profile": "from anon_profile('people')",
    "anon_hierarchy": "from anon_hierarchy('people', 'salary', 'number', bins := 50)",
    "anon_report": "from anon_report('people', ['release', 'boxes'], '{folder}/report.html')",
    "diffgen_plan": "from diffgen_plan('people', 1.0)",
    "anon_sample": "from anon_sample('census', {rows}, seed := 4)",
}  # fmt: skip


def opened(file: str, rows: int) -> duckdb.DuckDBPyConnection:
    """The database with all tables in it."""
    con = duckdb_anon.connect(file)
    there = {name for (name,) in con.execute("select table_name from duckdb_tables()").fetchall()}
    for table, statement in TABLES.items():
        if table not in there:
            con.execute(f"create table {table} as {statement.format(rows=rows)}")
        for column, role in ROLES.items() if table == "people" else ():
            con.execute(f"comment on column {table}.{column} is '{role}'")
    return con


def waited(con: duckdb.DuckDBPyConnection, statement: str, moment: float) -> tuple[float | None, str, Counter[str]]:
    """Seconds until the call ended after its interrupt (None: it had ended before), how, and where it was meanwhile."""
    end: list[str] = []

    def call() -> None:
        try:
            con.execute(f"create or replace temp table interrupted as {statement}")
            end.append("answered")
        except Exception as error:
            end.append(f"{type(error).__name__}: {str(error)[:200]}")

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(moment)
    if not thread.is_alive():
        return None, end[0], Counter()
    pressed = time.monotonic()
    con.interrupt()
    places: Counter[str] = Counter()
    while thread.is_alive():
        thread.join(0.05)
        places.update(_places())
    return time.monotonic() - pressed, end[0], places


def _places() -> list[str]:
    """Where in the package each thread is, DuckDB where it is in none."""
    found = []
    for number, frame in sys._current_frames().items():
        if number == threading.get_ident():
            continue
        inside = [line for line in traceback.extract_stack(frame) if "duckdb_anon" in line.filename]
        if inside and inside[-1].name != "watch":
            found.append(f"{Path(inside[-1].filename).stem}.{inside[-1].name}:{inside[-1].lineno}")
    return found or ["DuckDB"]


def main(arguments: Sequence[str] | None = None, show: Callable[[str], None] = print) -> int:
    """Print a line a call; 1 where somebody waited too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--file", default=":memory:", help="database that keeps the tables")
    parser.add_argument("--only", nargs="+", help="beginnings of names of calls")
    parser.add_argument("--moments", nargs="+", type=float, default=MOMENTS)
    given = parser.parse_args(arguments)
    con = opened(given.file, given.rows)
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name, statement in CALLS.items():
            if given.only and not any(name.startswith(start) for start in given.only):
                continue
            longest, where, said = 0.0, Counter[str](), ""
            for moment in given.moments:
                seconds, end, places = waited(con, statement.format(rows=given.rows, folder=folder), moment)
                said = end if "nterrupt" not in end else said
                if seconds is None:
                    break
                if seconds > longest:
                    longest, where = seconds, places
            worst = max(worst, longest)
            told = ", ".join(f"{place} x{n}" for place, n in where.most_common(3)) if longest > LONG else ""
            show(f"{longest:6.2f} s  {name:<28} {said[:160]} {told}".rstrip())
    return worst > LONG


if __name__ == "__main__":
    sys.exit(main())
