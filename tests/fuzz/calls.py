"""Random calls: methods with what they promise, then measures and queries on what they released."""

import ast
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from duckdb_anon.engine.catalog.sensitive_coarsening import takes_edges
from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.model.function_specs import REQUIRED, Method, Task
from duckdb_anon.registry import ENTRIES, METHODS
from tests.fuzz.tables import VALUES, Column, Table, names, quoted, text
from tests.reference.entry_calls import Tables, arguments, reads_original, reads_release, tables_of

ARITHMETIC = (
    "tinyint", "smallint", "integer", "bigint", "utinyint", "uinteger", "decimal(4,1)", "decimal(18,3)", "double", "float",
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A call of a function: SQL after FROM (or SELECT, for a scalar), and the parameters it was given."""

    function: str
    sql: str
    params: Mapping[str, Any]


def roles(table: Table, rng: random.Random, keep: bool = True) -> str:
    """Role arguments, for a table whose comments say none; by chance also for one whose comments do."""
    if table.labelled and rng.random() < 0.8:
        return ""
    estimated = f", qi := {names(table.of('quasi'))}"
    if table.of("sensitive"):
        estimated += f", sensitive := {names(table.of('sensitive'))}"
    if table.of("insensitive") and keep:
        estimated += f", keep := {names(table.of('insensitive'))}"
    if table.of("person"):
        estimated += f", person := {text(table.of('person')[0].name)}"
    trees = [column for column in table.columns if column.tree]
    if trees:
        pairs = ", ".join(f"{text(c.name)}: {text(quoted(c.tree))}" for c in trees)
        estimated += f", hierarchies := map {{{pairs}}}"
    return estimated


def value(sql: str) -> Any:
    """A number, text or truth value as Python has it."""
    return {"true": True, "false": False}[sql] if sql in ("true", "false") else ast.literal_eval(sql)


def method_call(table: Table, rng: random.Random, method: Method | None = None) -> Call:
    """A method on a table, by default any."""
    persons = bool(table.of("person")) and rng.random() < 0.8
    method = method or rng.choice([method for method in METHODS if ("person" in method.needs) == persons])
    trial = rng.choice((method.smallest, *method.trials))
    counts = "counts" in method.formats
    estimated = roles(table, rng, keep=not counts)
    if counts and ", keep" not in estimated and table.labelled and table.of("insensitive"):
        estimated += ", keep := []"
    linked = "" if counts else ", row_id := true"
    seed = f", seed := {rng.randrange(1000)}" if rng.random() < 0.5 else ""
    defaults = {p.name: p.default for p in method.parameters if p.default is not None and p.default is not REQUIRED}
    params = defaults | {name: value(sql) for name, sql in arguments(trial).items()}
    if takes_edges(method) and rng.random() < 0.75:
        trial, params = f"{trial}, sensitive_edges := 1", params | {"sensitive_edges": 1}
    return Call(method.name, f"{method.name}({table.argument}, {trial}{estimated}{linked}{seed})", params)


def query(table: Table, rng: random.Random) -> str:
    """A query over the original."""
    statement = table.of("quasi") + table.of("sensitive")
    counted = [c for c in statement if c.type in ARITHMETIC and not c.tree]
    displayed = ["count(*) as n"]
    if counted and rng.random() < 0.5:
        displayed.append(f"{rng.choice(('sum', 'avg', 'min', 'max'))}({quoted(rng.choice(counted).name)}) as v")
    where = " where " + _condition(statement, rng) if rng.random() < 0.8 else ""
    if rng.random() < 0.4:
        key = quoted(rng.choice(statement).name)
        return f"select {key} as g, {', '.join(displayed)} from {quoted(table.name)}{where} group by {key}"
    return f"select {', '.join(displayed)} from {quoted(table.name)}{where}"


def _condition(columns: list[Column], rng: random.Random, depth: int = 0) -> str:
    if depth < 2 and rng.random() < 0.3:
        word = rng.choice(("and", "or"))
        return f"({_condition(columns, rng, depth + 1)} {word} {_condition(columns, rng, depth + 1)})"
    column = rng.choice(columns)
    name, value = quoted(column.name), lambda: f"cast({rng.choice(VALUES[column.type])} as {column.type})"
    return rng.choice(
        (
            f"{name} = {value()}", f"{name} <> {value()}", f"{name} < {value()}", f"{name} >= {value()}",
            f"{name} between {value()} and {value()}", f"{name} in ({value()}, {value()})", f"{name} is null",
            f"not ({name} > {value()})",
        )
    )  # fmt: skip


MEASURES = [entry for entry in ENTRIES if not isinstance(entry, (Method, Task)) and tables_of(entry)]


def measure_call(table: Table, rng: random.Random) -> Call:
    """A measure of a release, or of the original, or a query."""
    entry = rng.choices(MEASURES, [4 if "query := " in entry.smallest else 1 for entry in MEASURES])[0]
    statement = text(query(table, rng))
    inside = table.argument[1:-1]
    ordered, nominal = rng.choice(table.of("quasi")), rng.choice(table.of("quasi") + table.of("sensitive"))
    tables = Tables(
        inside, "rel", number=ordered.name.replace("'", "''"), text=nominal.name.replace("'", "''"), sensitive="", qi=()
    )
    given = tables.given(entry)
    if "query" in given:
        given["query"] = statement
    taken = {parameter.name for parameter in parameters_of(entry)}
    estimated = ""
    if "qi" in taken:
        # nothing labels a release
        estimated = roles(table if reads_original(entry) else replace(table, labelled=False), rng)
    seed = ", seed := 1" if "seed" in taken and rng.random() < 0.5 else ""
    named = ", ".join(f"{name} := {sql}" for name, sql in given.items())
    about = {"of": "release" if reads_release(entry) else "original", "asked": statement}
    return Call(entry.name, f"{entry.name}({named}{estimated}{seed})", about)
