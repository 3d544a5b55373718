"""Labelled columns: what made-up values of a known kind, and real tables, should be taken for.

Values are Faker's, which knows nothing of the rules that are tried; each kind under a name that tells it, and, where
values alone may tell it, under one that does not. `labelled_columns.csv` has a row a kind: those of `kinds` are common
ones, and no rule was written with those of `unseen`, from which nothing may be learnt.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

FAX = {"fax_no": "fax", "konto": "iban"}
"""Names that say more than the values do."""


@dataclass(frozen=True)
class Labelled:
    """A column whose kind is known."""

    name: str
    kind: str
    values: list[str]


def labelled_columns(kinds: str, rows: int = 150) -> list[Labelled]:
    """Made-up columns of one set, the same ones at every call."""
    from faker import Faker

    columns = []
    for row in csv.DictReader(Path(__file__).with_suffix(".csv").read_text(encoding="utf-8").splitlines()):
        if row["set"] == kinds:
            fake = Faker(row["locale"])
            fake.seed_instance(7)
            values = [str(getattr(fake, row["provider"])()).replace("\n", ", ") for _ in range(rows)]
            names = [name for name in (row["telling_name"], row["silent_name"]) if name]
            columns += [Labelled(name, FAX.get(name, row["kind"]), values) for name in names]
    return columns


REAL = {
    "census": {"UHRSWORK": "quasi", "RACE": "quasi", "SEX": "quasi", "RELATE": "quasi", "AGE": "quasi",
     "MARST": "quasi", "EDUC": "quasi", "INCWAGE": "sensitive", "OCC": "quasi"},
    "adult": {"age": "quasi", "workclass": "quasi", "fnlwgt": "quasi", "education": "quasi", "education_num": "quasi",
     "marital_status": "quasi", "occupation": "quasi", "relationship": "quasi", "race": "quasi", "sex": "quasi",
     "capital_gain": "sensitive", "capital_loss": "sensitive", "hours_per_week": "quasi", "native_country": "quasi",
     "income": "sensitive"},
    "visits": {"person_id": "person", "month_of_birth": "quasi", "year_of_birth": "quasi", "race": "quasi",
     "years_of_education": "quasi", "income": "sensitive", "diagnosis": "sensitive"},
}  # fmt: skip
"""Roles of the columns of three real or realistic tables."""
