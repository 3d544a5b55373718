"""The trials of recommend: each call released, attacked and queried in a database of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa

from duckdb_anon.engine.interrupts import stoppable
from duckdb_anon.engine.sensitive_coarsening import PARAMETER as EDGES
from duckdb_anon.engine.sensitive_coarsening import takes_edges
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.model import progress
from duckdb_anon.model.errors import RequirementError, without_code
from duckdb_anon.model.function_specs import Method, Sweep
from duckdb_anon.model.release_formats.duckdb_types import is_text, kind_of_type

Step = dict[str, Any]
CARRIERS = 10
EDGED = "rare sensitive values are joined (sensitive_edges), for as they are they single persons out"
_FEW_TARGETS, _SIGMAS = 200, 4
_FIGURES = ("identity", "attribute", "advantage", "information_loss", "query_error", "query_error_median")


@dataclass(frozen=True)
class Asked:
    """A call of recommend without its rows: how releases are called, attacked and queried."""

    tbl: str
    roles: str
    workload: str
    on_sensitive: bool
    max_risk: float
    p_match: float
    targets: int
    seed: int


@dataclass(frozen=True)
class Candidate:
    """A method that may be tried.

    Attributes:
        name: its SQL name.
        sweeps: calls of it, from weak to strong.
        needs_person: whether it releases a row a person.
        counts_persons: whether it protects individuals with several rows.
        takes_edges: whether it has the parameter `sensitive_edges`.
    """

    name: str
    sweeps: tuple[Sweep, ...]
    needs_person: bool
    counts_persons: bool
    takes_edges: bool

    @classmethod
    def of(cls, method: Method) -> Candidate:
        """What recommend needs of a method."""
        return cls(method.name, method.sweeps, "person" in method.needs, method.unit == "person", takes_edges(method))

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Candidate:
        """A candidate that was written as JSON by `dataclasses.asdict`."""
        return cls(**{**told, "sweeps": tuple(Sweep(**sweep) for sweep in told["sweeps"])})


@dataclass(frozen=True)
class Sample:
    """The rows that are tried.

    Attributes:
        rows: how many.
        most_l: the largest l that classes of them could have.
        person: the column that says whose row it is.
        repeated: whether somebody has several rows.
        edges: the argument that gives rare sensitive values company, '' where there are none.
    """

    rows: int
    most_l: int
    person: str | None
    repeated: bool
    edges: str = ""


def try_candidates(
    con: duckdb.DuckDBPyConnection, told: Mapping[str, Any], rows: Mapping[str, pa.StructArray]
) -> list[Step]:
    """Try the calls of every candidate and return the steps best first.

    Args:
        con: a loaded connection to an empty database, which is filled.
        told: the fields of `Asked`; `candidates`; `labels`, column and comment of each column of the sample; `unseen`,
            whether planning saw no types; `visible`, whether it saw columns.
        rows: sample `t0`, hierarchies `h{k}`.

    Returns:
        One mapping a step with the columns of recommend. Steps that meet the largest risk come first, by query
        error; then the others, by risk; then those whose risk could not be measured; then those that could not
        be taken.

    Raises:
        RequirementError: when the table has no rows.
        Interrupted: when the user stops the call.
    """
    asked = Asked(**{name: told[name] for name in Asked.__dataclass_fields__})
    sample = _fill(con, rows, told["labels"])
    if not told["visible"]:
        sample = replace(sample, edges="")  # the recommended call would not see the type of the column
    if told["unseen"]:
        asked = replace(asked, roles=asked.roles + _kinds(con, told["labels"]))
    candidates = _suited([Candidate.read(each) for each in told["candidates"]], sample)
    sweeps = [(candidate, sweep) for candidate in candidates for sweep in candidate.sweeps]
    steps = []
    for number, (candidate, sweep) in enumerate(sweeps, start=1):
        with progress.running(f"recommend ({number} of {len(sweeps)})"):
            steps += _swept(con, asked, candidate, sweep, sample)
    _mark_frontier(steps)
    return sorted(steps, key=_rank)


def _fill(
    con: duckdb.DuckDBPyConnection, rows: Mapping[str, pa.StructArray], labels: Sequence[Sequence[str]]
) -> Sample:
    """Make the labelled table `sample`, the hierarchies `tree{k}` and `asked`, which queries are asked of."""
    for name, flat in rows.items():
        if name == "t0" and len(flat) == 0:
            raise RequirementError("recommend: the table is empty; there is nothing to try methods on")
        made = "sample" if name == "t0" else f"tree{name[1:]}"
        con.register("_anon_arrived", pa.Table.from_struct_array(flat))
        con.execute(f"create table {ident(made)} as from _anon_arrived")
        con.unregister("_anon_arrived")
    person = next((column for column, label in labels if label == "anon: person"), None)
    sensitive = ident(next(column for column, label in labels if label.startswith("anon: sensitive")))
    counts = f"select count(*) as n from sample group by {sensitive}"
    total, most = con.execute(f"select sum(n)::bigint, sum(n)::bigint // max(n) from ({counts})").fetchall()[0]
    people = con.execute(f"select count(distinct {ident(person)}) from sample").fetchall()[0][0] if person else total
    con.execute(f"create table asked as from sample qualify row_number() over (partition by {ident(person)}) = 1"
                if person else "create view asked as from sample")  # fmt: skip
    for column, label in labels:
        for table in ("sample", "asked"):
            con.execute(f"comment on column {table}.{ident(column)} is {literal(label)}")
    edges = f", {EDGES.name} := {CARRIERS}" if _has_rare(con, labels, sensitive, person) else ""
    return Sample(int(total), int(most), person, people < total, edges)


def _has_rare(
    con: duckdb.DuckDBPyConnection, labels: Sequence[Sequence[str]], sensitive: str, person: str | None
) -> bool:
    """Whether some sensitive value has too few carriers, and all can be given as many."""
    table = con.table("sample")
    kind = str(dict(zip(map(ident, table.columns), table.types, strict=True))[sensitive])
    label = next(label for column, label in labels if ident(column) == sensitive)
    ordered = kind_of_type(kind) == "ordered" and "categorical" not in label
    if "hierarchy=" in label or not (ordered or is_text(kind)):
        return False
    carriers = f"count(distinct {ident(person)})" if person else "count(*)"
    counts = f"select {sensitive} as v, {carriers} as n from sample group by {sensitive}"
    rare, missing, total = con.execute(
        f"select count(*) filter (n < {CARRIERS} and v is not null), count(*) filter (n < {CARRIERS} and v is null), "
        f"(select {carriers} from sample where {sensitive} is not null) from ({counts})"
    ).fetchall()[0]
    return rare > 0 and missing == 0 and total >= CARRIERS


def _kinds(con: duckdb.DuckDBPyConnection, labels: Sequence[Sequence[str]]) -> str:
    """What a call must say of quasi-identifiers without an order, where planning does not see their types."""
    table = con.table("sample")
    kind = dict(zip(table.columns, map(str, table.types), strict=True))
    nominal = [column for column, label in labels if label == "anon: quasi" and kind_of_type(kind[column]) == "nominal"]
    return f", categorical := {literal(nominal)}" if nominal else ""


def _suited(candidates: Sequence[Candidate], sample: Sample) -> list[Candidate]:
    """Those that need no person column the sample lacks, and protect individuals where they have several rows."""
    able = [c for c in candidates if sample.person is not None or not c.needs_person]
    return [c for c in able if c.counts_persons or not sample.repeated]


def _swept(
    con: duckdb.DuckDBPyConnection, asked: Asked, candidate: Candidate, sweep: Sweep, sample: Sample
) -> list[Step]:
    """Steps of one sweep up to the first that meets the risk or cannot be taken."""
    steps: list[Step] = []
    edges = sample.edges if candidate.takes_edges else ""
    for arguments in (call + edges for call in sweep.calls(sample.most_l)):
        progress.say(f"{candidate.name} {arguments}")
        step, released = _step(con, asked, candidate, sweep, arguments, sample)
        steps.append(step)
        if step["meets_max_risk"] or not released:
            break
    return steps


def _step(
    con: duckdb.DuckDBPyConnection, asked: Asked, candidate: Candidate, sweep: Sweep, arguments: str, sample: Sample
) -> tuple[Step, bool]:
    """Release, attack and query once; what cannot be done leaves its reason in `note`. Tell whether it released."""
    step: Step = {"method": candidate.name, **dict.fromkeys(_FIGURES), "rows": sample.rows}
    started = time.perf_counter()
    options = f"{arguments}, row_id := true, seed := {asked.seed}"
    _, problem = _asked(con, f"create or replace table release as from {candidate.name}('sample', {options})")
    columns = "" if problem or not sweep.finds_columns else f", columns := {literal(_columns_found(con))}"
    step["call"] = f"FROM {candidate.name}({literal(asked.tbl)}, {arguments}{columns}{asked.roles})"
    notes = [problem] if problem else [sweep.note, EDGED if sample.edges and sample.edges in arguments else ""]
    if not problem:
        notes.append(_attacked(con, asked, f"{candidate.name}({arguments}{columns})", sample, step))
    for names, question in () if problem else _questions(asked, candidate):
        answer, reason = _asked(con, question)
        step.update(zip(names, answer, strict=False))
        notes.append(reason)
    step["seconds"] = time.perf_counter() - started
    step["note"] = "; ".join(note for note in notes if note) or None
    risk = _risk(step)
    step["meets_max_risk"] = None if risk is None else risk <= asked.max_risk
    return step, not problem


def _columns_found(con: duckdb.DuckDBPyConnection) -> list[list[str]]:
    """Attributes that stand together in the sliced table `release`."""
    return [[name for name, _ in kind.children] for kind in con.table("release").types if kind.id == "struct"]


def _asked(con: duckdb.DuckDBPyConnection, statement: str) -> tuple[Sequence[Any], str]:
    """The first row of a statement's answer, and why there is none.

    Raises:
        Interrupted: when the user stops the call.
    """
    try:
        with stoppable():
            return con.execute(statement).fetchall()[0], ""
    except duckdb.Error as error:
        return (), without_code(str(error))


def _attacked(con: duckdb.DuckDBPyConnection, asked: Asked, call: str, sample: Sample, step: Step) -> str:
    """Put the strongest attacker's success into a step; return what is to be said of it.

    A quarter of the targets will do where one attacker's success with them is beyond chance above the largest risk.
    """
    most = min(asked.targets, sample.rows)
    few = max(_FEW_TARGETS, most // 4)

    def strongest(targets: int, attackers: str) -> tuple[Sequence[Any], str]:
        return _asked(
            con,
            f"select identity, attribute, advantage from linkage_risk('sample', 'release', p_match := {asked.p_match}, "
            f"targets := {targets}, seed := {asked.seed}, call := {literal(call)}, attackers := {attackers}) "
            "where attacker = 'strongest'",
        )

    figures = ("identity", "attribute", "advantage")
    targets = most
    if few < most:
        risk = _risk(dict.fromkeys(figures) | dict(zip(figures, strongest(few, "['likelihood']")[0], strict=False)))
        if risk is not None and risk - _SIGMAS * math.sqrt(max(risk * (1 - risk), 0.0) / few) > asked.max_risk:
            targets = few
    answer, reason = strongest(targets, "['all']")
    step.update(zip(figures, answer, strict=False))
    return reason or (f"so far above max_risk that {targets} targets were enough" if targets < most else "")


def _questions(asked: Asked, candidate: Candidate) -> list[tuple[tuple[str, ...], str]]:
    """What else is asked of each release, with the columns the answers go to."""
    # a release of a row a person answers for persons, and shows no plain sensitive value to ask for
    sensitive = literal(asked.on_sensitive and not candidate.needs_person)
    return [
        (
            ("information_loss",),
            "select iloss from information_loss('sample', 'release') where attribute = '(all)'",
        ),
        (
            ("query_error", "query_error_median"),
            "select avg(abs(relative_error)), median(abs(relative_error)) from workload_error('asked', 'release', "
            f"{asked.workload}, predicate_on_sensitive := {sensitive}, seed := {asked.seed})",
        ),
    ]


def _risk(step: Step) -> float | None:
    """What is held against the largest risk: somebody is found, or her value is told better than by a model."""
    if step["identity"] is None or step["advantage"] is None:
        return None
    return float(max(step["identity"], step["advantage"]))


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
    if error is None:
        return 3, 0.0
    if risk is None:
        return 2, float(error)
    return (0, float(error)) if step["meets_max_risk"] else (1, risk)
