"""Random calls: answered, refused (by an error that names the function and quotes no value), or a fault.

`python -m tests.fuzz.campaign --calls 10000 --seed 1`; a table's number gives the whole of it again: `--seed`, `--only`.
"""

import argparse
import math
import random
import re
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import duckdb

import duckdb_anon
from duckdb_anon.engine.catalog.sensitive_coarsening import takes_edges
from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.model.function_specs import Method
from duckdb_anon.registry import ENTRIES
from tests.fuzz import proofs
from tests.fuzz.calls import Call, measure_call, method_call
from tests.fuzz.tables import SECRET, Table, quoted, random_table

BY_NAME = {entry.name: entry for entry in ENTRIES}
TAKES = {entry.name: {p.name for p in parameters_of(entry)} for entry in ENTRIES}
SHARES = re.compile(r"^(identity|attribute|linked|highest|risk|success|share|accuracy|ncp|iloss|hellinger|strongest)$")
_ADVISED = re.compile(r"(?<![\w'\"])([a-z_]+) := ")


@dataclass
class Tally:
    """What came of the calls, by function and outcome, and the faults with the statements that show them."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    proved: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return sum(self.outcomes.values())

    def shown(self) -> str:
        """The tally as text, a line a function."""
        lines = [f"{'function':<26}{'answered':>9}{'refused':>9}{'faults':>8}{'proved':>8}"]
        for function in sorted({f for f, _ in self.outcomes}):
            counts = [self.outcomes[function, word] for word in ("answered", "refused", "fault")]
            lines.append(f"{function:<26}{counts[0]:>9}{counts[1]:>9}{counts[2]:>8}{self.proved[function]:>8}")
        total = [
            sum(n for (_, word), n in self.outcomes.items() if word == w) for w in ("answered", "refused", "fault")
        ]
        lines.append(f"{self.calls:<26}{total[0]:>9}{total[1]:>9}{total[2]:>8}{self.proved.total():>8}")
        return "\n".join(lines)


class Fault(AssertionError):
    """A call that is neither answered rightly nor refused as it should be."""


def run(
    con: duckdb.DuckDBPyConnection, seed: int, number: int, tally: Tally, verbose: bool = False,
    method: Method | None = None,
) -> None:  # fmt: skip
    """One table, one release of it, and, where no method is named, a few measures of both."""
    rng = random.Random(f"{seed} {number}")
    table = random_table(rng, with_persons=rng.random() < 0.15)
    con.execute(f"drop schema if exists main_{number % 2} cascade; create schema main_{number % 2}")
    con.execute(f"use main_{number % 2}")
    for statement in table.statements:
        con.execute(statement)
    con.execute(
        "create or replace temp table o as select row_number() over () - 1 as rn, "
        + ", ".join(f"{quoted(c.name)} as {r[0]}{k}" for r in ("quasi", "sensitive") for k, c in enumerate(table.of(r)))
        .replace(" as q", " as q") + f" from {quoted(table.name)}"
    )  # fmt: skip
    call = method_call(table, rng, method)
    made = judged(con, table, call, tally, (seed, number), verbose, release=True)
    if method or not made:
        return
    for _ in range(rng.randint(2, 6)):
        judged(con, table, measure_call(table, rng), tally, (seed, number), verbose, of=call)


def judged(
    con: duckdb.DuckDBPyConnection, table: Table, call: Call, tally: Tally, where: tuple[int, int], verbose: bool = False,
    release: bool = False, of: Call | None = None,
) -> bool:  # fmt: skip
    """Make a call and put down what came of it; whether it was answered."""
    statement = f"create or replace table rel as from {call.sql}" if release else (
        f"select {call.sql}" if call.function == "rewrite_query" else f"from {call.sql}"
    )  # fmt: skip
    outcome = "answered"
    try:
        try:
            answer = con.execute(statement).fetchall()
            header = [d[0] for d in con.description or []]
        except duckdb.Error as error:
            outcome = "refused"
            refusal(con, table, call, str(error))
        else:
            proved = prove(con, table, call) if release else check(con, table, call, of, header, answer)
            tally.proved[call.function] += proved
    except Exception as fault:
        outcome = "fault"
        kind = "" if isinstance(fault, (Fault, proofs.Broken)) else f"{type(fault).__name__}: "
        displayed = ";\n".join(
            [*table.statements, *([f"create or replace table rel as from {of.sql}"] if of else []), statement]
        )
        tally.faults.append(f"-- seed {where[0]} table {where[1]}: {kind}{str(fault)[:600]}\n{displayed};")
    tally.outcomes[call.function, outcome] += 1
    if verbose:
        print(outcome, statement, flush=True)
    return outcome == "answered"


def refusal(con: duckdb.DuckDBPyConnection, table: Table, call: Call, message: str) -> None:
    """Raise unless an error is one that a user should see."""
    estimated = message.split("\n\nLINE ")[0]
    named = re.match(r"Invalid Input Error: (\w+): ", estimated)
    if "internal error" in estimated or named is None:
        raise Fault(f"not a refusal: {estimated}")
    # workload_error asks what workload would, compare what several measures would, and estimates may ask impute
    asks_others = BY_NAME[call.function].section == "Choosing" or named[1] == "impute"
    if not (call.function.startswith(named[1]) or (asks_others and named[1] in TAKES)):
        raise Fault(f"another function refuses: {estimated}")
    if SECRET in estimated:
        raise Fault(f"a value is quoted: {estimated}")
    foreign = set(_ADVISED.findall(estimated)) - TAKES.get(named[1], set())
    if foreign:
        raise Fault(f"{named[1]} does not take {sorted(foreign)}: {estimated}")
    if "fails the requirement" in estimated and "t" in TAKES[call.function] and not call.params.get("t"):
        if proofs.meets(con, table, call.params):
            raise Fault(f"the whole table meets it: {estimated}")


def prove(con: duckdb.DuckDBPyConnection, table: Table, call: Call) -> bool:
    """Prove what a method promises of `rel`."""
    method, params = BY_NAME[call.function], call.params
    assert isinstance(method, Method)
    types = proofs.copied(con, table, "rel")
    if "counts" in method.formats:
        proofs.noise(con, table, types)
        return True
    if method.differentially_private:
        proofs.made(con, types)
        return True
    changed = {"buckets": "qx", "retained": "x", "randomized": "x"}
    exact = next((changed[f] for f in method.formats if f in changed), "sx")
    if takes_edges(method) and "sensitive_edges" not in params:  # rare numbers are means
        if not {"persons", "sliced"} & set(method.formats):
            proofs.rows_kept(con, types, exact.replace("s", ""))
        return True
    if "persons" in method.formats:
        proofs.persons(con, table, params, by_class="classes" in method.finished)
        return True
    if "sliced" in method.formats:
        proofs.sliced(con, table, "rel", params, with_fakes="fake" in params)
        return True
    proofs.rows_kept(con, types, exact)
    if "rows" in method.finished:
        proofs.all_rows(con)
    if "buckets" in method.formats:
        proofs.buckets(con, table, params)
    if "values" in method.finished:
        # the paper's tables are drawn from row by row; columns permuted or swapped keep their histograms
        proofs.same_histograms(con, "sx" if params.get("tables") == "linear" else "qsx", types)
    if "boxes" in method.formats:
        proofs.covered(con, table, types)
    if "boxes" in method.formats or "classes" in method.finished:
        proofs.classes(con, table, params)
    return True


def check(
    con: duckdb.DuckDBPyConnection, table: Table, call: Call, of: Call | None, header: list[str], answer: list[Any]
) -> bool:
    """Hold an answer against its definition, where that is one statement; every share is one."""
    for name in header:
        if SHARES.match(name):
            for row in answer:
                value = row[header.index(name)]
                if isinstance(value, float) and not (-1e-9 <= value <= 1 + 1e-9 or math.isnan(value)):
                    raise Fault(f"{name} is {value}")
    plain = of is not None and set(BY_NAME[of.function].formats) <= {"rows", "boxes", "suppressed"}
    measured = "o" if call.params["of"] == "original" else "r" if plain else ""
    qi = ", ".join(f"q{k}" for k in range(len(table.of("quasi"))))
    if call.function in ("k_anonymity", "class_statistics") and measured and not table.of("person"):
        sizes = [n for (n,) in con.execute(f"select count(*) from {measured} group by {qi}").fetchall()]
        found = answer[0][0] if call.function == "k_anonymity" else answer[0][header.index("classes")]
        right = min(sizes) if call.function == "k_anonymity" else len(sizes)
        if found != right:
            raise Fault(f"{call.function} says {found}, it is {right}")
        return True
    if call.function == "l_diversity" and measured and not table.of("person") and len(table.of("sensitive")) == 1:
        found = dict(answer)
        right = con.execute(f"""select min(d), min(n / top) from (select count(*) as d, sum(m) as n, max(m) as top from (select {qi}, s0,
            count(*) as m from {measured} group by all) group by {qi})""").fetchone()
        if (found["distinct"], round(found["frequency"], 9)) != (right[0], round(right[1], 9)):
            raise Fault(f"l_diversity says {found}, it is {right}")
        return True
    if call.function in ("relative_error", "estimate") and answer:
        return answers(con, call, header, answer)
    return False


def answers(con: duckdb.DuckDBPyConnection, call: Call, header: list[str], answer: list[Any]) -> bool:
    """The truths of relative_error are the query's own answers, and lie within what is certain."""
    if call.function == "estimate":
        return False
    estimated = [dict(zip(header, row, strict=True)) for row in answer]
    statement = call.params["asked"][1:-1].replace("''", "'")
    rows = con.execute(statement).fetchall()
    displayed = [d[0] for d in con.description or []]
    truths = sorted(
        (name, float(value)) for row in rows for name, value in zip(displayed, row, strict=True)
        if name in ("n", "v") and value is not None and not (isinstance(value, float) and not math.isfinite(value))
    )  # fmt: skip
    message = sorted(
        (t["measure"], t["original"]) for t in estimated if t["original"] is not None and math.isfinite(t["original"])
    )
    grouped = "g" in displayed
    lost = [
        t
        for t in truths
        if not any(t[0] == s[0] and math.isclose(t[1], s[1], rel_tol=1e-6, abs_tol=1e-9) for s in message)
    ]
    if lost:
        raise Fault(f"relative_error's truths {message[:6]} lack {lost[:6]}{' by groups' if grouped else ''}")
    for t in estimated:
        sure = t.get("confidence") == 1 and t["original"] is not None
        low, high = t.get("low"), t.get("high")
        slack = 1e-6 * max(1.0, abs(t["original"] or 0))
        if sure and (
            (low is not None and t["original"] < low - slack) or (high is not None and t["original"] > high + slack)
        ):
            raise Fault(f"{t['original']} is not in [{low}, {high}], which is certain")
    return True


def campaign(calls: int, seed: int, start: int = 0, verbose: bool = False, method: Method | None = None) -> Tally:
    """Make at least `calls` calls, of one method or of any function, on the tables of `seed` from number `start` on."""
    tally = Tally()
    con = duckdb_anon.connect()
    con.execute("set threads = 1")
    con.execute("set memory_limit = '2GB'")
    number = start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", duckdb_anon.AnonWarning)
        while tally.calls < calls:
            run(con, seed, number, tally, verbose, method)
            number += 1
    con.close()
    return tally


def main(arguments: list[str] | None = None) -> int:
    """The campaign by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="number of a table, to see its calls alone")
    given = parser.parse_args(arguments)
    if given.only is None:
        tally = campaign(given.calls, given.seed)
    else:
        tally = campaign(1, given.seed, given.only, verbose=True)
    for fault in tally.faults:
        print(fault, end="\n\n")
    print(tally.shown())
    return bool(tally.faults)


if __name__ == "__main__":
    sys.exit(main())
