"""How often is anon_profile right? Precision and recall on columns whose kind is known.

80 columns of made-up values (Faker's, in ten locales), with names that tell and with names that do not, and the columns
of census, adult and visits by their roles. Faker is needed beside the package: pip install faker.

    python examples/studies/profile.py FOLDER     # with census.csv, adult.csv and visits.csv
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pandas as pd

import duckdb_anon
from tests.reference.labelled_columns import BUILT, HELD_OUT, KINDS, REAL, UNSEEN, Kinds, labelled_columns


def found_kinds(kinds: Kinds = KINDS) -> list[tuple[str, str, str]]:
    """(name, true kind, found kind) of each made-up column."""
    columns = labelled_columns(kinds=kinds)
    con = duckdb_anon.connect()
    frame = pd.DataFrame({column.name: column.values for column in columns})
    con.register("frame", frame)
    con.execute("create table made as from frame")
    told = con.execute("select column_name, looks_like from anon_profile('made')").fetchall()
    return [(column.name, column.kind, kind or "") for column, (_, kind) in zip(columns, told, strict=True)]


def precision_and_recall(found: list[tuple[str, str, str]]) -> tuple[float, float]:
    right = sum(true == kind != "" for _, true, kind in found)
    return right / sum(kind != "" for *_, kind in found), right / sum(true != "" for _, true, _ in found)


def main() -> None:
    found = found_kinds()
    for told in (True, False):
        some = [row for row in found if row[0].lstrip("c").isdigit() != told]
        precision, recall = precision_and_recall(some)
        print(f"{len(some)} columns, names that {'tell' if told else 'do not tell'}: ", end="")
        print(f"precision {precision:.2f}, recall {recall:.2f}")
    precision, recall = precision_and_recall(found)
    print(f"all {len(found)}: precision {precision:.2f}, recall {recall:.2f}")
    for kinds, what in ((HELD_OUT, "names were learnt from"), (BUILT, "builds were learnt from"), (UNSEEN, "unseen")):
        others = found_kinds(kinds)
        precision, recall = precision_and_recall(others)
        print(f"{len(others)} columns, {what}: precision {precision:.2f}, recall {recall:.2f}")
    print("wrong:", [row for row in found if row[1] != row[2]])
    con = duckdb_anon.connect()
    right: Counter[str] = Counter()
    for name, roles in REAL.items():
        con.execute(f"create table {name} as from read_csv('{Path(sys.argv[1]) / name}.csv')")
        told = con.execute(f"select column_name, role from anon_profile('{name}')").fetchall()
        right.update("right" if roles[column] == role else f"{name}.{column}: {role}" for column, role in told)
    print("roles of real columns:", dict(right))


if __name__ == "__main__":
    main()
