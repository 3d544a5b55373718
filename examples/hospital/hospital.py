"""A made hospital, its release, and the attack on the join before and after: `python hospital.py` in this folder.

It writes hospital.duckdb (20,000 patients, their visits and laboratory values, with the dirt of real tables; names
by Faker where it is installed), releases it by plan.toml as `duckdb-anon run plan.toml` does, and prints the page in
README.md. No row describes a person. The page `evidence` of the plan needs the extra report.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd

import duckdb_anon
from duckdb_anon.cli import main

WARDS = [
    "surgery",
    "internal medicine",
    "cardiology",
    "neurology",
    "oncology",
    "paediatrics",
    "obstetrics",
    "emergency",
]
DIAGNOSES = [f"{letter}{number:02}" for letter in "CEFGIJKMNO" for number in range(0, 100, 7)]


def _names(rng: np.random.Generator, many: int) -> list[str]:
    """Names by Faker, or made of syllables."""
    try:
        from faker import Faker
    except ImportError:
        syllables = ["an", "be", "cor", "da", "el", "fi", "gre", "hu", "is", "jo", "ka", "lu", "mi", "no"]
        return [
            "".join(rng.choice(syllables, 2)).title() + " " + "".join(rng.choice(syllables, 3)).title()
            for _ in range(many)
        ]
    Faker.seed(1)
    faker = Faker("en_US")
    pool = [faker.name() for _ in range(2000)]
    return [str(name) for name in rng.choice(pool, many)]


def make(file: Path, patients: int, seed: int = 1) -> None:
    """Write the hospital."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(6, 9, patients), 0, 101)
    birth = pd.Timestamp("2024-12-31") - pd.to_timedelta((age * 365.25).astype(int), unit="D")
    people = pd.DataFrame(
        {
            "patient_id": 100_000 + np.arange(patients),
            "name": _names(rng, patients),
            "birth_date": birth.date,
            "sex": np.where(rng.random(patients) < 0.52, "F", "M"),
            "postcode": [f"{code:05}" for code in rng.choice(np.arange(1000, 9000, 90), patients)],
        }
    )
    people.loc[rng.random(patients) < 0.01, "birth_date"] = pd.Timestamp("1900-01-01").date()  # a placeholder
    often = rng.poisson(0.6 + 2.6 * (age / 60) ** 1.5 * rng.gamma(2, 0.5, patients))  # some come very often
    owner = np.repeat(np.arange(patients), often)
    admitted = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, len(owner)), unit="D")
    ward = np.where(age[owner] < 16, 5, rng.integers(0, len(WARDS), len(owner)))
    visits = pd.DataFrame(
        {
            "visit_id": 1 + rng.permutation(len(owner)),
            "patient_id": people["patient_id"].to_numpy()[owner],
            "admitted": admitted.date,
            "discharged": (admitted + pd.to_timedelta(rng.geometric(0.25, len(owner)), unit="D")).date,
            "ward": np.array(WARDS)[ward],
            "diagnosis": rng.choice(DIAGNOSES, len(owner), p=rng.dirichlet(np.full(len(DIAGNOSES), 0.4))),
            "notes": "seen by the ward's doctor, see the letter of discharge",
        }
    )
    stray = visits.sample(max(1, len(visits) // 500), random_state=seed).assign(patient_id=1)  # visits of no patient
    visits = pd.concat([visits, stray.assign(visit_id=10_000_000 + np.arange(len(stray)))])
    drawn = visits.sample(frac=0.6, random_state=seed)
    labs = pd.DataFrame(
        {
            "lab_id": 1 + np.arange(len(drawn)),
            "visit_id": drawn["visit_id"].to_numpy(),
            "taken": drawn["admitted"].to_numpy(),
            "test": rng.choice(["haemoglobin", "creatinine", "glucose"], len(drawn)),
            "value": np.round(rng.lognormal(2, 0.5, len(drawn)), 1),
        }
    )
    file.unlink(missing_ok=True)
    con = duckdb_anon.connect(str(file))
    for name, frame in {"patients": people, "visits": visits, "labs": labs}.items():
        con.register("frame", frame)
        con.execute(f"create table {name} as from frame")
        con.unregister("frame")
    con.execute("alter table patients alter birth_date type date")
    con.execute("alter table visits alter admitted type date")
    con.execute("alter table visits alter discharged type date")
    con.execute("alter table labs alter taken type date")
    con.close()


def page(folder: Path) -> str:
    """The attack before and after, and what is lost, as a page for a board."""
    plan = tomllib.loads((folder / "plan.toml").read_text(encoding="utf-8"))
    con = duckdb_anon.connect(str(folder / "hospital.duckdb"), read_only=True)
    con.execute(f"attach '{folder / 'hospital_release.duckdb'}' as released (read_only)")
    lines = ["| table | rows of the hospital | rows released |", "|---|---|---|"]
    for table in plan["tables"]:
        before, after = con.execute(
            f"select (select count(*) from {table}), (select count(*) from released.{table})"
        ).fetchall()[0]
        lines.append(f"| {table} | {before:,} | {after:,} |")
    con.close()
    con = duckdb_anon.connect()
    con.execute(f"attach '{folder / 'hospital.duckdb'}' as source (read_only)")
    for table in plan["tables"]:
        con.execute(f"create table {table} as from source.{table}")
        for column, role in plan["labels"].get(table, {}).items():
            con.execute(f"comment on column {table}.{column} is 'anon: {role}'")
    database = plan["database"]
    keys = {f"{table}.{column}": to for table, inner in database["keys"].items() for column, to in inner.items()}
    risks = duckdb_anon.database_risk(
        con, list(plan["tables"]), treatments=plan["treatments"], individuals=database["individuals"],
        key=database["key"], k=database["k"], keys=keys,
    )  # fmt: skip
    con.close()
    lines += [
        "",
        "| what an attacker knows of a patient | found with hashed keys alone | found in this release |",
        "|---|---|---|",
    ]
    for risk in risks:
        before = "" if risk.pseudonyms is None else f"{risk.pseudonyms:.1%}"
        lines.append(f"| {risk.known} | {before} | {risk.identity:.1%} |")
    return "\n".join(lines)


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    make(here / "hospital.duckdb", int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
    code = main(["run", "--force", str(here / "plan.toml")])
    if code == 0:
        print(page(here))
    sys.exit(code)
