"""fake: names, addresses and other texts of the same kind, made by Faker; equal values become equal.

A value chooses one of `values` made-up texts by its keyed hash. Different values may become equal.
"""

from __future__ import annotations

from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import AnonError, ParameterError
from duckdb_anon.model.parameters import REQUIRED, Parameter, Params
from duckdb_anon.treatments import Column, Key, Treatment

_KINDS = {
    "name": "name", "first name": "first_name", "last name": "last_name", "address": "address", "street":
    "street_address", "city": "city", "postcode": "postcode", "phone": "phone_number", "mail": "safe_email",
    "company": "company", "job": "job",
}  # fmt: skip


def _expression(column: Column, params: Params, key: Key) -> str:
    made = _texts(params["kind"], params["locale"], params["values"])
    chosen = f"({key.of('fake').number(f'{column.sql}::varchar')} % {len(made)} + 1)"
    return f"case when {column.sql} is not null then list_extract({literal(made)}, {chosen}) end"


def _texts(kind: str, locale: str, many: int) -> list[str]:
    """Made-up texts, which depend on nothing of the table."""
    try:
        from faker import Faker
    except ImportError as error:
        raise AnonError(
            "fake needs Faker: pip install 'duckdb-anon[fake]'. Without it, use mask or drop the column"
        ) from error
    try:
        faker = Faker(locale)
    except AttributeError as error:
        raise ParameterError(f"fake: locale := '{locale}' is not one of Faker's, such as 'en_US' or 'de_DE'") from error
    return [str(getattr(faker, _KINDS[kind])()).replace("\n", ", ") for _ in range(many)]


TREATMENT = Treatment(
    name="fake",
    summary="made-up names, addresses, phone numbers and mail addresses of a locale, by Faker; equal values stay equal",
    promise="The text carries nothing of the original but which values are equal.",
    parameters=(
        Parameter("kind", "what is made up", "text", REQUIRED, tuple(_KINDS)),
        Parameter("locale", "country and language of Faker, such as 'de_DE'", "text", "en_US"),
        Parameter("values", "number of different texts", "integer", 1000, low=1, high=20_000),
    ),
    expression=_expression,
)
