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
HELD_OUT = (
    ("name", "name", ("full_name", "h1"), "es_ES"),
    ("name", "name", ("navn", "h2"), "da_DK"),
    ("last_name", "name", ("cognome", "h3"), "it_IT"),
    ("first_name", "name", ("prenom", "h4"), "fr_FR"),
    ("name", "name", ("imie_nazwisko", ""), "pl_PL"),
    ("email", "mail", ("correo", "h5"), "es_ES"),
    ("company_email", "mail", ("work_contact", "h6"), "nl_NL"),
    ("phone_number", "phone", ("telefon", "h7"), "de_DE"),
    ("phone_number", "phone", ("mobile_no", "h8"), "en_GB"),
    ("phone_number", "phone", ("telefono", "h9"), "it_IT"),
    ("phone_number", "phone", ("tel", "h10"), "fr_FR"),
    ("iban", "iban", ("account", "h11"), "fr_FR"),
    ("iban", "iban", ("rekening", "h12"), "nl_NL"),
    ("credit_card_number", "card number", ("cc", "h13"), "de_DE"),
    ("ssn", "national id", ("personnummer", "h14"), "sv_SE"),
    ("ssn", "national id", ("dni", "h15"), "es_ES"),
    ("ssn", "national id", ("rodne_cislo", "h16"), "cs_CZ"),
    ("ssn", "national id", ("cpr", "h17"), "da_DK"),
    ("ssn", "national id", ("nir", "h18"), "fr_FR"),
    ("ssn", "national id", ("national_insurance", "h19"), "en_GB"),
    ("address", "address", ("adresse", "h20"), "de_DE"),
    ("address", "address", ("direccion", "h21"), "es_ES"),
    ("street_address", "address", ("via", "h22"), "it_IT"),
    ("street_address", "address", ("addr_line1", "h23"), "en_GB"),
    ("address", "address", ("adres", "h24"), "pl_PL"),
    ("postcode", "postcode", ("code_postal", ""), "fr_FR"),
    ("postcode", "postcode", ("postnummer", ""), "sv_SE"),
    ("postcode", "postcode", ("cap", ""), "it_IT"),
    ("postcode", "postcode", ("kod_pocztowy", "h25"), "pl_PL"),
    ("postcode", "postcode", ("postal", "h26"), "en_CA"),
    ("city", "place", ("ville", ""), "fr_FR"),
    ("city", "place", ("stadt", ""), "de_DE"),
    ("city", "place", ("municipality", ""), "sv_SE"),
    ("country", "country", ("nationality", ""), "de_DE"),
    ("url", "url", ("homepage", "h27"), "fr_FR"),
    ("ipv4_private", "ip address", ("src", "h28"), "en_US"),
    ("mac_address", "device number", ("device", "h29"), "de_DE"),
    ("uuid4", "key", ("guid", "h30"), "fr_FR"),
    ("ean13", "", ("ean", "h31"), "en_US"),
    ("date_of_birth", "date of birth", ("geburtsdatum", ""), "de_DE"),
    ("date_of_birth", "date of birth", ("date_naissance", ""), "fr_FR"),
    ("date_time", "date", ("created", "h32"), "fr_FR"),
    ("job", "occupation", ("beruf", ""), "de_DE"),
    ("text", "free text", ("comment", "h33"), "fr_FR"),
    ("text", "free text", ("remarks", "h34"), "de_DE"),
    ("license_plate", "license number", ("kennzeichen", ""), "de_DE"),
    ("company", "", ("employer_sector", "h35"), "en_US"),
    ("language_name", "", ("language", "h36"), "en_US"),
    ("random_number", "", ("visits", "h37"), "en_US"),
    ("month_name", "", ("month", "h38"), "en_US"),
    ("currency_name", "", ("currency", "h39"), "en_US"),
    ("mime_type", "", ("mime", "h40"), "en_US"),
    ("pricetag", "", ("price", "h41"), "en_US"),
    ("day_of_week", "", ("weekday", "h42"), "en_US"),
    ("latitude", "", ("score", "h43"), "en_US"),
    ("hex_color", "", ("color", "h44"), "en_US"),
    ("ean8", "", ("sku", "h45"), "en_US"),
)  # fmt: skip
"""Kinds, names and locales that no rule was written with; see `anon_profile` for what was found at first sight."""
FAX = {"fax_no": "fax", "konto": "iban"}
"""Names that say more than the values do."""


@dataclass(frozen=True)
class Labelled:
    """A column whose kind is known."""

    name: str
    kind: str
    values: list[str]


Kinds = tuple[tuple[str, str, tuple[str, str], str], ...]


def labelled_columns(rows: int = 300, kinds: Kinds = KINDS) -> list[Labelled]:
    """Made-up columns, the same ones at every call."""
    from faker import Faker

    columns = []
    for provider, kind, names, locale in kinds:
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
