"""Labelled columns: what made-up values of a known kind, and real tables, should be taken for.

Values are Faker's, which knows nothing of the rules that are tried; each kind under a name that tells it, and, where
values alone may tell it, under one that does not.
"""

from __future__ import annotations

from dataclasses import dataclass

KINDS = (
    ("name", "name", ("customer_name", "c1"), "en_US"),
    ("first_name", "name", ("firstName", "c2"), "en_US"),
    ("last_name", "name", ("surname", "c3"), "en_GB"),
    ("name", "name", ("nachname", ""), "de_DE"),
    ("user_name", "name", ("username", ""), "en_US"),
    ("email", "mail", ("email", "c4"), "en_US"),
    ("email", "mail", ("courriel", "c5"), "fr_FR"),
    ("phone_number", "phone", ("phone", "c6"), "en_US"),
    ("phone_number", "phone", ("fax_no", ""), "en_US"),
    ("iban", "iban", ("iban", "c7"), "de_DE"),
    ("iban", "iban", ("konto", "c8"), "en_GB"),
    ("credit_card_number", "card number", ("card_number", "c9"), "en_US"),
    ("ssn", "national id", ("ssn", "c10"), "en_US"),
    ("ssn", "national id", ("codice_fiscale", "c11"), "it_IT"),
    ("ssn", "national id", ("bsn", "c12"), "nl_NL"),
    ("ssn", "national id", ("pesel", "c13"), "pl_PL"),
    ("ssn", "national id", ("hetu", "c14"), "fi_FI"),
    ("cpf", "national id", ("cpf", "c15"), "pt_BR"),
    ("address", "address", ("address", "c16"), "en_US"),
    ("street_address", "address", ("street", "c17"), "en_US"),
    ("street_address", "address", ("strasse", "c18"), "de_DE"),
    ("postcode", "postcode", ("zip", ""), "en_US"),
    ("postcode", "postcode", ("post_code", "c19"), "en_GB"),
    ("postcode", "postcode", ("plz", ""), "de_DE"),
    ("postcode", "postcode", ("postcode", "c20"), "nl_NL"),
    ("city", "place", ("city", ""), "en_US"),
    ("country", "country", ("country_of_birth", ""), "en_US"),
    ("url", "url", ("website", "c21"), "en_US"),
    ("ipv4", "ip address", ("client_ip", "c22"), "en_US"),
    ("ipv6", "ip address", ("ip", "c23"), "en_US"),
    ("mac_address", "device number", ("mac", "c24"), "en_US"),
    ("uuid4", "key", ("record_id", "c25"), "en_US"),
    ("date_of_birth", "date of birth", ("dob", ""), "en_US"),
    ("date", "date", ("admitted_at", "c26"), "en_US"),
    ("job", "occupation", ("job", ""), "en_US"),
    ("paragraph", "free text", ("notes", "c27"), "en_US"),
    ("license_plate", "license number", ("license_plate", ""), "en_US"),
    ("color_name", "", ("colour", "c28"), "en_US"),
    ("random_digit", "", ("items", "c29"), "en_US"),
    ("currency_code", "", ("currency", "c30"), "en_US"),
    ("word", "", ("tag", "c31"), "en_US"),
    ("boolean", "", ("active", "c32"), "en_US"),
    ("file_extension", "", ("suffix", "c33"), "en_US"),
    ("pyfloat", "", ("reading", "c34"), "en_US"),
    ("random_int", "", ("quantity", "c35"), "en_US"),
)  # fmt: skip
"""(Faker's provider, kind, (telling name, silent name), locale); '' as kind where nothing should be found."""
FAX = {"fax_no": "fax", "konto": "iban"}
"""Names that say more than the values do."""


@dataclass(frozen=True)
class Labelled:
    """A column whose kind is known."""

    name: str
    kind: str
    values: list[str]


def labelled_columns(rows: int = 300) -> list[Labelled]:
    """Made-up columns, the same ones at every call."""
    from faker import Faker

    columns = []
    for provider, kind, names, locale in KINDS:
        fake = Faker(locale)
        fake.seed_instance(7)
        values = [str(getattr(fake, provider)()).replace("\n", ", ") for _ in range(rows)]
        columns += [Labelled(name, FAX.get(name, kind), values) for name in names if name]
    return columns


REAL = {
    "census": {
        "UHRSWORK": "quasi", "RACE": "quasi", "SEX": "quasi", "RELATE": "quasi", "AGE": "quasi", "MARST": "quasi",
        "EDUC": "quasi", "INCWAGE": "sensitive", "OCC": "quasi",
    },
    "adult": {
        "age": "quasi", "workclass": "quasi", "fnlwgt": "quasi", "education": "quasi", "education_num": "quasi",
        "marital_status": "quasi", "occupation": "quasi", "relationship": "quasi", "race": "quasi", "sex": "quasi",
        "capital_gain": "sensitive", "capital_loss": "sensitive", "hours_per_week": "quasi", "native_country": "quasi",
        "income": "sensitive",
    },
    "visits": {
        "person_id": "person", "month_of_birth": "quasi", "year_of_birth": "quasi", "race": "quasi",
        "years_of_education": "quasi", "income": "sensitive", "diagnosis": "sensitive",
    },
}  # fmt: skip
"""Roles of the columns of three real or realistic tables."""
