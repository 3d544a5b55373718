"""anon_register: the releases that the registers of the attached databases list, one row a release.

`release()` writes the register; it is of the data holder alone and is never published. `previous` names the release
that a release continues; `independent` says that it was made without regard to earlier releases of its original, whose
risks add up. `recognized_by` says how another name of the original is found out: by its 'records', or, where most of
them have equal ones, by the 'name' of the table that a view or SELECT reads alone. Cost: reading the register.
"""

from __future__ import annotations

from typing import Any

from duckdb_anon.engine.records.register import SCHEMA, Register, registers
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model.function_specs import Params, Query

_COLUMNS = (
    "name VARCHAR, number INTEGER, original VARCHAR, key VARCHAR, call VARCHAR, day DATE, rows BIGINT, "
    "previous VARCHAR, independent BOOLEAN, epsilon DOUBLE, added BIGINT, waiting BIGINT, deleted BIGINT, "
    "changed BIGINT, digest VARCHAR, recognized_by VARCHAR"
)


@Query(
    summary="releases that the data holder has made: original, key, call, day, and how each continues another",
    example="SELECT name, original, previous FROM anon_register()",
    section="Help",
    tables=(),
)
def anon_register(context: Any, params: Params) -> str:
    """One row a release of each register."""
    databases = registers(context.catalog.cursor)
    if not databases:
        nulls = ", ".join("null::{1} as {0}".format(*column.split()) for column in _COLUMNS.split(", "))
        return f"select null::varchar as database, {nulls} where false"
    found = []
    for database in databases:
        numbers = Register.read(context.catalog.cursor, database).recognized() or [0]
        special = {
            "previous": "_anon_p.name",
            "recognized_by": f"if(_anon_r.number in ({', '.join(map(str, numbers))}), 'records', 'name')",
        }
        names = [column.split()[0] for column in _COLUMNS.split(", ")]
        selected = ", ".join(f"{special.get(name, f'_anon_r.{name}')} as {name}" for name in names)
        releases = f"{ident(database)}.{SCHEMA}.releases"
        joined = f"{releases} as _anon_r left join {releases} as _anon_p on _anon_p.number = _anon_r.previous"
        found.append(f"select {literal(database)} as database, {selected} from {joined}")
    return "\nunion all\n".join(found) + "\norder by database, number"
