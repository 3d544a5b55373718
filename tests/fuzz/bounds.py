"""Hard bounds against the truth, cell by cell: `python -m tests.fuzz.bounds --cells 1000000 --seed 1`.

Every cell of a random query's answer that has hard bounds is held against the original's; `--start N --cells 1
--shapes SHAPE` asks table N again.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import duckdb

import duckdb_anon
from duckdb_anon.model.errors import AnonError
from tests.fuzz.bounds_questions import Question, question, question_of_lists
from tests.fuzz.bounds_tables import SELDOM, SHAPES, roles_of, table
from tests.reference.seeded import seeded_release

SLACK = 1e-6


@dataclass
class Tally:
    """Cells with hard bounds, by shape and by measure; what was asked and refused; violations with what makes them again."""

    cells: Counter[str] = field(default_factory=Counter)
    measures: Counter[str] = field(default_factory=Counter)
    queries: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def shown(self) -> str:
        """The tally as text."""
        lines = [f"{'shape':<24}{'queries':>9}{'refused':>9}{'cells':>10}"]
        lines += [f"{m:<24}{n:>9}{self.refused[m]:>9}{self.cells[m]:>10}" for m, n in sorted(self.queries.items())]
        total = (self.queries.total(), self.refused.total(), self.cells.total())
        statement = ", ".join(f"{name} {n}" for name, n in self.measures.most_common())
        return "\n".join(
            [*lines, "{:<24}{:>9}{:>9}{:>10}".format("all", *total), statement, f"{len(self.violations)} violations"]
        )


def campaign(
    cells: int,
    seed: int,
    start: int = 0,
    queries: int = 12,
    shapes: Sequence[str] = tuple(SHAPES),
    report: Callable[[str], None] = lambda line: None,
) -> Tally:
    """Ask until so many cells with hard bounds have been held against the truth, from table number `start` on."""
    tally, number = Tally(), start
    con = duckdb_anon.connect()
    con.execute("set threads = 1")
    while tally.cells.total() < cells:
        made = f"{seed} {number}"
        rng, known = random.Random(made), len(tally.violations)
        requested = [shape for shape in SHAPES if (shape not in SELDOM or rng.random() < 0.1) and shape in shapes]
        for statement in table(rng, rng.choice((4, 12, 40, 150, 400))):
            con.execute(statement).fetchall()
        for shape in requested:
            _release(con, random.Random(f"{made} {shape}"), shape, tally, f"seed {seed}, table {number}", queries)
        number += 1
        for violation in tally.violations[known:]:
            report(violation)
        if number % 100 == 0:
            report(f"table {number}: {tally.cells.total()} cells, {len(tally.violations)} violations")
    con.close()
    return tally


def _release(
    con: duckdb.DuckDBPyConnection, rng: random.Random, shape: str, tally: Tally, where: str, queries: int
) -> None:
    template = rng.choice(SHAPES[shape])
    roles, statement, exact = roles_of(rng, template)
    call = template.format(k=rng.choice((1, 2, 3, 5)), roles=roles, plain=roles, person=roles)
    try:
        # only a release with a description and the digest of its rows has bounds
        seeded_release(con, "r", f"{call.removesuffix(')')}, seed := 1)", replace=True, independent=True)
    except (duckdb.Error, AnonError) as error:
        if "internal" in str(error).lower():
            tally.violations.append(f"{where}: {call}: {error}")
        tally.refused[f"({shape})"] += 1
        return
    for _ in range(queries // 2 if shape == "boxes" else queries):
        of_lists = shape == "lists" and rng.random() < 0.9
        only = shape in ("randomized", "buckets") and bool(exact) and rng.random() < 0.8
        _ask(
            con,
            question_of_lists(rng) if of_lists else question(rng, exact, only),
            statement,
            tally,
            shape,
            f"{where}: {call}",
        )


def _ask(
    con: duckdb.DuckDBPyConnection, question: Question, roles: str, tally: Tally, shape: str, where: str, deep: int = 2
) -> None:
    """Ask; a question that is refused is asked again in halves, its first measure alone at last."""
    tally.queries[shape] += 1
    text = question.text()
    try:
        rows = con.execute(
            "select keys, measure, original, low, high from relative_error(?, 't', 'r', bounds := 'hard'" + roles + ") "
            "where confidence = 1 and original is not null", [text],
        ).fetchall()  # fmt: skip
    except duckdb.Error as error:
        if "internal" in str(error).lower() or "Binder" in str(error) or "Catalog" in str(error):
            tally.violations.append(f"{where}: {text}: {error}")
        tally.refused[shape] += 1
        if deep and len(question.measures) > 1:
            for half in question.halves():
                _ask(con, half, roles, tally, shape, where, deep - 1)
        return
    tally.cells[shape] += len(rows)
    for keys, name, truth, low, high in rows:
        tally.measures[question.measures[int(name[1:])].split("(")[0]] += 1
        slack = SLACK * max(1.0, abs(truth))
        if (low is not None and truth < low - slack) or (high is not None and truth > high + slack):
            tally.violations.append(f"{where}: {text}: {keys} {name}: {truth} is not in [{low}, {high}]")


def main(arguments: Sequence[str] | None = None) -> int:
    """The campaign by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    given = parser.parse_args(arguments)

    def report(line: str) -> None:
        print(line, flush=True)

    tally = campaign(given.cells, given.seed, given.start, shapes=given.shapes, report=report)
    print(tally.shown())
    return bool(tally.violations)


if __name__ == "__main__":
    sys.exit(main())
