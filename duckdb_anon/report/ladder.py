"""The trials of recommend: each step of a ladder released, attacked and queried in a database of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from duckdb_anon import progress
from duckdb_anon.engine import interrupt
from duckdb_anon.engine.quoting import ident, literal
from duckdb_anon.errors import AnonError, RequirementError

Step = dict[str, Any]
_PER_SHARE = (5, 7, 10)
_CHANGED = (1, 2)
_CLASS_SIZES = (5, 10, 25)
_FIGURES = ("identity", "attribute", "information_loss", "query_error", "query_error_median")


@dataclass(frozen=True)
class Asked:
    """A call of recommend without its rows: how releases are called, attacked and queried."""

    tbl: str
    roles: str
    workload: str
    max_risk: float
    p_match: float
    targets: int
    seed: int


def try_ladder(con: duckdb.DuckDBPyConnection, call: pa.StructArray) -> list[Step]:
    """Run every step and return them best first.

    Args:
        con: a loaded connection to an empty database, which is filled.
        call: one call as planned: sample `t0`, hierarchies `h{k}`, labels and options.

    Returns:
        One mapping a step with the columns of recommend. Steps that meet the largest risk come first, by query
        error; then the others, by risk; then those that could not be taken.

    Raises:
        RequirementError: when the table has no rows.
        Interrupted: when the user stops the call.
    """
    names = [field.name for field in call.type]
    given = {name: call.field(name)[0].as_py() for name in names if name[:1] not in "h" and name != "t0"}
    asked = Asked(**{name: given[name] for name in Asked.__dataclass_fields__})
    rows = _fill(con, call, given["labels"])
    ladder = _ladder(con, [name for name, label in given["labels"] if label.startswith("anon: sensitive")])
    steps = []
    with interrupt.watching():
        for number, (method, arguments) in enumerate(ladder):
            interrupt.tick()
            with progress.running("recommend"):
                progress.say(f"{method} {arguments}", number / len(ladder))
                steps.append(_step(con, asked, method, arguments, rows))
    _mark_frontier(steps)
    return sorted(steps, key=_rank)


def _fill(con: duckdb.DuckDBPyConnection, call: pa.StructArray, labels: Sequence[Sequence[str]]) -> int:
    """Make the labelled table `sample` and the hierarchies `tree{k}`; return the sample's rows."""
    for name in (field.name for field in call.type if field.name == "t0" or field.name[:1] == "h"):
        flat = call.field(name).flatten()
        flat = flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat
        if name == "t0" and len(flat) == 0:
            raise RequirementError("recommend: the table is empty; there is nothing to try methods on")
        made = "sample" if name == "t0" else f"tree{name[1:]}"
        con.register("_anon_arrived", pa.Table.from_struct_array(flat))
        con.execute(f"create table {ident(made)} as from _anon_arrived")
        con.unregister("_anon_arrived")
    for column, label in labels:
        con.execute(f"comment on column sample.{ident(column)} is {literal(label)}")
    return int(con.execute("select count(*) from sample").fetchall()[0][0])


def _ladder(con: duckdb.DuckDBPyConnection, sensitive: Sequence[str]) -> list[tuple[str, str]]:
    """Methods with their arguments; l is left out where a value is so frequent that no class could have l = 2."""
    column = ident(sensitive[0])
    shared = f"select (select count(*) from sample) // max(n) from (select count(*) as n from sample group by {column})"
    most = int(con.execute(shared).fetchall()[0][0])
    steps = [("muco", f"delta := 1/{share}, min_changed := {changed}") for share in _PER_SHARE for changed in _CHANGED]
    for k in _CLASS_SIZES:
        diverse = f", l := {min(k, most)}" if most >= 2 else ""
        steps.append(("mondrian", f"k := {k}{diverse}"))
    return steps


def _step(con: duckdb.DuckDBPyConnection, asked: Asked, method: str, arguments: str, rows: int) -> Step:
    """Release, attack and query once; what cannot be done leaves its reason."""
    call = f"FROM {method}({literal(asked.tbl)}, {arguments}{asked.roles})"
    step: Step = {"method": method, "call": call, **dict.fromkeys(_FIGURES), "rows": rows, "failed": None}
    started = time.perf_counter()
    try:
        con.execute(
            f"create or replace table release as from {method}('sample', {arguments}, row_id := true, "
            f"seed := {asked.seed})"
        )
        for names, question in _questions(asked, rows):
            interrupt.tick()
            answer = con.execute(question).fetchall()[0]
            step.update(zip(names, answer, strict=True))
    except (duckdb.InterruptException, RuntimeError) as error:
        # a RuntimeError is how DuckDB's client says that Ctrl-C stopped a query
        if "interrupt" not in str(error).lower():
            raise
        raise interrupt.Interrupted("interrupted") from error
    except duckdb.Error as error:
        if str(error).split("\n")[0].endswith(": interrupted"):
            raise interrupt.Interrupted("interrupted") from error
        step["failed"] = str(error).split("\n")[0].removeprefix("Invalid Input Error: ")
    step["seconds"] = time.perf_counter() - started
    risk = _risk(step)
    step["meets_max_risk"] = None if risk is None else risk <= asked.max_risk
    return step


def _questions(asked: Asked, rows: int) -> list[tuple[tuple[str, ...], str]]:
    targets = min(asked.targets, rows)
    return [
        (
            ("identity", "attribute"),
            f"select identity, attribute from disclosure('sample', 'release', p_match := {asked.p_match}, "
            f"targets := {targets}, seed := {asked.seed})",
        ),
        (
            ("information_loss",),
            "select iloss from information_loss('sample', 'release') where attribute = '(all)'",
        ),
        (
            ("query_error", "query_error_median"),
            "select avg(abs(relative_error)), median(abs(relative_error)) from workload_error('sample', 'release', "
            f"{asked.workload}, seed := {asked.seed})",
        ),
    ]


def _risk(step: Step) -> float | None:
    if step["identity"] is None or step["attribute"] is None:
        return None
    return float(max(step["identity"], step["attribute"]))


def _mark_frontier(steps: Sequence[Step]) -> None:
    """A step is on the frontier when no other has at most its risk and its error, and less of one."""
    points = [(_risk(s), s["query_error"]) for s in steps]
    measured = [(risk, error) for risk, error in points if risk is not None and error is not None]
    for step, (risk, error) in zip(steps, points, strict=True):
        step["on_frontier"] = (
            risk is not None
            and error is not None
            and not any(r <= risk and e <= error and (r, e) != (risk, error) for r, e in measured)
        )


def _rank(step: Step) -> tuple[int, float]:
    risk, error = _risk(step), step["query_error"]
    if risk is None or error is None:
        return 2, 0.0
    return (0, float(error)) if step["meets_max_risk"] else (1, risk)


def answer(call: pa.StructArray, con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Answer one call as DuckDB takes it: the steps, or the text of an error."""
    try:
        return {"error": None, "steps": try_ladder(con, call)}
    except (AnonError, duckdb.Error) as error:
        return {"error": str(error), "steps": None}
